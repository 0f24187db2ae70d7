"""The Latency tab: distributions of the selected and of the marked candidates."""

from collections.abc import Iterable, Sequence

from deploytui.record.facts import Distribution
from deploytui.record.fidelity import client_bound, cut_off, failures, tool_brief, tool_phrases
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState
from deploytui.tui.cells import newest_metrics
from deploytui.tui.figures import MISSING, grouped, number, percent
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.units import ms

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
ROWS = (("TTFT", "ttft"), ("TPOT", "tpot"), ("ICL", "icl"), ("E2E", "e2e"))
SCHEDULED = (("TTFT", "ttft_scheduled"), ("E2E", "e2e_scheduled"))


def latency_lines(candidate: CandidateState, marked: Sequence[CandidateState] = ()) -> tuple[Line, ...]:
    """A table of the candidate, one more for each marked other."""
    others = [row for row in marked if row.name != candidate.name]
    return tuple(part for row in (candidate, *others) for part in (*table(row), ()))[:-1]


def table(candidate: CandidateState) -> Iterable[Line]:
    """Each latency with n and its statistics [ms], then rates, success, and what the tool itself may have added."""
    metrics, firm = newest_metrics(candidate)
    state = "" if firm else "  (of the last repeat)" if metrics else "  not measured"
    tool = _brief(metrics) if metrics else ()
    yield line(Piece(visible(candidate.name), "strong"), Piece(state, "dim"), *tool)
    if metrics is None:
        return
    heads = "".join(f"{head:>8}" for head in STATISTICS)
    yield line(Piece(f"{'ms':<5}{'n':>6}{heads}", "dim"))
    for title, key in ROWS:
        yield _row(title, getattr(metrics, key))
    yield from scheduled(metrics)
    yield from rates(metrics)
    yield from tool_lines(metrics)


def _brief(metrics: Metrics) -> Line:
    """Clock, lag and CPU for the first line, which is seen without scrolling, and whether they spoil the rest."""
    bound = Piece("  ✘ client_bound" if metrics.tool.client_bound else "", "bad")
    return line(bound, Piece(f"  {visible(tool_brief(metrics.tool))}", "dim"))


def scheduled(metrics: Metrics) -> Iterable[Line]:
    """The latencies of an open loop from the time each request should have left."""
    rows = [(title, values) for title, key in SCHEDULED if (values := getattr(metrics, key)) is not None]
    if rows:
        yield line(Piece("from the scheduled time", "dim"))
    for title, values in rows:
        yield _row(title, values)


def tool_lines(metrics: Metrics) -> Iterable[Line]:
    """What the tool itself may have added, and whether it was the bottleneck."""
    label = "tool"
    for phrase in tool_phrases(metrics):
        yield line(Piece(f"{label:<6}", "dim"), visible(phrase))
        label = ""
    if (bound := client_bound(metrics.tool)) is not None:
        yield line(Piece("✘ ", "bad"), Piece(visible(bound), "bad"))


def _row(title: str, values: Distribution) -> Line:
    figures = "".join(f"{number(ms(getattr(values, key))):>8}" for key in STATISTICS)
    return line(f"{title:<5}", f"{grouped(values.n):>6}", figures)


def rates(metrics: Metrics) -> Iterable[Line]:
    """Throughput, success and what is special about the sample."""
    yield line(
        f"output {number(metrics.output_tok_s)} tok/s",
        f" · steady {number(metrics.steady_output_tok_s)}" if metrics.steady_output_tok_s is not None else "",
        f" · {number(metrics.request_s)} requests/s",
        f" · goodput {number(metrics.goodput)}/s" if metrics.goodput is not None else "",
    )
    success = metrics.success_rate
    errors, cut = visible(failures(metrics)), cut_off(metrics)
    yield line(
        f"success {percent(success.value)} of {grouped(success.n)}",
        Piece(f" · {errors}", "bad") if errors else "",
        Piece(f" · {grouped(cut)} cut off by the load's end", "warn") if cut else "",
        Piece(f" · {metrics.short_outputs} shorter than asked", "warn") if metrics.short_outputs else "",
        f" · {metrics.tokens_per_chunk:.2f} tokens a chunk" if metrics.tokens_per_chunk is not None else "",
    )
    few = [title for title, key in ROWS if 0 < getattr(metrics, key).n < 100]
    if few:
        yield line(Piece(f"{MISSING} = too few samples: p99 needs 100, p95 needs 20", "dim"))
