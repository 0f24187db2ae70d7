"""What the tool may have added to the numbers or left out, in words for the screen, the plain view and the table."""

from deploytui.record.measured import Metrics, ToolError
from deploytui.record.trace import CUT_OFF

MISSING = "–"
STAMPS = {"kernel": "kernel stamps", "user": "user-space stamps", "mixed": "kernel and user-space stamps"}


def tells_all(tool: ToolError) -> bool:
    """Whether path, late sends and the number of workers were recorded; records of early versions lack them."""
    return bool(tool.worker_cpu_shares)


def tool_phrases(metrics: Metrics) -> tuple[str, ...]:
    """Clock and path, lag, reads with several chunks, late sends of an open loop, each worker's CPU.

    What is not known is a dash.
    """
    tool = metrics.tool
    path = tool.path if tells_all(tool) else MISSING
    return (
        f"{_stamps(tool)} over {path}, clock jumps {tool.clock_jumps}",
        f"lag p50 {_ms(tool.lag_ms_p50)} p99 {_ms(tool.lag_ms_p99)} max {_ms(tool.lag_ms_max)}",
        f"several chunks in {_percent(tool.multi_chunk_read_share)} of reads, "
        f"{_percent(tool.extra_multi_chunk_read_share)} read late",
        *_late_sends(metrics),
        f"worker CPU {_cpu(tool)}",
    )


def tool_brief(tool: ToolError) -> str:
    """The clock and the lag in a few words, and the busiest worker where nothing was too much for it."""
    cpu = "" if tool.client_bound else f", CPU {_percent(tool.worker_cpu_share)}"
    return f"{_stamps(tool)}, lag p99 {_ms(tool.lag_ms_p99)}{cpu}"


def client_bound(tool: ToolError) -> str | None:
    """`client_bound` with what shows it and what to do; None when the worker kept up."""
    if not tool.client_bound:
        return None
    return f"client_bound: {tool.client_bound_why}" if tool.client_bound_why else "client_bound"


def late_sends(metrics: Metrics) -> int | None:
    """Requests sent late; None in a closed loop, which has no schedule, and when it was not recorded."""
    late = metrics.tool.late_sends
    return late if tells_all(metrics.tool) and (late or metrics.ttft_scheduled is not None) else None


def cut_off(metrics: Metrics) -> int:
    """Requests that the load's own end cut off; they count neither as successes nor as failures."""
    return metrics.errors.get(CUT_OFF, 0)


def failures(metrics: Metrics) -> str:
    """The failed requests by kind, such as `http_429 12, timeout 1`; empty when none failed."""
    return ", ".join(f"{kind} {count}" for kind, count in sorted(metrics.errors.items()) if kind != CUT_OFF)


def _late_sends(metrics: Metrics) -> tuple[str, ...]:
    late = late_sends(metrics)
    if late is None:
        return ()
    return (f"late sends {late}, worst {_ms(metrics.tool.late_send_ms_max)}" if late else "late sends 0",)


def _stamps(tool: ToolError) -> str:
    return STAMPS.get(tool.clock, f"{tool.clock} stamps")


def _cpu(tool: ToolError) -> str:
    return " ".join(map(_percent, tool.worker_cpu_shares or (tool.worker_cpu_share,)))


def _ms(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:.0f} ms" if value >= 100 else f"{value:.2f} ms"


def _percent(share: float | None) -> str:
    """A share in %, two digits where it is small."""
    if share is None:
        return MISSING
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2f} %"
