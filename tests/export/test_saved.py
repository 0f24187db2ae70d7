"""A saved session: one TOML file that gives the same numbers, verdicts and decision wherever it is opened."""

import math
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploytui.errors import ProfileError, UsageError
from deploytui.export.plain import plain, without_none
from deploytui.export.reopen import series_from, state_from_saved
from deploytui.export.result import result
from deploytui.export.saved import MOST_POINTS, save_session, saved_profile, saved_text, series_table
from deploytui.profile.files import read_profile
from deploytui.profile.parse import parse_profile
from deploytui.profile.places import base_dir_of
from deploytui.record.events import Measured, Summed
from deploytui.record.facts import ColdStart, Distribution, MemoryUse
from deploytui.record.fold import fold, fold_all
from deploytui.record.series import Point, Series
from deploytui.record.state import SessionState
from deploytui.session.trust import fingerprint, trusted
from tests.export.parts import WITH_MOCK, metrics, profile
from tests.export.sessions import session_folder, started, whole_state

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def reopened(state: SessionState, text: str = WITH_MOCK) -> SessionState:
    return state_from_saved(parse_profile(saved_text(profile(text), state), "saved.toml"))


def comparable(state: SessionState) -> dict[str, Any]:
    """The result without foreign settings, whose nulls TOML can't hold."""
    data = result(profile(WITH_MOCK), state)
    for row in data["candidates"]:
        row["runtime"].pop("settings")
        row.pop("kv_cache")
    return data


@pytest.mark.parametrize("choices", [{}, {"mock": True}, {"gpu": True}])
def test_a_saved_session_gives_the_same_numbers_verdicts_and_decision(choices: dict[str, bool]) -> None:
    state = whole_state(**choices)
    again = reopened(state)
    assert again.decision == state.decision
    assert again.environment == state.environment
    assert again.ended == state.ended
    assert again.notes == state.notes
    assert again.gpu_used == state.gpu_used
    assert again.simulated == state.simulated
    assert comparable(again) == comparable(state)


def test_series_come_back_point_for_point() -> None:
    state = whole_state(gpu=True)
    before, after = state.candidates["fast"], reopened(state).candidates["fast"]
    assert (after.tokens, after.host, after.gpu) == (before.tokens, before.host, before.gpu)
    assert len(after.tokens.points()) == 5


def test_records_that_have_no_result_yet_are_saved_as_such() -> None:
    again = reopened(fold_all([started()]))
    assert list(again.candidates) == ["fast", "absent", "broken", "dropped", "pretend"]
    assert again.decision is None
    assert again.candidates["fast"].status is None
    assert again.candidates["fast"].metrics is None


def test_saving_twice_changes_nothing() -> None:
    once = saved_text(profile(), whole_state())
    parsed = parse_profile(once, "saved.toml")
    assert saved_text(parsed, state_from_saved(parsed)) == once


def test_a_new_session_of_a_saved_profile_keeps_none_of_the_old_results() -> None:
    old = saved_profile(profile(), whole_state())
    new = saved_profile(old, fold_all([started()]))
    assert isinstance(new.session, dict)
    assert "ended" not in new.session
    assert isinstance(new.decision, msgspec.UnsetType)
    assert "measured" not in msgspec.to_builtins(new.results[0]) or not new.results[0]["measured"]


def test_the_configuration_is_as_it_was_asked() -> None:
    asked, saved = profile(), parse_profile(saved_text(profile(), whole_state()), "saved.toml")
    for name in ("name", "baseline", "workload", "quality", "gates", "candidates", "timeouts"):
        assert getattr(saved, name) == getattr(asked, name)
    assert saved.saved


def test_a_saved_result_names_what_is_missing() -> None:
    fast, absent, *_ = saved_profile(profile(), whole_state()).results
    assert "peak_gpu_gib" in fast["missing"]
    assert "ttft_ms.p99" in fast["missing"]
    assert "ttft_ms" in absent["missing"]
    assert (absent["status"], absent["failure"]["kind"]) == ("unsupported", "not_installed")


def walk(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in walk(part)]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in walk(part)]
    return [value]


def test_a_saved_profile_holds_neither_null_nor_nan() -> None:
    odd = metrics(output_tok_s=math.inf, request_s=math.nan)
    state = fold(whole_state(mock=True), Measured(at_ns=50, candidate="fast", metrics=odd))
    saved = saved_profile(profile(WITH_MOCK), state)
    leaves = walk([saved.session, saved.environment, saved.decision, saved.results])
    assert all(leaf is not None for leaf in leaves)
    assert all(math.isfinite(leaf) for leaf in leaves if isinstance(leaf, float))
    assert reopened(state).candidates["fast"].metrics == metrics(output_tok_s=None, request_s=None)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
@given(FINITE, FINITE, st.floats(), st.text(), st.integers(0, 2**40))
def test_any_numbers_and_texts_survive_the_file(mean: float, rate: float, wild: float, text: str, count: int) -> None:
    ttft = Distribution(n=3, mean=mean, p50=rate, max=wild)
    state = fold_all(
        [
            Measured(at_ns=50, candidate="fast", metrics=metrics(ttft=ttft, output_tok_s=rate, errors={text: count})),
            Summed(
                at_ns=51, candidate="fast", memory=MemoryUse(peak_host_bytes=count), cold_start=ColdStart(load_s=mean)
            ),
        ],
        whole_state(),
    )
    again = reopened(state).candidates["fast"]
    assert again.metrics is not None
    assert (again.metrics.ttft.mean, again.metrics.output_tok_s) == (mean, rate)
    assert again.metrics.ttft.max == (wild if math.isfinite(wild) else None)
    assert again.metrics.errors == {text: count}
    assert again.memory == MemoryUse(peak_host_bytes=count)


def test_a_long_series_is_thinned_and_keeps_its_peak() -> None:
    points = tuple(Point(at, 1.0, 1000.0 if at == 777 else 2.0, 1.5) for at in range(2000))
    table = series_table(Series(fine=points))
    assert len(table["at_ns"]) <= MOST_POINTS
    assert max(table["max"]) == 1000.0
    assert table["at_ns"][-1] == 1999
    assert max(point.max for point in series_from(table, "x").points()) == 1000.0


def test_a_point_that_is_no_number_is_left_out() -> None:
    table = series_table(Series(fine=(Point(1, 1.0, math.inf, 1.0), Point(2, 1.0, 2.0, 1.0))))
    assert table["at_ns"] == [2]


def test_a_profile_without_results_says_what_to_do() -> None:
    with pytest.raises(ProfileError, match="holds no results"):
        state_from_saved(profile())


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('status = "load_success"', 'status = "fine"', r"results\[0\]"),
        ('hostname = "node-7"\nboot_id', "boot_id", "environment"),
        ("pid = 4711", 'pid = "many"', r"session\.(first_)?started"),
        ('decision = "accept"\ntitle', 'decision = "perhaps"\ntitle', "decision"),
    ],
)
def test_saved_results_that_were_edited_wrongly_are_told_with_their_place(old: str, new: str, place: str) -> None:
    text = saved_text(profile(), whole_state())
    assert old in text
    with pytest.raises(ProfileError, match=place):
        state_from_saved(parse_profile(text.replace(old, new), "saved.toml"))


def test_series_whose_columns_do_not_fit_are_told() -> None:
    with pytest.raises(ProfileError, match="here"):
        series_from({"at_ns": [1, 2], "min": [1.0], "max": [1.0], "last": [1.0]}, "here")
    with pytest.raises(ProfileError, match="here"):
        series_from({"at_ns": [1]}, "here")


def test_saving_writes_one_file_that_opens_without_the_session(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    (tmp_path / "out").mkdir()
    path = save_session(folder, tmp_path / "out" / "saved.toml")
    folder.journal.unlink()
    folder.profile.unlink()
    state = state_from_saved(read_profile(path))
    assert state.decision == whole_state().decision
    assert [entry.name for entry in path.parent.iterdir()] == ["saved.toml"]


def test_a_saved_session_need_not_be_confirmed_again(tmp_path: Path) -> None:
    path = save_session(session_folder(tmp_path), tmp_path / "saved.toml")
    assert trusted(tmp_path, fingerprint(path.read_text(encoding="utf-8")))


def test_saving_into_a_folder_names_the_file_by_the_session(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    assert save_session(folder, tmp_path) == tmp_path / f"{folder.id}.toml"


def test_saving_over_a_file_needs_to_be_asked_for(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    target = tmp_path / "mine.toml"
    target.write_text("# my comments\n", encoding="utf-8")
    with pytest.raises(UsageError, match="exists already"):
        save_session(folder, target)
    assert target.read_text(encoding="utf-8") == "# my comments\n"
    save_session(folder, target, overwrite=True)
    assert read_profile(target).saved


def test_relative_paths_of_a_saved_session_still_start_where_it_was_run(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "else" / "where"
    home.mkdir()
    elsewhere.mkdir(parents=True)
    state = whole_state(base_dir=str(home))
    saved = saved_profile(profile(), state)
    assert base_dir_of(saved, elsewhere / "saved.toml") == home
    assert base_dir_of(profile(), elsewhere / "plain.toml") == elsewhere
    home.rmdir()
    assert base_dir_of(saved, elsewhere / "saved.toml") == elsewhere


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.booleans(),
        lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    )
)
def test_anything_can_be_made_fit_for_toml(value: Any) -> None:
    table = without_none(plain({"v": value}))
    assert all(leaf is not None for leaf in walk(table))
    assert all(math.isfinite(leaf) for leaf in walk(table) if isinstance(leaf, float))


def test_the_file_reads_as_toml_with_tables_for_people() -> None:
    data = tomllib.loads(saved_text(profile(), whole_state()))
    assert data["results"][0]["name"] == "fast"
    assert data["decision"]["winner"] == "fast"
    assert data["environment"]["host"]["hostname"] == "node-7"
    assert data["session"]["base_dir"] == "/profiles"
