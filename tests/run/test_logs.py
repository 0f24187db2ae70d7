"""The newest line of an engine's log, wherever it stands."""

from pathlib import Path

from deploytui.run.failing import last_line


def test_the_newest_line_is_in_the_tail_once_the_log_is_full(tmp_path: Path) -> None:
    assert last_line(tmp_path) == ""
    (tmp_path / "engine.log").write_text("first\nthis log is full\n")
    assert last_line(tmp_path) == "this log is full"
    (tmp_path / "engine.tail.log.1").write_text("older\n")
    assert last_line(tmp_path) == "older"
    (tmp_path / "engine.tail.log").write_text("\nnewest\n\n")
    assert last_line(tmp_path) == "newest"
