"""The command line: argv to runner, screen or export, and an exit status; imports come late, as they are needed."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from deploytui import __version__
from deploytui.errors import DeployError, UsageError

PATHLIKE = click.Path(path_type=Path)
STATE_DIR = click.option(
    "--state-dir", type=PATHLIKE, help="Where sessions are kept, in place of the user's state folder."
)
TRUST = click.option("--trust", is_flag=True, help="Run the programs the profile names without asking.")
JSON_FILE = click.option(
    "--json", "json_file", metavar="FILE", help="Write the result JSON there at the end; - is standard output."
)
EXIT_ZERO = click.option(
    "--exit-zero", is_flag=True, help="Exit 0 whatever was decided; failures of the run still tell."
)


class Commands(click.Group):
    """Commands by name; anything that is a path or a session id opens the screen."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command, or the screen for what looks like a file or session."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            return "open", self.get_command(ctx, "open"), args
        return super().resolve_command(ctx, args)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status; what a user can cause is text, never a traceback."""
    try:
        status = cli.main(args=list(argv) if argv is not None else None, prog_name="deploytui", standalone_mode=False)
    except click.exceptions.Exit as done:
        status = done.exit_code
    except click.ClickException as error:
        error.show()
        status = 2
    except click.Abort:
        status = 130
    except DeployError as error:
        click.echo(f"deploytui: {error.text()}", err=True)
        status = error.exit_code
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        status = 1
    sys.exit(status if isinstance(status, int) else 0)


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="deploytui")
@click.pass_context
def cli(ctx: click.Context) -> Any:
    """Choose how to deploy a language model: launch candidates, measure them, decide.

    Without a command: the screen. With a profile or session: the screen on it.

    Example: deploytui demo
    """
    if ctx.invoked_subcommand is None:
        return _screen(None, None)
    return None


@cli.command("open", hidden=True)
@click.argument("what")
@STATE_DIR
def open_(what: str, state_dir: Path | None) -> int:
    """The screen on a profile or a session."""
    if Path(what).is_file():
        return _screen(Path(what), None, state_dir=state_dir)
    from deploytui.session.folder import find_session
    from deploytui.session.folder import state_dir as state_of

    return _screen(None, find_session(what, state_of(state_dir)), state_dir=state_dir)


@cli.command()
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


@cli.command()
@click.option("--headless", is_flag=True, help="Without the screen, as `run`; also what happens without a terminal.")
@JSON_FILE
@STATE_DIR
@EXIT_ZERO
def demo(headless: bool, json_file: str | None, state_dir: Path | None, exit_zero: bool) -> int:
    """The embedded example: a small real model on llama.cpp, measured and decided here.

    Example: deploytui demo --headless --json demo.json
    """
    from deploytui.profile.places import demo_path
    from deploytui.run.demo import fetch_demo_model

    fetch_demo_model(sys.stderr)
    if headless or json_file or not _has_screen():
        return _run(demo_path(), json_file=json_file, state_dir=state_dir, exit_zero=exit_zero, trust=True)
    return _screen(demo_path(), None, state_dir=state_dir, begin=True)


@cli.command()
@click.argument("session", required=False)
@STATE_DIR
def attach(session: str | None, state_dir: Path | None) -> int:
    """Back to a running session, or to the newest one.

    Example: deploytui attach
    """
    from deploytui.session.folder import find_session
    from deploytui.session.folder import state_dir as state_of
    from deploytui.session.listing import latest

    state = state_of(state_dir)
    folder = find_session(session, state) if session else latest(state, running_only=True) or latest(state)
    if folder is None:
        raise UsageError("There is no session yet.", fix="Start one with: deploytui demo")
    return _screen(None, folder, state_dir=state_dir)


@cli.command()
@STATE_DIR
def sessions(state_dir: Path | None) -> int:
    """List the sessions on this node, newest first.

    Example: deploytui sessions
    """
    from deploytui.session.folder import state_dir as state_of
    from deploytui.session.listing import list_sessions
    from deploytui.session.overview import sessions_text

    click.echo(sessions_text(list_sessions(state_of(state_dir))))
    return 0


@cli.command()
@click.argument("profile", type=PATHLIKE)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def check(profile: Path, as_json: bool) -> int:
    """Say what a profile would do, and what is missing; starts no engine.

    Example: deploytui check profiles/cpu-threads.toml
    """
    from deploytui.check.command import check_command

    text, status = check_command(profile, as_json=as_json)
    click.echo(text)
    return status


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--python", "pythons", multiple=True, metavar="PATH", help="Look into this interpreter too.")
def doctor(as_json: bool, pythons: tuple[str, ...]) -> int:
    """Say what this node has: engines, interpreters, GPUs, memory, terminal.

    Example: deploytui doctor --python /opt/venvs/vllm/bin/python
    """
    from deploytui.check.command import doctor_command

    click.echo(doctor_command(pythons, as_json=as_json))
    return 0


@cli.command()
@click.argument("source")
@click.option("--format", "form", default="json", show_default=True, help="json, toml or text.")
@click.option("-o", "--output", type=PATHLIKE, help="Write there in place of standard output.")
@STATE_DIR
def export(source: str, form: str, output: Path | None, state_dir: Path | None) -> int:
    """Write the results of a session, or of a saved profile.

    Example: deploytui export 20260101-120000-demo-1a2b --format json -o result.json
    """
    from deploytui.export.formats import export_text
    from deploytui.session.folder import find_session
    from deploytui.session.folder import state_dir as state_of

    found = Path(source) if Path(source).is_file() else find_session(source, state_of(state_dir))
    _put(export_text(found, form), str(output) if output else "-")
    return 0


def _run(
    path: Path,
    *,
    only: Sequence[str] = (),
    detach: bool = False,
    json_file: str | None = None,
    state_dir: Path | None = None,
    trust: bool = False,
    exit_zero: bool = False,
) -> int:
    """Prepare and run a profile, then write what was asked for."""
    if detach:
        return _detach(path, only=only, state_dir=state_dir, trust=trust)
    if json_file not in (None, "-"):
        _check_writable(Path(str(json_file)))
    prepared = _prepared(path, only=only, state_dir=state_dir, trust=trust)
    from deploytui.run.foreground import run_here

    status = run_here(prepared)
    from deploytui.export.formats import export_text

    click.echo(export_text(prepared.folder, "text").decode(), err=True)
    if json_file is not None:
        _put(export_text(prepared.folder, "json"), json_file)
    return 0 if exit_zero and status in (3, 4, 6) else status


def _prepared(path: Path, *, only: Sequence[str], state_dir: Path | None, trust: bool) -> Any:
    from deploytui.run.prepare import prepare
    from deploytui.session.folder import state_dir as state_of

    return prepare(path, state_of(state_dir), only=only, confirm=(lambda _: True) if trust else _confirm)


def _detach(path: Path, *, only: Sequence[str], state_dir: Path | None, trust: bool) -> int:
    from deploytui.run.detach import detached

    def begin() -> tuple[Path, Callable[[], int]]:
        prepared = _prepared(path, only=only, state_dir=state_dir, trust=trust)
        from deploytui.run.foreground import run_here

        return prepared.folder.path, lambda: run_here(prepared, quiet=True)

    said = detached(begin)
    click.echo(said.text, err=said.status != 0)
    return said.status


def _confirm(programs: Sequence[str]) -> bool:
    """Ask on a terminal; elsewhere nobody can say yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo("This profile would run:\n  " + "\n  ".join(programs), err=True)
    return click.confirm("Run them?", err=True)


def _check_writable(path: Path) -> None:
    """Refuse before the run what could not be written after it."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise UsageError(f"{path} can't be written.", why=str(error), fix="Name another file.") from error


def _put(content: bytes, where: str) -> None:
    if where == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    from deploytui.profile.files import save_bytes

    save_bytes(Path(where), content)


def _has_screen() -> bool:
    terminal = os.environ.get("TERM", "") not in ("", "dumb")
    return terminal and sys.stdin.isatty() and sys.stdout.isatty()


def _screen(profile: Path | None, session: Any, *, state_dir: Path | None = None, begin: bool = False) -> int:
    """The screen; without a terminal a word on what to do instead."""
    if not _has_screen():
        raise UsageError(
            "The screen needs a terminal; there is none here.",
            fix=f"Without one: deploytui run {profile or 'PROFILE'} --json result.json, or deploytui demo --headless.",
        )
    from deploytui.session.folder import state_dir as state_of
    from deploytui.tui.app import run_screen

    return run_screen(session, state=state_of(state_dir), start=_starter(state_dir), profile=profile, begin=begin)


def _starter(state_dir: Path | None) -> Callable[[Path, Sequence[str]], Any]:
    """Starts a detached runner for a profile and gives its session folder."""

    def start(profile: Path, options: Sequence[str] = ()) -> Any:
        from deploytui.run.starting import start_detached
        from deploytui.session.folder import state_dir as state_of

        return start_detached(profile, options, state_of(state_dir))

    return start
