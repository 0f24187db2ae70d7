"""What a session says of a load while it runs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploytui.load.orders import Snapshot
from deploytui.record.events import Planned
from deploytui.record.planned import PlannedCandidate
from deploytui.run.recorder import Recorder
from deploytui.run.ticker import Ticker
from deploytui.session.folder import new_session
from deploytui.session.journal import Journal

SECOND = 1_000_000_000
pytestmark = pytest.mark.anyio


@pytest.fixture
async def ticker(tmp_path: Path) -> Ticker:
    """A ticker that watches the candidate `a`."""
    folder = new_session(tmp_path, "x", datetime.now(UTC))
    recorder = Recorder(Journal.open(folder.journal)[0], complain=lambda _: None)
    rows = (PlannedCandidate(name="a", engine="mock", artifact=""),)
    recorder.say(Planned(at_ns=1, candidates=rows, steps=(), workload_key="k"))
    found = Ticker(recorder, folder)
    await found.watch("a", ())
    return found


def _hear(ticker: Ticker, *points: tuple[float, int]) -> None:
    for at_s, chunks in points:
        ticker.hear(
            Snapshot(
                at_ns=int(at_s * SECOND),
                total=10,
                done=1,
                failed=0,
                in_flight=1,
                chunks=chunks,
                output_tokens=20,
                finished_chunks=10,
                ttft_sum_s=0.1,
                ttft_n=1,
                tpot_sum_s=0.01,
                tpot_n=1,
            )
        )


def _rates(ticker: Ticker) -> list[float]:
    return [point.last for point in ticker._recorder.state.candidates["a"].tokens.points()]


async def test_a_rate_is_of_tokens_not_of_chunks(ticker: Ticker) -> None:
    ticker.begin_load()
    _hear(ticker, (0.0, 0), (1.0, 30))
    ticker._tick()
    assert _rates(ticker) == [60.0]


async def test_a_short_stretch_is_no_rate_but_is_not_lost(ticker: Ticker) -> None:
    ticker.begin_load()
    _hear(ticker, (0.0, 0), (0.1, 20))
    ticker._tick()
    assert _rates(ticker) == []
    _hear(ticker, (1.0, 30))
    ticker._tick()
    assert _rates(ticker) == [60.0]


async def test_the_end_of_a_load_adds_no_burst(ticker: Ticker) -> None:
    ticker.begin_load()
    _hear(ticker, (0.0, 0), (1.0, 30))
    ticker._tick()
    _hear(ticker, (1.1, 50))
    ticker.end_load()
    assert _rates(ticker) == [60.0]


async def test_a_load_that_is_over_at_once_has_a_rate_all_the_same(ticker: Ticker) -> None:
    ticker.begin_load()
    _hear(ticker, (0.0, 0), (0.2, 6))
    ticker.end_load()
    assert _rates(ticker) == [pytest.approx(60.0)]


async def test_loads_are_not_mixed(ticker: Ticker) -> None:
    ticker.begin_load()
    _hear(ticker, (0.0, 0), (1.0, 30))
    ticker.end_load()
    ticker.begin_load()
    _hear(ticker, (5.0, 0), (6.0, 15))
    ticker.end_load()
    assert _rates(ticker) == [60.0, 30.0]
