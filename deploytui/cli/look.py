"""Commands that look: at sessions, profiles, this node, results."""

from pathlib import Path

import click

from deploytui.cli.options import PATHLIKE, STATE_DIR, TRUST
from deploytui.cli.screen import open_screen
from deploytui.errors import UsageError
from deploytui.session.speech import say

FORMATS_HELP = "Results: json, toml, text. Raw, streamed: requests (JSONL), stamps (CSV), stamps-bin."


@click.command("open", hidden=True)
@click.argument("what")
@STATE_DIR
def open_(what: str, state: Path) -> int:
    """The screen on a profile or a session.

    Example: deploytui profiles/cpu-threads.toml
    """
    from deploytui.session.naming import named

    found = named(what, state)
    return open_screen(state, profile=found) if isinstance(found, Path) else open_screen(state, session=found)


@click.command()
@click.argument("session", required=False)
@STATE_DIR
def attach(session: str | None, state: Path) -> int:
    """Back to a running session, or to the newest one.

    Example: deploytui attach
    """
    from deploytui.session.folder import check_readable, find_session
    from deploytui.session.listing import latest

    check_readable(state)
    folder = find_session(session, state) if session else latest(state, running_only=True) or latest(state)
    if folder is None:
        raise UsageError("There is no session yet.", fix="Start one with: deploytui demo")
    return open_screen(state, session=folder)


@click.command()
@STATE_DIR
def sessions(state: Path) -> int:
    """List the sessions on this node, newest first.

    Example: deploytui sessions
    """
    from deploytui.session.folder import check_readable
    from deploytui.session.listing import list_sessions
    from deploytui.session.overview import sessions_text

    check_readable(state)
    say(sessions_text(list_sessions(state)))
    return 0


@click.command()
@click.argument("profile", type=PATHLIKE)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@STATE_DIR
@TRUST
def check(profile: Path, as_json: bool, state: Path, trust: bool) -> int:
    """Say what a profile would do, and what is missing; starts no engine.

    Example: deploytui check profiles/cpu-threads.toml
    """
    from deploytui.check.command import check_command
    from deploytui.export.outcome import put
    from deploytui.export.target import STDOUT
    from deploytui.run.command import confirm_programs

    confirm_programs(profile, state, trust=trust)
    text, status = check_command(profile, as_json=as_json)
    put(text.encode(), STDOUT, text=not as_json)
    return status


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--python", "pythons", multiple=True, metavar="PATH", help="Look into this interpreter too.")
def doctor(as_json: bool, pythons: tuple[str, ...]) -> int:
    """Say what this node has: engines, interpreters, GPUs, memory, terminal.

    Example: deploytui doctor --python /opt/venvs/vllm/bin/python
    """
    from deploytui.check.command import doctor_command
    from deploytui.export.outcome import put
    from deploytui.export.target import STDOUT

    put(doctor_command(pythons, as_json=as_json).encode(), STDOUT, text=not as_json)
    return 0


@click.command()
@click.argument("source")
@click.option("--format", "form", default="json", show_default=True, help=FORMATS_HELP)
@click.option("-o", "--output", type=PATHLIKE, help="Write there in place of standard output.")
@STATE_DIR
def export(source: str, form: str, output: Path | None, state: Path) -> int:
    """Write the results of a session or of a saved profile, or each request or time stamp of a session.

    Example: deploytui export 20260101-120000-demo-1a2b --format json -o result.json
    """
    from deploytui.export.formats import export_text
    from deploytui.export.outcome import put
    from deploytui.export.streams import STREAMS, export_stream
    from deploytui.export.target import STDOUT, check_target
    from deploytui.session.naming import named

    if output is not None:
        check_target(output, Path(source))
    where = str(output) if output else STDOUT
    if form in STREAMS:
        return export_stream(named(source, state), form, None if where == STDOUT else output)
    put(export_text(named(source, state), form), where, text=form == "text")
    return 0
