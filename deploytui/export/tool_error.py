"""What the tool itself may have added to a candidate's numbers, and what its load was answered. Pure."""

from collections.abc import Iterable
from typing import Any

from deploytui.export.plain import plain
from deploytui.record.facts import Distribution
from deploytui.record.fidelity import cut_off, failures, late_sends, tells_all, tool_phrases
from deploytui.record.measured import Metrics, ToolError
from deploytui.units import ms

LATER_FIELDS = (
    *("path", "lag_ms_p50", "extra_multi_chunk_read_share", "late_sends", "late_send_ms_max"),
    *("workers", "worker_cpu_shares"),
)
"""What records of early versions lack; read from one, they would have a default that nobody measured."""


def tool_error(metrics: Metrics | None) -> dict[str, Any]:
    """All fields of the tool's error, None where they are not known; late sends are None in a closed loop."""
    if metrics is None:
        return dict.fromkeys(ToolError.__struct_fields__)
    fields: dict[str, Any] = plain(metrics.tool)
    fields["late_sends"] = late_sends(metrics)
    return fields if tells_all(metrics.tool) else {**fields, **dict.fromkeys(LATER_FIELDS)}


def load_lines(metrics: Metrics) -> Iterable[str]:
    """Failed requests by kind, the latencies of an open loop from the scheduled time, and the tool's own error."""
    cut = cut_off(metrics)
    if kinds := failures(metrics):
        yield f"failed: {metrics.requests - metrics.ok - cut} of {metrics.requests} requests ({kinds})"
    if cut:
        yield f"cut off by the end of the load, and not counted: {cut} of {metrics.requests} requests"
    due = [
        f"{title} {_percentiles(values)}"
        for title, values in (("TTFT", metrics.ttft_scheduled), ("E2E", metrics.e2e_scheduled))
        if values is not None
    ]
    if due:
        yield f"from the scheduled time: {'; '.join(due)}"
    yield f"tool: {'; '.join(tool_phrases(metrics))}"


def _percentiles(values: Distribution) -> str:
    figures = ((name, ms(getattr(values, name))) for name in ("p50", "p95", "p99"))
    return ", ".join(f"{name} {'–' if value is None else f'{value:.1f} ms'}" for name, value in figures)
