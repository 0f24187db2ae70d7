"""How long bytes waited, and which merged reads were our own doing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.meter import COARSE_NS, FINE_NS, Meter

MS = 1_000_000


def test_nothing_read_is_nothing_known() -> None:
    meter = Meter()
    assert meter.percentile_ms(50) is None
    assert meter.max_ms is None
    assert meter.extra_merged == 0


@given(st.lists(st.integers(0, 6_000 * MS), min_size=1), st.sampled_from([50, 90, 99]))
def test_a_percentile_is_no_less_than_the_rank_it_names_and_no_more_than_a_cell_above(waits: list[int], q: int) -> None:
    meter = Meter()
    for wait in waits:
        meter.add(wait)
    rank = sorted(waits)[max(1, -(-len(waits) * q // 100)) - 1]
    told = meter.percentile_ms(q)
    assert told is not None
    assert meter.max_ms == max(waits) / 1e6
    cell = FINE_NS if rank < FINE_NS * 4096 else COARSE_NS if rank < COARSE_NS * 4096 else max(waits)
    assert rank <= told * 1e6 + 1 <= rank + cell + 2


@pytest.mark.parametrize(
    ("prompt", "prompt_merged", "late", "late_merged", "extra"),
    [
        (1000, 0, 100, 40, 40),  # a server of single tokens: every merge was made by reading late
        (1000, 1000, 100, 100, 0),  # a server that sends four tokens at a time
        (1000, 500, 100, 80, 30),
        (10, 10, 100, 100, 100),  # too few prompt reads to know the server's own way
        (1000, 10, 0, 0, 0),
    ],
)
def test_merges_beyond_the_servers_own_are_ours(
    prompt: int, prompt_merged: int, late: int, late_merged: int, extra: int
) -> None:
    meter = Meter()
    for k in range(prompt):
        meter.add(5_000)
        if k < prompt_merged:
            meter.add_merged(late=False)
    for k in range(late):
        meter.add(5 * MS)
        if k < late_merged:
            meter.add_merged(late=True)
    assert meter.extra_merged == extra
    assert (meter.reads, meter.merged) == (prompt + late, prompt_merged + late_merged)
