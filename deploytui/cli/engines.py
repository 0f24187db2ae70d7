"""Commands about engines and models: make an engine's environment, tell what a model is, explain a log."""

from pathlib import Path

import click

from deploytui.cli.options import PATHLIKE


@click.command("setup-engine")
@click.argument("name", required=False)
@click.option("--python", metavar="PATH", help="The interpreter to make it with; default the one deploytui runs in.")
@click.option("--force", is_flag=True, help="Make it again where it is there already.")
@click.option("--anyway", is_flag=True, help="Make an environment that needs a GPU on a node without one.")
@click.option("--list", "as_list", is_flag=True, help="The environments there are recipes for, and which are there.")
def setup_engine(name: str | None, python: str | None, force: bool, anyway: bool, as_list: bool) -> int:
    """Make an environment of its own for an engine; candidates find it there by themselves.

    Example: deploytui setup-engine transformers
    """
    if as_list or name is None:
        from deploytui.run.setup_text import list_text
        from deploytui.session.speech import say

        say(list_text())
        return 0
    from deploytui.run.setup_command import setup_engine

    return setup_engine(name, python=python, force=force, anyway=anyway)


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="The facts as JSON.")
def inspect(model: str, as_json: bool) -> int:
    """Say what a model is, which engines can load it, and why the others can't.

    MODEL is a file, a folder, a hub id or a builtin: name.

    Example: deploytui inspect /models/Qwen2.5-7B-Instruct
    """
    from deploytui.check.inspect import inspect_command
    from deploytui.export.outcome import put
    from deploytui.export.target import STDOUT

    text, status = inspect_command(model, as_json=as_json)
    put(text.encode(), STDOUT, text=not as_json)
    return status


@click.command()
@click.argument("engine")
@click.argument("log", type=PATHLIKE)
@click.option("--json", "as_json", is_flag=True, help="The answer as JSON: kind, what, why, fix, line.")
def explain(engine: str, log: Path, as_json: bool) -> int:
    """Say why an engine failed, from its log, and what to do.

    Example: deploytui explain vllm engine.log
    """
    from deploytui.check.explain import explain_command
    from deploytui.export.outcome import put
    from deploytui.export.target import STDOUT

    text, status = explain_command(engine, log, as_json=as_json)
    put(text.encode(), STDOUT, text=not as_json)
    return status
