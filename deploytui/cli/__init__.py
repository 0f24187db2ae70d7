"""The command line: argv to runner, screen or export, and an exit status; imports come late, as they are needed."""

import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from deploytui import __version__
from deploytui.cli import capacity, engines, look, measure, selftest
from deploytui.cli.options import asked_state
from deploytui.cli.screen import open_screen
from deploytui.errors import DeployError
from deploytui.session.speech import tell


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
        return open_screen(asked_state(None, None, None))
    return None


for _command in (
    look.open_,
    measure.run,
    measure.demo,
    capacity.capacity,
    look.attach,
    look.sessions,
    look.check,
    look.doctor,
    look.export,
    engines.inspect,
    engines.explain,
    engines.setup_engine,
    selftest.selftest,
):
    cli.add_command(_command)
