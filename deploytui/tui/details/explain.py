"""What a number of the grid is: its formula, its n, what was left out."""

from collections.abc import Iterable

from deploytui.definitions import DEFINITIONS_VERSION, SAMPLES_NEEDED, TEXTS
from deploytui.record.facts import Distribution, Share
from deploytui.record.fidelity import client_bound, cut_off, failures, tool_phrases
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState
from deploytui.tui.cells import View, newest_metrics, peak_bytes
from deploytui.tui.details.live import count, labelled
from deploytui.tui.figures import grouped, latency, number, share, size
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible

EXPLAINED = ("memory", "tokens", "ttft", "tpot", "quality")


def explain_title(column: str, candidate: CandidateState, view: View) -> str:
    """What is explained, and of whom."""
    words = {
        "memory": f"peak {'GPU' if view.gpu else 'host'} memory",
        "tokens": "output tokens/s",
        "ttft": f"TTFT {view.quantile}",
        "tpot": f"TPOT {view.quantile}",
        "quality": "quality",
    }
    return f"{words.get(column, column)} of {visible(candidate.name)}"


def explain_lines(column: str, candidate: CandidateState, view: View) -> tuple[Line, ...]:
    """The value with its sample, the formula, what was left out of it."""
    metrics, firm = newest_metrics(candidate)
    match column:
        case "memory":
            return (*_memory(candidate, view), (), *formula("peak_gpu" if view.gpu else "peak_host"))
        case "ttft" | "tpot":
            values = getattr(metrics, column) if metrics else None
            due = metrics.ttft_scheduled if metrics and column == "ttft" else None
            words = (column, *(["ttft_scheduled"] if due else []), "percentile")
            return (*_latency(values, firm), *_due(due), (), *formula(*words), (), *left_out(metrics))
        case "tokens":
            return (*_rate(candidate, metrics), (), *formula("output_tok_s", "output_tokens"), (), *left_out(metrics))
        case _:
            return (*_quality(candidate), (), *formula("quality"))


def formula(*words: str) -> Iterable[Line]:
    """The definitions, in the words of the one module that holds them."""
    for word in words:
        yield line(TEXTS[word])
    yield line(Piece(f"definitions {DEFINITIONS_VERSION}", "dim"))


def left_out(metrics: Metrics | None) -> Iterable[Line]:
    """Which requests the number does not count, and why."""
    if metrics is None:
        return
    cut, kinds = cut_off(metrics), visible(failures(metrics))
    failed = metrics.requests - metrics.ok - cut
    reason = f" ({kinds})" if kinds else ""
    yield labelled("left out", f"{grouped(failed)} failed of {grouped(metrics.requests)} requests{reason}; warm-up")
    if cut:
        yield labelled("", f"{grouped(cut)} cut off by the load's end")
    for flag, many in sorted(metrics.flags.items()):
        yield labelled("flagged", f"{visible(flag)}: {grouped(many)} requests, counted")
    label = "tool"
    for phrase in tool_phrases(metrics):
        yield labelled(label, visible(phrase))
        label = ""
    if (bound := client_bound(metrics.tool)) is not None:
        yield line(Piece("✘ ", "bad"), Piece(visible(bound), "bad"))


def _due(values: Distribution | None) -> Iterable[Line]:
    """The same latency of an open loop, from the time each request should have left."""
    if values is not None:
        figures = " ".join(f"{key} {latency(getattr(values, key))}" for key in ("p50", "p95", "p99"))
        yield labelled("scheduled", figures, Piece(f"  n={grouped(values.n)}", "dim"))


def _latency(values: Distribution | None, firm: bool) -> Iterable[Line]:
    if values is None:
        yield line(Piece("not measured", "dim"))
        return
    yield labelled("n", grouped(values.n), Piece("" if firm else "  of the last repeat; more will follow", "dim"))
    for key in ("mean", "std", "min", "p50", "p90", "p95", "p99", "max"):
        value, needed = getattr(values, key), SAMPLES_NEEDED.get(key, 1)
        few = f"  insufficient_samples: needs {needed}" if value is None and values.n < needed else ""
        yield labelled(key, latency(value), Piece(few, "dim"))


def _rate(candidate: CandidateState, metrics: Metrics | None) -> Iterable[Line]:
    if candidate.metrics is None and candidate.tokens.last is not None:
        yield labelled("now", f"{number(candidate.tokens.last)} tok/s", Piece("  of the last second", "dim"))
    if metrics is not None:
        yield labelled("output", f"{number(metrics.output_tok_s)} tok/s")
        yield labelled("steady", f"{number(metrics.steady_output_tok_s)} tok/s")
        tokens = metrics.output_tokens
        counts = f"{count(tokens.min)} … {count(tokens.max)} tokens a request, n={grouped(tokens.n)}"
        yield labelled("over", f"{number(metrics.duration_s)} s", Piece(f"  {counts}", "dim"))


def _memory(candidate: CandidateState, view: View) -> Iterable[Line]:
    yield labelled("peak", size(peak_bytes(candidate, view)))
    memory = candidate.memory
    if memory is not None:
        yield labelled("loaded", size(memory.load_gpu_bytes if view.gpu else memory.load_host_bytes))
        if memory.peak_allocated_bytes is not None:
            yield labelled("allocated", size(memory.peak_allocated_bytes), Piece("  as the framework reports", "dim"))
        if memory.peak_reserved_bytes is not None:
            yield labelled("reserved", size(memory.peak_reserved_bytes), Piece("  as the framework reports", "dim"))
        yield labelled("source", visible(memory.source))


def _quality(candidate: CandidateState) -> Iterable[Line]:
    quality = candidate.quality
    if quality is None:
        yield line(Piece("not measured", "dim"))
        return
    for label, value in (("score", quality.score), ("answered", quality.answered), ("format", quality.format_pass)):
        yield labelled(label, _share(value))


def _share(value: Share) -> str:
    around = f"  95 % interval {share(value.low)} … {share(value.high)}" if value.low is not None else ""
    return f"{share(value.value)}  n={grouped(value.n)}{around}"
