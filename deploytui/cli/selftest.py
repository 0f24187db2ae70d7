"""The command that measures the tool itself."""

from pathlib import Path

import click

from deploytui.cli.options import JSON_FILE
from deploytui.session.speech import tell


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers of 1 and more, with commas between them."""

    name = "numbers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Ascending, each once."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isascii() and part.strip().isdigit() and int(part) >= 1 for part in parts):
            self.fail(f"{value!r} is no list of numbers such as 64,256.", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


@click.command()
@click.option("--streams", type=Numbers(), metavar="N,N", help="How many at once.  [default: 64,256,1000,2000]")
@click.option("--itl-ms", type=click.FloatRange(1, 10_000), default=20.0, show_default=True, help="Between tokens.")
@click.option("--tokens", type=click.IntRange(2, 100_000), help="Of each stream.  [default: 128]")
@click.option(
    "--workers", type=click.IntRange(1, 512), help="Load workers.  [default: one for each core but the server's]"
)
@click.option("--quick", is_flag=True, help="Few tokens: an impression in seconds.")
@click.option("--tls", is_flag=True, help="Over HTTPS, with a certificate made for it.")
@JSON_FILE
def selftest(
    streams: tuple[int, ...] | None,
    itl_ms: float,
    tokens: int | None,
    workers: int | None,
    quick: bool,
    tls: bool,
    json_file: str | None,
) -> int:
    """Measure the tool's own error on this machine, against a simulated server; no engine takes part.

    Example: deploytui selftest --quick
    """
    from deploytui.export.outcome import put
    from deploytui.export.target import STDOUT, check_target
    from deploytui.run.selftest import QUICK_TOKENS, STREAMS, TOKENS, Asked, run_selftest

    if json_file not in (None, STDOUT):
        check_target(Path(str(json_file)), Path())
    tokens = tokens or (QUICK_TOKENS if quick else TOKENS)
    asked = Asked(streams=streams or STREAMS, itl_ms=itl_ms, tokens=tokens, workers=workers, tls=tls)
    told = run_selftest(asked, tell)
    if told.json and json_file is not None:
        put(told.json, json_file)
    if told.text and json_file != STDOUT:
        put(told.text.encode(), STDOUT, text=True)
    elif told.text:
        tell(told.text)
    return told.status
