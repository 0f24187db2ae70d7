"""Keys of a candidate that must fit each other: where its model comes from, and what is made of it."""

import re
from collections.abc import Iterator

from deploytui.profile.faults import Fault, shown
from deploytui.profile.schema import Candidate, Prepare, Profile

FORMATS = ("safetensors", "gguf", "onnx", "tensorrt", "pytorch")
ATTACHED = ("openai",)
"""Engines that run already: nothing is fetched, made or hashed for them."""

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_PATH = ("/", "./", "../", "~", "builtin:")
"""How a model begins that is certainly no hub id."""


def candidate_faults(profile: Profile) -> Iterator[Fault]:
    """All faults of all candidates, each with its path."""
    for candidate in profile.candidates:
        path = f"candidates[{candidate.name}]"
        yield from _attached(candidate, path)
        yield from _revision(candidate, path)
        yield from _checksums(candidate, profile, path)
        if candidate.prepare is not None:
            yield from _prepare(candidate.prepare, f"{path}.prepare")


def _attached(candidate: Candidate, path: str) -> Iterator[Fault]:
    if candidate.engine not in ATTACHED:
        return
    for key, said in (
        ("prepare", candidate.prepare is not None),
        ("sha256", bool(candidate.sha256)),
        ("revision", candidate.revision is not None),
        ("container", candidate.container is not None),
    ):
        if said:
            yield Fault(
                f"{path}.{key}",
                f'does not go with engine = "{candidate.engine}", which runs already',
                f"Leave {key} out." if key in ("prepare", "container") else _declared(key),
            )


def _declared(key: str) -> str:
    return f"Leave {key} out, or say it under declared: declared = {{ {key} = … }}."


def _revision(candidate: Candidate, path: str) -> Iterator[Fault]:
    revision, model = candidate.revision, candidate.model
    if revision is None or candidate.engine in ATTACHED:
        return
    if model is None:
        yield Fault(f"{path}.revision", "goes with a model from a hub, and there is no model", "Add model.")
    elif model.startswith(_PATH):
        yield Fault(f"{path}.revision", f"goes with a hub id, not with {shown(model)}", "Leave revision out.")
    elif not revision.strip() or revision.startswith(("-", "/")) or ".." in revision:
        yield Fault(f"{path}.revision", f"can't be {shown(revision)}", "Write a branch, a tag or a commit.")


def _checksums(candidate: Candidate, profile: Profile, path: str) -> Iterator[Fault]:
    for name, text in candidate.sha256.items():
        if not _SHA256.fullmatch(text):
            yield Fault(f"{path}.sha256.{name}", f"is no sha256: {shown(text)}", "Write its 64 hexadecimal digits.")
        if name.startswith("/") or ".." in name.split("/"):
            yield Fault(f"{path}.sha256.{name}", "is no file of the model", "Name it relative to the model's folder.")
    if candidate.sha256 and profile.checks.checksum == "off":
        fix = 'Leave sha256 out, or set checksum = "full".'
        yield Fault(f"{path}.sha256", 'can\'t be held against anything with [checks] checksum = "off"', fix)


def _prepare(prepare: Prepare, path: str) -> Iterator[Fault]:
    if prepare.format is not None and prepare.format not in FORMATS:
        yield Fault(f"{path}.format", f"can't be {shown(prepare.format)}", f"Choose one of {', '.join(FORMATS)}.")
    if prepare.command is None:
        if prepare.format is not None:
            yield Fault(f"{path}.format", "goes with prepare.command only", "Leave it out: the engine knows its own.")
        return
    if not prepare.command or not prepare.command[0].strip():
        yield Fault(f"{path}.command", "is empty", "Write the program and its words.")
    elif not any("{out}" in word for word in prepare.command):
        fix = "Add {out}, the folder that the command shall fill, and {model}, its source."
        yield Fault(f"{path}.command", "has no {out}, so nothing it makes would be found", fix)
    if prepare.format is None:
        yield Fault(f"{path}.format", "is missing beside prepare.command", f"Add one of {', '.join(FORMATS)}.")
    for key in ("precision", "python", "args"):
        if getattr(prepare, key):
            yield Fault(f"{path}.{key}", "does not go with prepare.command", "Put it into the command.")
