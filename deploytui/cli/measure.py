"""Commands that measure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from deploytui.cli.options import EXIT_ZERO, JSON_FILE, PATHLIKE, STATE_DIR, TRUST
from deploytui.cli.screen import has_screen, open_screen
from deploytui.errors import UsageError
from deploytui.session.speech import tell


@click.command()
@click.argument("profile", type=PATHLIKE)
@click.option("--only", multiple=True, metavar="NAME", help="Measure this candidate alone; may be given again.")
@click.option("--detach", is_flag=True, help="Leave the terminal; say `ready SESSION` when the runner has begun.")
@JSON_FILE
@STATE_DIR
@TRUST
@EXIT_ZERO
def run(**options: Any) -> int:
    """Measure a profile without the screen; progress goes to standard error.

    Example: deploytui run profiles/cpu-threads.toml --json result.json
    """
    return _run(options.pop("profile"), **options)


@click.command()
@click.option("--headless", is_flag=True, help="Without the screen, as `run`; also what happens without a terminal.")
@JSON_FILE
@STATE_DIR
@EXIT_ZERO
def demo(headless: bool, json_file: str | None, state: Path, exit_zero: bool) -> int:
    """The embedded example: a small real model on llama.cpp, measured and decided here.

    Example: deploytui demo --headless --json demo.json
    """
    from deploytui.profile.places import demo_path
    from deploytui.run.demo import fetch_demo_model

    fetch_demo_model(tell)
    if headless or json_file or not has_screen():
        return _run(demo_path(), json_file=json_file, state=state, exit_zero=exit_zero, trust=True)
    return open_screen(state, profile=demo_path(), begin=True)


def _run(
    path: Path,
    *,
    state: Path,
    only: Sequence[str] = (),
    detach: bool = False,
    json_file: str | None = None,
    trust: bool = False,
    exit_zero: bool = False,
) -> int:
    """Prepare and run a profile, then write what was asked for."""
    from deploytui.run.command import asker, run_detached

    if detach and json_file is not None:
        fix = f"Leave out --json, and when it has ended: deploytui export SESSION -o {json_file}"
        raise UsageError("A detached run writes no --json.", fix=fix)
    if detach:
        return run_detached(path, only=only, state=state, trust=trust)
    from deploytui.export.target import STDOUT, check_target
    from deploytui.run.foreground import run_here
    from deploytui.run.prepare import prepare

    if json_file not in (None, STDOUT):
        check_target(Path(str(json_file)), path)
    prepared = prepare(path, state, only=only, confirm=asker(trust=trust))
    ended = run_here(prepared)
    status = 0 if exit_zero and ended.status in (3, 4, 6) else ended.status
    from deploytui.export.outcome import report_outcome  # late: nothing of it is needed to begin

    told = report_outcome(prepared.folder, ended.unwritten, json_file)
    return status if told or status == 130 else 1
