"""A keeper drains what its engine writes for its whole life, whatever the disk does."""

import re
import signal
import sys
from pathlib import Path

import pytest

from tests.host.keepers import MOCK, keeper

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are judged by /proc")


def test_50_megabytes_of_log_are_drained_within_the_caps(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order((*MOCK, "--log-mb", "50", "--fail-load", "the very last words"))
        kept.hear("started")
        assert kept.hear("exited", 60)["code"] == 1
        older = tmp_path / "engine.tail.log.1"
        sizes = [path.stat().st_size for path in (kept.log, older, kept.tail)]
        assert sizes[0] <= 16 << 20
        assert sizes[1] + sizes[2] <= 8 << 20
        assert sizes[1] > 3 << 20
        assert sizes[0] > (16 << 20) - 4096
        assert kept.text.splitlines()[-1].startswith("[deploytui] this log is full; what follows is in engine.tail.log")
        last = older.read_bytes() + kept.tail.read_bytes()
        assert last.endswith(b"the very last words\n")
        numbers = [int(number) for number in re.findall(rb" (\d{8})\n", last)]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        kept.hear("gone")


def test_a_full_disk_does_not_block_the_engine(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("head", "-c", "8000000", "/dev/zero"), log="/dev/full")
        kept.hear("started")
        assert kept.hear("exited")["code"] == 0


def test_a_log_folder_that_vanished_does_not_block_the_engine(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("head", "-c", "8000000", "/dev/zero"), log=str(tmp_path / "nowhere" / "engine.log"))
        kept.hear("started")
        assert kept.hear("exited")["code"] == 0


def test_the_log_can_be_read_while_the_engine_runs(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("sh", "-c", "printf 'no end of line'; sleep 3600"))
        kept.hear("started")
        assert kept.logged("no end of line")
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["signal"] == signal.SIGTERM
