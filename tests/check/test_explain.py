import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from deploytui.check.explain import explain_command
from deploytui.errors import ProfileError, UsageError

LOGS = Path(__file__).parent.parent / "data" / "logs"
VLLM = LOGS / "vllm-0.32.0-cpu" / "err_load_truncated_safetensors.log"


def answer(engine: str, path: Path) -> dict[str, object]:
    text, _ = explain_command(engine, path, as_json=True)
    found: dict[str, object] = json.loads(text)
    return found


def test_a_log_is_explained_with_the_number_of_its_decisive_line() -> None:
    found = answer("vllm", VLLM)
    assert set(found) == {"kind", "what", "why", "fix", "line"}
    assert found["kind"] == "corrupt"
    line = found["line"]
    assert isinstance(line, int)
    assert str(found["why"]).strip("…") in VLLM.read_bytes().split(b"\n")[line - 1].decode()


def test_the_text_says_kind_place_cause_line_and_remedy() -> None:
    text, status = explain_command("vllm", VLLM, as_json=False)
    assert status == 0
    assert "vLLM: corrupt (line " in text
    assert "SafetensorError" in text
    assert "checksum" in text


def test_not_understood_is_an_answer_with_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("hello\nall is \x1b[31mwell\x07\n\n")
    text, status = explain_command("llamacpp", log, as_json=True)
    found = json.loads(text)
    assert (status, found["kind"], found["line"]) == (1, None, None)
    assert found["why"] == "hello\nall is well\x07"
    shown, _ = explain_command("llamacpp", log, as_json=False)
    assert "not understood" in shown
    assert "\x07" not in shown


def test_an_empty_log_is_not_understood(tmp_path: Path) -> None:
    log = tmp_path / "empty.log"
    log.touch()
    assert explain_command("llamacpp", log, as_json=True)[1] == 1


def test_a_compressed_log_is_read_as_it_is(tmp_path: Path) -> None:
    packed = tmp_path / "engine.log.gz"
    packed.write_bytes(gzip.compress(VLLM.read_bytes()))
    assert answer("vllm", packed) == answer("vllm", VLLM)


def test_a_damaged_compressed_log_is_a_usage_error(tmp_path: Path) -> None:
    packed = tmp_path / "engine.log.gz"
    packed.write_bytes(gzip.compress(VLLM.read_bytes())[:200])
    with pytest.raises(UsageError, match="can't be read"):
        answer("vllm", packed)


def test_standard_input_is_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VLLM.read_bytes())))
    assert answer("vllm", Path("-")) == answer("vllm", VLLM)


def test_odd_bytes_and_a_line_without_end_are_read(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"\xff\xfe\x00" * 700_000 + b"\r\nx\rOSError: [Errno 98] Address already in use")
    found = answer("sglang", log)
    assert (found["kind"], found["line"]) == ("port_in_use", 2)


def test_no_log_is_a_usage_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.log", tmp_path):
        with pytest.raises(UsageError, match="can't be read"):
            explain_command("vllm", path, as_json=False)


def test_an_engine_nobody_knows_names_the_nearest() -> None:
    with pytest.raises(ProfileError) as caught:
        explain_command("llamacp", VLLM, as_json=False)
    assert "llamacpp" in caught.value.fix
    assert caught.value.exit_code == 2


def test_a_program_in_place_of_a_log_is_not_understood(tmp_path: Path) -> None:
    (tmp_path / "engine").write_bytes(b"\x7fELF\0\0unrecognized arguments: %s\0\nunrecognized arguments: --x\0no\n")
    assert answer("vllm", tmp_path / "engine")["kind"] is None


def test_a_log_that_was_cut_while_it_was_written_is_read_behind_the_zeros(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\0" * 5000 + b"OSError: [Errno 98] Address already in use\n")
    assert answer("vllm", tmp_path / "log")["kind"] == "port_in_use"
