"""What a reader of the session should know of a load, beyond its numbers."""

from collections.abc import Iterator

from deploytui.load.orders import Report
from deploytui.plan.points import counted, places
from deploytui.profile.schema import Workload
from deploytui.record.keys import StepKey
from deploytui.record.planned import point_label
from deploytui.run.bench import Loaded

MANY_LATE = 0.01
"""Share of the requests of an open loop that may leave late without a word."""


def notable(workload: Workload, key: StepKey, loads: Loaded) -> Iterator[str]:
    """Sentences on a load that ended early, on answers 429 that were waited for, and on requests that left late."""
    reports = [report for _, report in loads]
    yield from _early(workload, _where(workload, key), reports)
    refused = sum(report.refused for order, report in loads if order.loop == "closed")
    if refused:
        yield (
            f"{_where(workload, key)}: {refused} answers were a 429. Their requests were asked again when the server "
            "wished; meanwhile fewer than the asked users were served."
        )
    sent, late = sum(report.requests for report in reports), sum(report.late_sends for report in reports)
    if late > MANY_LATE * sent:
        worst = max(report.late_send_ms_max or 0.0 for report in reports)
        yield (
            f"{_where(workload, key)}: {late} of {sent} requests left more than 1 ms late, the worst {worst:.0f} ms. "
            "Latencies from the scheduled time hold it; more load_workers or a lower rate avoid it."
        )


def _where(workload: Workload, key: StepKey) -> str:
    place = places(workload.load)[key.point]
    label = point_label(counted(workload.load), place) if len(places(workload.load)) > 1 else ""
    return f"repeat {(key.repeat or 0) + 1}" + (f" at {label}" if label else "")


def _early(workload: Workload, where: str, reports: list[Report]) -> Iterator[str]:
    reasons = {report.stopped for report in reports}
    done = sum(report.requests for report in reports)
    left = f"{done} of {done + sum(report.not_sent for report in reports)} requests were sent"
    if "errors" in reasons:
        limit = 100 * (workload.max_error_rate or 0.0)
        yield f"{where}: ended because more than {limit:g} % of its requests failed (max_error_rate); {left}."
    elif "time" in reasons:
        seconds = workload.max_seconds or 0.0
        yield f"{where}: ended after {seconds:g} s (max_seconds); {left}, and what was under way was cut off."
