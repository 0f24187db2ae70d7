"""The tool's own error over several repeats, or over the workers of one."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from deploytui.record.measured import ToolError


def worst_tool(errors: Sequence[ToolError]) -> ToolError:
    """The worst of several repeats; what counts events is their sum."""
    plain = ToolError()
    return ToolError(
        clock=one_word((error.clock for error in errors), plain.clock),
        path=one_word((error.path for error in errors), plain.path),
        lag_ms_p50=worst(error.lag_ms_p50 for error in errors),
        lag_ms_p99=worst(error.lag_ms_p99 for error in errors),
        lag_ms_max=worst(error.lag_ms_max for error in errors),
        multi_chunk_read_share=worst(error.multi_chunk_read_share for error in errors),
        extra_multi_chunk_read_share=worst(error.extra_multi_chunk_read_share for error in errors),
        late_sends=sum(error.late_sends for error in errors),
        late_send_ms_max=worst(error.late_send_ms_max for error in errors),
        workers=max((error.workers for error in errors), default=plain.workers),
        worker_cpu_share=worst(error.worker_cpu_share for error in errors),
        worker_cpu_shares=tuple(map(worst, zip_longest(*(error.worker_cpu_shares for error in errors)))),
        clock_jumps=sum(error.clock_jumps for error in errors),
        client_bound=any(error.client_bound for error in errors),
        client_bound_why=next((error.client_bound_why for error in errors if error.client_bound_why), ""),
    )


def one_word(words: Iterable[str], otherwise: str) -> str:
    """The word that all have, `mixed` when they differ, `otherwise` of none."""
    used = set(words) or {otherwise}
    return used.pop() if len(used) == 1 else "mixed"


def worst(values: Iterable[float | None]) -> float | None:
    """The largest that is known; None when none is."""
    return max((value for value in values if value is not None), default=None)
