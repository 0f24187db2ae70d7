from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.check.probe import run_probe
from deploytui.engine.protocol import Place
from deploytui.engine.tgi import PROGRAM, Tgi
from deploytui.profile.schema import Candidate, Container, Settings
from deploytui.record.facts import EngineFacts

ENGINE = Tgi()
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300)
PLAIN = Candidate(name="a", engine="tgi", model="/models/m")
START = (
    *(PROGRAM, "--model-id", "/models/m", "--hostname", "127.0.0.1", "--port", "8123"),
    *("--usage-stats", "off"),
)
INFO = {
    "model_id": "/models/m",
    "model_dtype": "float16",
    "max_concurrent_requests": 128,
    "max_input_tokens": 4095,
    "max_total_tokens": 4096,
    "router": "text-generation-router",
    "version": "3.3.5",
}


def more(**changes: Any) -> tuple[str, ...]:
    """What a changed candidate has in its argv beyond the plain one's."""
    argv = ENGINE.launch(replace(PLAIN, **changes), PLACE).argv
    assert argv[: len(START)] == START
    return argv[len(START) :]


def test_it_listens_on_loopback_alone_and_says_nothing_of_its_use() -> None:
    launch = ENGINE.launch(PLAIN, replace(PLACE, api_key="s3cret"))
    assert launch.argv == START
    assert launch.served_model == "/models/m"
    assert launch.env["API_KEY"] == "s3cret"
    assert not any("s3cret" in word for word in launch.argv)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_model_len=4096), ("--max-total-tokens", "4096", "--max-input-tokens", "4095")),
        (Settings(tensor_parallel=2), ("--num-shard", "2")),
        (Settings(memory_share=0.8), ("--cuda-memory-fraction", "0.8")),
        (Settings(max_num_seqs=16), ("--max-batch-size", "16")),
        (Settings(kv_cache_dtype="fp8_e5m2"), ("--kv-cache-dtype", "fp8_e5m2")),
        (Settings(cuda_graphs=False), ("--cuda-graphs", "0")),
        (Settings(prefix_cache=False), ()),
    ],
)
def test_each_setting_has_its_word(settings: Settings, words: tuple[str, ...]) -> None:
    assert more(settings=settings) == words


def test_the_prefix_cache_is_an_environment_variable() -> None:
    assert "PREFIX_CACHING" not in ENGINE.launch(PLAIN, PLACE).env
    off = replace(PLAIN, settings=Settings(prefix_cache=False))
    assert ENGINE.launch(off, PLACE).env["PREFIX_CACHING"] == "0"


def test_more_requests_than_it_lets_in_by_itself_are_let_in() -> None:
    argv = ENGINE.launch(PLAIN, replace(PLACE, concurrency=512)).argv
    assert argv[-2:] == ("--max-concurrent-requests", "512")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "bfloat16"}, ("--dtype", "bfloat16")),
        ({"dtype": "auto", "quantization": "awq-4bit"}, ("--quantize", "awq")),
        ({"trust_remote_code": True, "args": ("--json-output",)}, ("--trust-remote-code", "--json-output")),
    ],
)
def test_artifact_and_own_arguments_follow(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    assert more(**changes) == words


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"settings": Settings(pipeline_parallel=2)}, "unsupported_setting"),
        ({"settings": Settings(chunked_prefill=True)}, "unsupported_setting"),
        ({"settings": Settings(kv_cache_dtype="fp8")}, "unsupported_setting"),
        ({"settings": Settings(max_model_len=1)}, "invalid_config"),
        ({"dtype": "float16", "quantization": "fp8"}, "invalid_config"),
        ({"dtype": "float32"}, "unsupported_dtype"),
        ({"device": "cpu"}, "wrong_device"),
        ({"format": "gguf"}, "unsupported_format"),
        ({"python": "/opt/py"}, "invalid_config"),
        ({"command": ()}, "invalid_config"),
        ({"base_url": "http://127.0.0.1:1"}, "invalid_config"),
    ],
)
def test_what_tgi_can_not_take_is_refused_before_launch(changes: dict[str, Any], kind: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind


def test_both_of_its_apis_can_be_asked_for() -> None:
    assert ENGINE.objection(replace(PLAIN, api="tgi")) is None


def launcher(folder: Path, says: str) -> str:
    """A program that answers --version."""
    path = folder / PROGRAM
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_launcher_is_found_with_its_version_and_its_lock_held(tmp_path: Path) -> None:
    named = replace(PLAIN, command=(launcher(tmp_path, f"{PROGRAM} 3.3.5"),))
    probe = ENGINE.probe(named)
    assert probe is not None
    probed = anyio.run(run_probe, probe)
    assert probed.version == "3.3.5"
    assert ENGINE.judge(named, probed) is None
    failure = ENGINE.judge(replace(named, engine_version="==3.3.4"), probed)
    assert failure is not None
    assert failure.kind == "wrong_version"


def test_an_absent_launcher_names_all_three_ways_out(tmp_path: Path) -> None:
    probe = ENGINE.probe(replace(PLAIN, command=(str(tmp_path / "none"),)))
    assert probe is not None
    failure = ENGINE.judge(PLAIN, anyio.run(run_probe, probe))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert all(word in failure.fix for word in ("command", "container", "base_url"))


def test_in_an_image_the_same_launcher_takes_the_same_words() -> None:
    contained = replace(PLAIN, container=Container(image="ghcr.io/huggingface/text-generation-inference:3.3.5"))
    assert ENGINE.objection(contained) is None
    assert ENGINE.launch(contained, PLACE).argv == START
    probe = ENGINE.probe(contained)
    assert probe is not None
    assert probe.argv[0] == "python3"


def test_its_information_page_tells_version_and_limits() -> None:
    facts = ENGINE.readback(EngineFacts(name="tgi"), {"/info": INFO})
    assert facts.version == "3.3.5"
    assert facts.settings == {
        "max_model_len": 4096,
        "max_input_tokens": 4095,
        "max_concurrent_requests": 128,
        "dtype": "float16",
    }


@given(st.dictionaries(st.sampled_from([*INFO]), st.none() | st.text() | st.integers() | st.lists(st.none())))
def test_junk_on_it_is_tolerated(info: dict[str, Any]) -> None:
    assert ENGINE.readback(EngineFacts(name="tgi"), {"/info": info}).name == "tgi"
