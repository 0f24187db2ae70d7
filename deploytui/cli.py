"""The command line: argv to runner, screen or export, and an exit status; imports come late, as they are needed."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from deploytui import __version__
from deploytui.errors import DeployError, UsageError
from deploytui.session.speech import say, tell

PATHLIKE = click.Path(path_type=Path)


def _state(_: click.Context | None, __: click.Parameter | None, asked: Path | None) -> Path:
    """The folder of all sessions: the one asked for, else the user's."""
    from deploytui.session.folder import state_dir

    return state_dir(asked)


STATE_DIR = click.option(
    *("--state-dir", "state"),
    type=PATHLIKE,
    callback=_state,
    help="Where sessions are kept, in place of the user's state folder.",
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
        """The named command, or the screen for what looks like a file or a session."""
        word = args[0]
        if self.get_command(ctx, word) is not None or word.startswith("-"):
            return super().resolve_command(ctx, args)
        from deploytui.profile.nearest import did_you_mean
        from deploytui.session.naming import may_be_opened

        if may_be_opened(word):
            return "open", self.get_command(ctx, "open"), args
        names = [name for name, command in self.commands.items() if not command.hidden]
        return ctx.fail(f"There is no command, profile or session {word!r}. {did_you_mean(word, names)}")


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit with its status; what a user can cause is text, never a traceback."""
    sys.exit(_status(argv))


def _status(argv: Sequence[str] | None) -> int:
    try:
        status = cli.main(args=list(argv) if argv is not None else None, prog_name="deploytui", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        tell(_shown(error))
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except DeployError as error:
        tell(f"deploytui: {error.text()}")
        return error.exit_code
    except BrokenPipeError:
        return 1
    except OSError as error:
        tell(f"deploytui: {error}")
        return 1
    return status if isinstance(status, int) else 0


def _shown(error: click.ClickException) -> str:
    out = io.StringIO()
    error.show(out)
    return out.getvalue().rstrip()


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="deploytui")
@click.pass_context
def cli(ctx: click.Context) -> Any:
    """Choose how to deploy a language model: launch candidates, measure them, decide.

    Without a command: the screen. With a profile or session: the screen on it.

    Example: deploytui demo
    """
    if ctx.invoked_subcommand is None:
        return _screen(_state(None, None, None))
    return None


@cli.command("open", hidden=True)
@click.argument("what")
@STATE_DIR
def open_(what: str, state: Path) -> int:
    """The screen on a profile or a session.

    Example: deploytui profiles/cpu-threads.toml
    """
    from deploytui.session.naming import named

    found = named(what, state)
    return _screen(state, profile=found) if isinstance(found, Path) else _screen(state, session=found)


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
def demo(headless: bool, json_file: str | None, state: Path, exit_zero: bool) -> int:
    """The embedded example: a small real model on llama.cpp, measured and decided here.

    Example: deploytui demo --headless --json demo.json
    """
    from deploytui.profile.places import demo_path
    from deploytui.run.demo import fetch_demo_model

    fetch_demo_model(tell)
    if headless or json_file or not _has_screen():
        return _run(demo_path(), json_file=json_file, state=state, exit_zero=exit_zero, trust=True)
    return _screen(state, profile=demo_path(), begin=True)


@cli.command()
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
    return _screen(state, session=folder)


@cli.command()
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


@cli.command()
@click.argument("profile", type=PATHLIKE)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@STATE_DIR
@TRUST
def check(profile: Path, as_json: bool, state: Path, trust: bool) -> int:
    """Say what a profile would do, and what is missing; starts no engine.

    Example: deploytui check profiles/cpu-threads.toml
    """
    from deploytui.check.command import check_command
    from deploytui.export.outcome import STDOUT, put
    from deploytui.run.command import confirm_programs

    confirm_programs(profile, state, trust=trust)
    text, status = check_command(profile, as_json=as_json)
    put(text.encode(), STDOUT, text=not as_json)
    return status


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--python", "pythons", multiple=True, metavar="PATH", help="Look into this interpreter too.")
def doctor(as_json: bool, pythons: tuple[str, ...]) -> int:
    """Say what this node has: engines, interpreters, GPUs, memory, terminal.

    Example: deploytui doctor --python /opt/venvs/vllm/bin/python
    """
    from deploytui.check.command import doctor_command
    from deploytui.export.outcome import STDOUT, put

    put(doctor_command(pythons, as_json=as_json).encode(), STDOUT, text=not as_json)
    return 0


@cli.command()
@click.argument("source")
@click.option("--format", "form", default="json", show_default=True, help="json, toml or text.")
@click.option("-o", "--output", type=PATHLIKE, help="Write there in place of standard output.")
@STATE_DIR
def export(source: str, form: str, output: Path | None, state: Path) -> int:
    """Write the results of a session, or of a saved profile.

    Example: deploytui export 20260101-120000-demo-1a2b --format json -o result.json
    """
    from deploytui.export.formats import export_text
    from deploytui.export.outcome import STDOUT, check_target, put
    from deploytui.session.naming import named

    if output is not None:
        check_target(output, Path(source))
    content = export_text(named(source, state), form)
    put(content, str(output) if output else STDOUT, text=form == "text")
    return 0


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
    from deploytui.export.outcome import STDOUT, check_target, report_outcome
    from deploytui.run.foreground import run_here
    from deploytui.run.prepare import prepare

    if json_file not in (None, STDOUT):
        check_target(Path(str(json_file)), path)
    prepared = prepare(path, state, only=only, confirm=asker(trust=trust))
    ended = run_here(prepared)
    status = 0 if exit_zero and ended.status in (3, 4, 6) else ended.status
    told = report_outcome(prepared.folder, ended.unwritten, json_file)
    return status if told or status == 130 else 1


def _has_screen() -> bool:
    terminal = os.environ.get("TERM", "") not in ("", "dumb")
    return terminal and sys.stdin.isatty() and sys.stdout.isatty()


def _screen(state: Path, *, profile: Path | None = None, session: Any = None, begin: bool = False) -> int:
    """The screen; without a terminal a word on what to do instead."""
    if not _has_screen():
        from deploytui.session.naming import no_screen

        raise no_screen(profile, session)
    from deploytui.run.starting import starter
    from deploytui.tui.app import run_screen

    return run_screen(session, state=state, start=starter(state), profile=profile, begin=begin)
