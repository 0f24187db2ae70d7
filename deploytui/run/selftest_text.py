"""The self-test as a table. Pure."""

from collections.abc import Callable

from deploytui.run.selftest_result import Row, SelfTest

MISSING = "–"
LEGEND = (
    "TTFT error = |(client first token - client sent) - (server first send - server saw the request)|;",
    "ITL error = |client gap - server gap|; both [µs]. extra: reads with several tokens because they came late.",
    "lag: so long bytes waited for the load worker. CPU: the busiest worker's. µs/token: CPU of all workers.",
    "late: the server, by its own schedule, which is no error of the client; pace: what it sent of its schedule.",
)


def selftest_text(result: SelfTest) -> str:
    """Heading, a line for each number of streams, what it comes to."""
    return "\n".join((heading(result), "", *table(result.rows), "", *LEGEND, "", result.sentence))


def progress(row: Row) -> str:
    """A row in a few words, as soon as it is there."""
    if row.verdict == "not measured":
        return f"not measured: {row.why}"
    return f"ITL error p99 {_us(row.itl_error_us_p99)} µs, CPU {_percent(row.worker_cpu_share)}: {row.verdict}"


def heading(result: SelfTest) -> str:
    """What took part, so that nobody takes it for a benchmark."""
    path = "TLS" if result.tls else "TCP"
    place = "server and load on cores of their own" if result.pinned else "server and load are not pinned to cores"
    return (
        f"SIMULATED: a paced server of ours on loopback over {path}, no engine. "
        f"One request a stream, {result.tokens} tokens, one each {result.itl_ms:g} ms; "
        f"{result.cores} cores, {place}."
    )


def table(rows: tuple[Row, ...]) -> list[str]:
    """Aligned columns."""
    cells = [[name for name, _ in _COLUMNS], *([show(row) for _, show in _COLUMNS] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(_COLUMNS))]
    last = len(_COLUMNS) - 1
    return [
        "  ".join(
            text if k == last else text.rjust(width) for k, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]


def _us(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _ms(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f} ms" if value >= 100 else f"{value:.2f} ms"


def _percent(share: float | None) -> str:
    if share is None:
        return MISSING
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.1 else f"{100 * share:.2f} %"


_COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("streams", lambda row: f"{row.streams:,}"),
    ("TTFT err p50", lambda row: _us(row.ttft_error_us_p50)),
    ("p99", lambda row: _us(row.ttft_error_us_p99)),
    ("ITL err p99", lambda row: _us(row.itl_error_us_p99)),
    ("max", lambda row: _us(row.itl_error_us_max)),
    ("extra", lambda row: _percent(row.extra_multi_chunk_read_share)),
    ("lag p99", lambda row: _ms(row.lag_ms_p99)),
    ("CPU", lambda row: _percent(row.worker_cpu_share)),
    ("µs/token", lambda row: _us(row.cpu_us_per_token)),
    ("late p99", lambda row: _ms(None if row.server_late_us_p99 is None else row.server_late_us_p99 / 1e3)),
    ("pace", lambda row: _percent(row.server_pace)),
    ("clock", lambda row: row.clock or MISSING),
    ("verdict", lambda row: row.verdict),
)
