"""Any server that a command line starts: `engine = "command"`, for an engine without an adapter of its own."""

import string
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from deploytui.engine.adapter import LOOPBACK, Adapter, host_script, loopback_url, misfit
from deploytui.engine.hosted import KEY
from deploytui.engine.protocol import Capabilities, Launch, Place, Probe, Probed
from deploytui.engine.version import wrong_version
from deploytui.engine.words import folders, given, gpu_environment, model_of, offline
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Failure

OWN = ("model", "port", "host", "served_model", "context", "concurrency", "gpus")
"""Words in braces that every candidate has a value for."""

STANDS_FOR = {"context": "max_model_len", "concurrency": "max_num_seqs"}
"""Words that tell a setting under a name of their own."""

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class Command(Adapter):
    """A server that is started by the profile's own command and speaks the OpenAI API."""

    name = "command"
    title = "command"
    health_path = None
    capabilities = Capabilities(settings=frozenset(Settings.__struct_fields__))

    def objection(self, candidate: Candidate) -> Failure | None:
        """A command that can't be filled in, and keys that nothing in it takes up."""
        return next(_objections(candidate), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """Whether the program is there; an image is asked nothing, for nobody knows what is in it."""
        if candidate.container is not None or not candidate.command:
            return None
        argv = (sys.executable, host_script("probe.py"), "--executable", candidate.command[0])
        return Probe(argv=argv, env=candidate.env)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """The program is not there, or a version is asked for, which a command does not tell."""
        program = candidate.command[0] if candidate.command else ""
        if not probed.found:
            return Failure(
                kind="not_installed",
                what=f"The program {program} of {candidate.name} can't be found.",
                why=probed.error,
                fix="Correct the first word of command, or put the program on PATH.",
            )
        return wrong_version(program, candidate.engine_version, probed.version)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The command with its braces filled in; a server that can ask for an API key finds one in its environment."""
        values = _values(candidate, place)
        ready = candidate.ready_path
        key = {KEY: place.api_key} if place.api_key else {}
        return Launch(
            argv=(*(filled(word, values) for word in candidate.command or ()), *candidate.args),
            env={**offline(candidate, place), **gpu_environment(candidate, place), **key, **candidate.env},
            base_url=loopback_url(place.port),
            served_model=candidate.served_model or candidate.name,
            ready_path=filled(ready, values) if ready else None,
            folders=folders(place),
        )


def filled(template: str, values: dict[str, Any]) -> str:
    """A word with its braces filled in; `{{` stays a brace."""
    return template.format_map(values)


def placeholders(template: str) -> tuple[str, ...]:
    """What stands in braces; ValueError when a brace is left open, or more than a name stands in one."""
    found: list[str] = []
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise ValueError(f"{{{name}}} is no plain name")
        found.append(name)
    return tuple(found)


def _values(candidate: Candidate, place: Place) -> dict[str, Any]:
    settings = candidate.settings
    return {
        **{name: _plain(getattr(settings, name)) for name in settings.__struct_fields__},
        "model": model_of(candidate, place),
        "port": place.port,
        "host": LOOPBACK,
        "served_model": candidate.served_model or candidate.name,
        "context": settings.max_model_len or place.context_tokens,
        "concurrency": settings.max_num_seqs or place.concurrency,
        "gpus": ",".join(place.gpu_uuids),
    }


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _objections(candidate: Candidate) -> Iterator[Failure]:
    if candidate.base_url is not None:
        yield misfit("base_url belongs to an endpoint that runs already.", 'Use engine = "openai", or remove base_url.')
    if candidate.python is not None and candidate.container is None:
        yield misfit('engine = "command" runs its command as it stands; python does not apply.', "Put it into command.")
    if not candidate.command:
        yield misfit(
            'engine = "command" has no command.',
            'Set it, such as ["/opt/server", "--model", "{model}", "--port", "{port}"].',
        )
        return
    try:
        used = {name for word in (*candidate.command, candidate.ready_path or "") for name in placeholders(word)}
    except ValueError as error:
        yield misfit(f"command can't be filled in: {error}.", "Write a brace that is meant as such twice: {{ or }}.")
        return
    yield from _name_objections(candidate, used)
    yield from _setting_objections(candidate, used)
    yield from _ready_objections(candidate.ready_path)


def _name_objections(candidate: Candidate, used: set[str]) -> Iterator[Failure]:
    settings = candidate.settings.__struct_fields__
    for name in sorted(used - {*OWN, *settings}):
        yield misfit(
            f"command holds {{{name}}}, which stands for nothing.",
            f"Known are {', '.join('{' + word + '}' for word in OWN)}, and the settings by name.",
        )
    for name in sorted(used & {*settings}):
        if getattr(candidate.settings, name) is None:
            yield misfit(f"command holds {{{name}}}, and settings.{name} is not set.", f"Set settings.{name}.")
    if "model" in used and candidate.model is None:
        yield misfit("command holds {model}, and the candidate names no model.", "Set model.")
    if "port" not in used and "{port}" not in " ".join(candidate.args):
        yield misfit("command does not hold {port}, where the server has to listen.", "Put {port} into command.")


def _setting_objections(candidate: Candidate, used: set[str]) -> Iterator[Failure]:
    told = {STANDS_FOR.get(name, name) for name in used}
    for name in given(candidate.settings):
        if name not in told:
            yield Failure(
                kind="unsupported_setting",
                what=f"Nothing in command takes up settings.{name}.",
                fix=f"Put {{{name}}} into command, or remove settings.{name}.",
            )
    for key in ("dtype", "quantization"):
        if getattr(candidate, key):
            yield misfit(f"{key} can't be applied to a command.", f"Put it into command itself, and remove {key}.")


def _ready_objections(ready: str | None) -> Iterator[Failure]:
    if ready is None or ready.startswith("/"):
        return
    parts = urlsplit(ready)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK_HOSTS:
        yield misfit(
            f"ready_path = {ready!r} is no path and no address of this node.",
            'Write such as "/health" or "http://127.0.0.1:{port}/health".',
        )
