from pathlib import Path

from deploytui.record.events import AnyEvent, Planned, encode
from deploytui.record.planned import PlannedCandidate
from deploytui.session.folder import SessionFolder
from deploytui.session.listing import latest, list_sessions, session_row
from deploytui.session.lock import Holder, SessionLock
from tests.session.support import decided, ended, made, note, started
from tests.session.test_lock import write


def written(tmp_path: Path, *events: AnyEvent) -> SessionFolder:
    folder = made(tmp_path)
    folder.journal.write_bytes(b"".join(encode(event) for event in events))
    return folder


def planned(*names: str) -> Planned:
    rows = tuple(PlannedCandidate(name=name, engine="mock", artifact="x") for name in names)
    return Planned(at_ns=2, candidates=rows, steps=(), workload_key="k")


def test_a_finished_session_shows_its_decision(tmp_path: Path) -> None:
    row = session_row(written(tmp_path, started("chat", 5.0), planned("a", "b"), decided("a"), ended()))
    assert (row.name, row.started_wall_s, row.state, row.decision) == ("chat", 5.0, "ended", "accept")
    assert (row.winner, row.candidates, row.final, row.exit_status, row.simulated) == ("a", 2, True, 0, False)


def test_a_running_session_shows_the_decision_so_far(tmp_path: Path) -> None:
    folder = written(tmp_path, started(), planned("a"), decided("b"), decided(None, final=False), note("x"))
    with SessionLock.acquire(folder):
        row = session_row(folder)
    assert (row.state, row.final, row.winner) == ("running", False, None)


def test_a_killed_session_died_and_a_resumed_one_is_not_ended(tmp_path: Path) -> None:
    assert session_row(written(tmp_path, started())).state == "died"
    resumed = session_row(written(tmp_path, started(), ended(), started("later", 9.0)))
    assert (resumed.state, resumed.started_wall_s, resumed.exit_status) == ("died", 1.0, None)


def test_a_session_of_another_host_is_elsewhere(tmp_path: Path) -> None:
    folder = written(tmp_path, started())
    write(folder, Holder(hostname="gpu-node-99", pid=1))
    assert session_row(folder).state == "elsewhere"


def test_the_ends_of_a_long_journal_are_enough(tmp_path: Path) -> None:
    filler = [note("x" * 1000)] * 3000
    row = session_row(written(tmp_path, started(), planned("a"), *filler, decided("a"), *filler[:200], ended()))
    assert (row.winner, row.state, row.candidates) == ("a", "ended", 1)


def test_words_inside_a_text_are_not_taken_for_events(tmp_path: Path) -> None:
    row = session_row(written(tmp_path, started(), note('\n{"kind":"session_ended","at_ns":1,"exit_status":0}')))
    assert row.state == "died"


def test_broken_folders_are_rows_all_the_same(tmp_path: Path) -> None:
    good = written(tmp_path, started("good", 7.0), ended())
    rubbish = made(tmp_path)
    rubbish.journal.write_bytes(b"\xff\xfe\n{}\n")
    empty = made(tmp_path)
    empty.journal.touch()
    torn = made(tmp_path)
    torn.journal.write_bytes(encode(started("torn", 3.0)) + encode(decided("a"))[:-5])
    (tmp_path / "state" / "no-session").mkdir()
    (tmp_path / "state" / "file").touch()
    rows = list_sessions(tmp_path / "state")
    assert [row.id for row in rows][:2] == [good.id, torn.id]
    assert {row.id for row in rows} == {good.id, rubbish.id, empty.id, torn.id}
    assert rows[1].decision is None


def test_the_latest_running_session_is_found(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert latest(state) is None
    older, newer = written(tmp_path, started("a", 1.0)), written(tmp_path, started("b", 2.0))
    assert latest(state) == newer
    assert latest(state, running_only=True) is None
    with SessionLock.acquire(older):
        assert latest(state, running_only=True) == older
