"""Options that several commands share."""

from pathlib import Path

import click

PATHLIKE = click.Path(path_type=Path)


def asked_state(_: click.Context | None, __: click.Parameter | None, asked: Path | None) -> Path:
    """The folder of all sessions: the one asked for, else the user's."""
    from deploytui.session.folder import state_dir

    return state_dir(asked)


STATE_DIR = click.option(
    *("--state-dir", "state"),
    type=PATHLIKE,
    callback=asked_state,
    help="Where sessions are kept, in place of the user's state folder.",
)
TRUST = click.option("--trust", is_flag=True, help="Run the programs the profile names without asking.")
JSON_FILE = click.option(
    "--json", "json_file", metavar="FILE", help="Write the result JSON there at the end; - is standard output."
)
EXIT_ZERO = click.option(
    "--exit-zero", is_flag=True, help="Exit 0 whatever was decided; failures of the run still tell."
)
