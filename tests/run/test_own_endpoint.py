"""A whole session on TGI's own endpoint, which the mock engine plays."""

from pathlib import Path

from deploytui.record.events import PromptsMade
from tests.run.sessions import Done, deploytui, wait_for_event, write_profile


def run_own(folder: Path, *args: str) -> Done:
    path = write_profile(folder, {"own": args})
    asked = 'endpoint = "completions"\nsampling = {ignore_eos = false}'
    path.write_text(path.read_text("utf-8").replace('endpoint = "completions"', asked) + 'api = "tgi"\n', "utf-8")
    return deploytui(folder / "state", "run", path, "--json", "-")


def test_a_candidate_is_measured_on_the_own_endpoint_and_its_quality_on_openais(tmp_path: Path) -> None:
    done = run_own(tmp_path, "--itl-ms", "2")
    row = done.row("own")
    assert (row["status"], row["run"]) == ("load_success", "ok"), done.err
    assert row["metrics"]["success_rate"]["value"] == 1.0
    assert row["metrics"]["quality"]["value"] == 1.0
    prompts = wait_for_event(tmp_path / "state", PromptsMade)
    assert prompts.exact
    assert prompts.tokenizer_of == "own"


def test_what_breaks_a_stream_off_is_told_in_the_servers_words(tmp_path: Path) -> None:
    row = run_own(tmp_path, "--error-after", "3").row("own")
    assert row["run"] == "run_failed"
    assert "simulated failure" in row["failure"]["why"]
