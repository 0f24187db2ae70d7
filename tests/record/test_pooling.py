"""Figures of any number of requests are those of their definitions, however the requests are cut up."""

from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.record.columns import RequestColumns
from deploytui.record.facts import Distribution
from deploytui.record.gaps import CELL_BITS, ListedGaps, burst_share, gap_distribution, median_step_s
from deploytui.record.measured import Metrics
from deploytui.record.metrics import RepeatSample, measure_many
from deploytui.record.trace import RequestRecord
from tests.record.plain_metrics import Repeat, described, figures, steady_tok_s

MS = 1_000_000
LATENCIES = ("ttfr", "ttft", "ttfo", "tpot", "e2e", "ttft_scheduled", "e2e_scheduled", "connect")
NOTHING = Distribution(n=0)


@st.composite
def a_record(draw: st.DrawFn, number: int) -> tuple[RequestRecord, list[int]]:
    """A request of any kind, with its stamps."""
    maybe = st.one_of(st.none(), st.integers(1, 300))
    sent = draw(st.integers(0, 50)) * MS
    steps = draw(st.lists(st.integers(0, 60 * MS), min_size=1, max_size=8))
    stamps = list(accumulate(steps, initial=sent + draw(st.integers(0, 40)) * MS))
    kind = draw(st.sampled_from(("ok", "ok", "ok", "reset", "cut_off")))
    tokens = draw(st.one_of(st.none(), st.just(len(stamps)), st.integers(0, 3)))
    due = draw(st.one_of(st.none(), st.just(sent - 2 * MS)))
    fields: dict[str, Any] = {
        "scheduled_ns": due,
        "connect_ns": draw(maybe),
        "first_chunk_ns": stamps[0],
        "first_token_ns": draw(st.sampled_from((stamps[0], None))),
        "first_content_ns": draw(st.sampled_from((stamps[0], None))),
        "last_token_ns": draw(st.sampled_from((stamps[-1], stamps[-1], None))),
        "chunks": draw(st.sampled_from((len(stamps), 0))),
        "asked_tokens": draw(st.sampled_from((None, 5))),
        "output_tokens": tokens,
        "prompt_tokens": draw(maybe),
        "finish_reason": draw(st.sampled_from(("stop", "length"))),
        "flags": draw(st.sampled_from(((), ("no_done",)))),
    }
    ok = kind == "ok"
    record = RequestRecord(
        id=number, sent_ns=sent, end_ns=stamps[-1] + MS, ok=ok, error_kind=None if ok else kind, **fields
    )
    return record, stamps


@st.composite
def a_repeat(draw: st.DrawFn) -> Repeat:
    rows = [draw(a_record(number)) for number in range(draw(st.integers(0, 12)))]
    return Repeat([record for record, _ in rows], {record.id: stamps for record, stamps in rows})


def sample(repeat: Repeat, blocks: int = 1) -> RepeatSample:
    """The repeat's requests added in so many blocks."""
    requests = RequestColumns()
    for start in range(blocks):
        requests.add(repeat.records[start::blocks])
    ok = {record.id for record in repeat.records if record.ok}
    stamps = [own for number, own in repeat.stamps.items() if number in ok]
    gaps = [later - earlier for own in stamps for earlier, later in pairwise(own)]
    return RepeatSample(requests, ListedGaps(gaps))


def measured(repeats: list[Repeat], target: int | None = None, blocks: int = 1) -> Metrics:
    samples = [sample(repeat, blocks) for repeat in repeats]
    return measure_many(samples, asked_tokens=4, target_concurrency=target, gates=None)


def near(found: Any) -> Any:
    """The figures of a struct, for comparison with others to a rounding error."""
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return pytest.approx({name: value for name, value in fields.items() if value is not None}, rel=1e-9, abs=1e-12)


def known(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


@given(st.lists(a_repeat(), max_size=3))
def test_all_figures_are_those_of_all_values_together(repeats: list[Repeat]) -> None:
    found, expected = measured(repeats), figures(repeats, 4)
    for name in (*LATENCIES, "icl"):
        assert known(expected[name]) == near(getattr(found, name) or NOTHING), name
    for name in ("prompt_tokens", "output_tokens"):
        assert known(expected[name]) == near(getattr(found, name)), name
    for name in ("requests", "ok", "short_outputs", "bounds"):
        assert getattr(found, name) == expected[name], name
    for name in ("duration_s", "output_tok_s", "request_s", "burst_share", "tokens_per_chunk"):
        assert getattr(found, name) == pytest.approx(expected[name]), name
    assert found.success_rate.n == expected["attempted"]


@given(st.lists(a_repeat(), min_size=1, max_size=2), st.integers(1, 5))
def test_the_steady_rate_is_that_of_every_instant_of_full_load(repeats: list[Repeat], target: int) -> None:
    unknown = any(record.ok and record.output_tokens is None for repeat in repeats for record in repeat.records)
    done = any(record.ok for repeat in repeats for record in repeat.records)
    expected = None if unknown or not done else steady_tok_s(repeats, target)
    assert measured(repeats, target).steady_output_tok_s == pytest.approx(expected)


@given(st.lists(a_repeat(), max_size=3), st.integers(1, 4), st.randoms())
def test_neither_blocks_nor_the_order_of_anything_matter(repeats: list[Repeat], blocks: int, chance: Any) -> None:
    mixed = [Repeat(chance.sample(list(repeat.records), len(repeat.records)), repeat.stamps) for repeat in repeats]
    chance.shuffle(mixed)
    assert measured(mixed, 2, blocks) == measured(repeats, 2)


GAPS = st.lists(
    st.one_of(st.integers(-MS, 0), st.integers(0, 3 << CELL_BITS), st.integers(0, 40 * MS), st.integers(0, 2**40)),
    max_size=150,
)


@given(st.lists(GAPS, max_size=4))
def test_gaps_pool_from_their_counts(groups: list[list[int]]) -> None:
    values = [gap * 1e-9 for gaps in groups for gap in gaps]
    pooled = [ListedGaps(gaps) for gaps in groups]
    assert known(described(values)) == near(gap_distribution(pooled))
    bursts = sum(gap < 200_000 for gaps in groups for gap in gaps)
    assert burst_share(pooled) == (bursts / len(values) if values else None)


@given(GAPS)
def test_percentiles_of_gaps_are_exact(gaps: list[int]) -> None:
    found, expected = gap_distribution([ListedGaps(gaps)]), described([gap * 1e-9 for gap in gaps])
    assert [getattr(found, name) for name in ("p50", "p90", "p95", "p99", "min", "max")] == [
        expected.get(name) for name in ("p50", "p90", "p95", "p99", "min", "max")
    ]


@pytest.mark.parametrize(
    ("gaps_ms", "step_ms"),
    [([], None), ([0, 0, 0], None), ([20], 20), ([0, 0, 0, 80, 0, 0, 0, 80], 80), ([10, 20], 15)],
)
def test_chunks_sent_together_are_one_step(gaps_ms: list[int], step_ms: float | None) -> None:
    found = median_step_s([ListedGaps(gap * MS for gap in gaps_ms)])
    assert found == (None if step_ms is None else pytest.approx(step_ms / 1e3))
