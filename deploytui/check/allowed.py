"""What a candidate's own words would let in or out: refused before anything is launched, and never left unrecorded."""

import re
from collections.abc import Iterator

from deploytui.engine.protocol import Engine
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

EVERYWHERE = re.compile(r"(?<![\w.])0\.0\.0\.0(?![\w.])|(?:^|[\s=\"'])\[?::\]?(?:$|[\s\"'])")
"""An address that stands for all there are."""
REMOTE_CODE = re.compile(r"trust[-_]remote[-_]code|hf_remote=true", re.IGNORECASE)
PICKLE = re.compile(r"allow[-_]pickle|load[-_]format[=\s]+(?:pt|npcache)\b", re.IGNORECASE)


def not_allowed(engine: Engine, candidate: Candidate) -> Failure | None:
    """The failure of a candidate whose own words do what a key of its has to say; None where there are none."""
    return next(_failures(candidate), None) if engine.launches else None


def _failures(candidate: Candidate) -> Iterator[Failure]:
    for key, text in _words(candidate):
        if found := EVERYWHERE.search(text):
            yield Failure(
                kind="not_allowed",
                what=f"{candidate.name} would listen beyond this node: {key} holds {found[0].strip()}.",
                fix="Remove it: engines listen on 127.0.0.1. One that others use as well is measured with base_url.",
            )
        for pattern, name in ((REMOTE_CODE, "trust_remote_code"), (PICKLE, "allow_pickle")):
            if (found := pattern.search(text)) and not getattr(candidate, name):
                yield _unsaid(candidate, key, " ".join(found[0].split()), name)


def _unsaid(candidate: Candidate, key: str, words: str, name: str) -> Failure:
    return Failure(
        kind="not_allowed",
        what=f"{key} of {candidate.name} holds {words}, and {name} is not set.",
        fix=f"Set {name} = true if you trust where the model comes from, so that the record says it; else remove it.",
    )


def _words(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Each key with the text of its words."""
    prepare = candidate.prepare
    for key, words in (
        ("command", candidate.command),
        ("args", candidate.args),
        ("prepare.command", prepare.command if prepare else None),
        ("prepare.args", prepare.args if prepare else None),
    ):
        yield key, "\n".join(words or ())
    yield from ((f"env.{name}", value) for name, value in candidate.env.items())
