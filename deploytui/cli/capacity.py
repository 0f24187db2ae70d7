"""The command that searches for the most load within the gates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from deploytui.cli.options import EXIT_ZERO, JSON_FILE, PATHLIKE, STATE_DIR, TRUST

LOAD = click.FloatRange(min=0, min_open=True)


@click.command()
@click.argument("profile", type=PATHLIKE)
@click.option("--by", type=click.Choice(["concurrency", "rate"]), help="What to raise; default what the load counts.")
@click.option("--from", "lowest", type=LOAD, metavar="N", help="The lowest load; default 1, or the sweep's lowest.")
@click.option("--to", "highest", type=LOAD, metavar="N", help="The highest load; default 1024.")
@click.option("--only", multiple=True, metavar="NAME", help="Search for this candidate alone; may be given again.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Of each load.")
@click.option("--budget", "budget_s", type=LOAD, metavar="SECONDS", help="Time to measure in, all candidates together.")
@JSON_FILE
@STATE_DIR
@TRUST
@EXIT_ZERO
def capacity(**options: Any) -> int:
    """Find the most load each candidate bears within the profile's gates.

    Example: deploytui capacity profiles/cpu-threads.toml --by concurrency --to 64
    """
    return _search(options.pop("profile"), **options)


def _search(
    path: Path, *, only: Sequence[str], state: Path, json_file: str | None, trust: bool, exit_zero: bool, **wish: Any
) -> int:
    """Refuse what can't be answered, prepare, search, and show what was found."""
    from deploytui.export.target import STDOUT, check_target
    from deploytui.profile.files import read_profile
    from deploytui.run.capacity import capacity_job
    from deploytui.run.capacity_ask import Wish, asked_search
    from deploytui.run.command import asker
    from deploytui.run.foreground import run_here
    from deploytui.run.prepare import prepare

    asked = asked_search(read_profile(path), Wish(**wish))
    if json_file not in (None, STDOUT):
        check_target(Path(str(json_file)), path)
    prepared, job = capacity_job(prepare(path, state, only=only, confirm=asker(trust=trust)), asked)
    ended = run_here(prepared, job=job)
    status = 0 if exit_zero and ended.status in (3, 4, 6) else ended.status
    from deploytui.export.outcome import report_outcome  # late: nothing of it is needed to begin

    told = report_outcome(prepared.folder, ended.unwritten, json_file)
    return status if told or status == 130 else 1
