"""A profile is shown, compared and committed, and each session keeps a copy: what is secret has no place in one."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from deploytui.profile.faults import Fault
from deploytui.profile.schema import Candidate, Profile
from deploytui.profile.secret_names import hides, is_secret_name, secrets_told

TOLD = "holds a secret, and a profile keeps none"


def secret_faults(profile: Profile) -> Iterator[Fault]:
    """Every place where a secret is written out; the secret itself is not repeated."""
    for candidate in profile.candidates:
        yield from _candidate(candidate, f"candidates[{candidate.name}]")
    yield from _named(profile.workload.headers, "workload.headers")
    yield from _named(profile.workload.body, "workload.body")


def _candidate(candidate: Candidate, path: str) -> Iterator[Fault]:
    for name, value in candidate.env.items():
        if is_secret_name(name) and hides(value):
            yield Fault(f"{path}.env.{name}", TOLD, _by_environment(name, candidate))
    container, prepare = candidate.container, candidate.prepare
    for key, words in (
        ("command", candidate.command),
        ("args", candidate.args),
        ("container.args", container.args if container else None),
        ("prepare.args", prepare.args if prepare else None),
        ("prepare.command", prepare.command if prepare else None),
    ):
        for name in dict.fromkeys(secrets_told(words or ())):
            yield Fault(f"{path}.{key}", f"{TOLD}: behind {name}", _no_word(name, candidate))
    if candidate.base_url is not None and _user(candidate.base_url):
        fix = "Name the variable that holds the key with api_key_env."
        yield Fault(f"{path}.base_url", f"{TOLD}: a user or a password", fix)


def _by_environment(name: str, candidate: Candidate) -> str:
    """How an engine gets a variable that stands in no profile."""
    if candidate.container is None or candidate.container.runtime == "apptainer":
        return f"Remove it, and export {name} before deploytui is started: engines inherit its environment."
    handed = f'container.args = ["--env", "{name}"]'
    return f"Remove it, export {name} before deploytui is started, and hand it to the container by name: {handed}."


def _no_word(name: str, candidate: Candidate) -> str:
    if name.isupper():
        return _by_environment(name, candidate)
    if "key" in name.lower():
        return "Remove it: each launch gets a key of its own, by its environment."
    return "Remove it, and export it before deploytui is started, in the variable that the engine reads it from."


def _named(table: dict[str, Any], path: str) -> Iterator[Fault]:
    for name, value in table.items():
        if is_secret_name(name.replace("-", "_")) and isinstance(value, str) and hides(value):
            fix = "Name the variable that holds the key with api_key_env of the candidate."
            yield Fault(f"{path}.{name}", TOLD, fix)


def _user(address: str) -> bool:
    """Whether an address holds a user or a password."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
    except ValueError:
        return False
    return parts.username is not None or parts.password is not None
