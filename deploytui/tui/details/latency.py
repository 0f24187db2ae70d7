"""The Latency tab: distributions of the selected and of the marked candidates."""

from collections.abc import Iterable, Sequence

from deploytui.record.facts import Distribution
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState
from deploytui.tui.cells import newest_metrics
from deploytui.tui.figures import MISSING, grouped, number, percent
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.units import ms

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
ROWS = (("TTFT", "ttft"), ("TPOT", "tpot"), ("ICL", "icl"), ("E2E", "e2e"))


def latency_lines(candidate: CandidateState, marked: Sequence[CandidateState] = ()) -> tuple[Line, ...]:
    """A table of the candidate, one more for each marked other."""
    others = [row for row in marked if row.name != candidate.name]
    return tuple(part for row in (candidate, *others) for part in (*table(row), ()))[:-1]


def table(candidate: CandidateState) -> Iterable[Line]:
    """Each latency with n and its statistics [ms], then rates and success."""
    metrics, firm = newest_metrics(candidate)
    state = "" if firm else "  (of the last repeat)" if metrics else "  not measured"
    yield line(Piece(visible(candidate.name), "strong"), Piece(state, "dim"))
    if metrics is None:
        return
    heads = "".join(f"{head:>8}" for head in STATISTICS)
    yield line(Piece(f"{'ms':<5}{'n':>6}{heads}", "dim"))
    for title, key in ROWS:
        yield _row(title, getattr(metrics, key))
    yield from rates(metrics)


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
    errors = ", ".join(f"{visible(kind)} {count}" for kind, count in sorted(metrics.errors.items()))
    yield line(
        f"success {percent(success.value)} of {grouped(success.n)}",
        Piece(f" · {errors}", "bad") if errors else "",
        Piece(f" · {metrics.short_outputs} shorter than asked", "warn") if metrics.short_outputs else "",
        f" · {metrics.tokens_per_chunk:.2f} tokens a chunk" if metrics.tokens_per_chunk is not None else "",
        f" · lag of the tool p99 {metrics.tool.lag_ms_p99:.2f} ms" if metrics.tool.lag_ms_p99 is not None else "",
    )
    few = [title for title, key in ROWS if 0 < getattr(metrics, key).n < 100]
    if few:
        yield line(Piece(f"{MISSING} = too few samples: p99 needs 100, p95 needs 20", "dim"))
