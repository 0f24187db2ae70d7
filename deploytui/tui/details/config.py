"""The Config tab: what was asked, what really ran, and what differs from the baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploytui.record.facts import Artifact, EngineFacts
from deploytui.record.state import CandidateState
from deploytui.tui.details.before import before_lines
from deploytui.tui.details.live import labelled
from deploytui.tui.figures import MISSING, size
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.words import engine_title

MOST_CHECKSUMS = 3
TEXTS = (".json", ".jinja", ".txt", ".md", ".py")
"""Ends of the names of files that come with weights."""


def config_lines(candidate: CandidateState, baseline: str | None) -> tuple[Line, ...]:
    """Engine, artifact, settings as read back, argv."""
    return (
        line(Piece(visible(candidate.name), "strong"), *_factors(candidate, baseline)),
        *differing(candidate),
        *engine_lines(candidate),
        *(artifact_lines(candidate.artifact) if candidate.artifact else ()),
        *before_lines(candidate),
        *(argv_lines(candidate.engine) if candidate.engine else ()),
    )


def _factors(candidate: CandidateState, baseline: str | None) -> Line:
    if candidate.name == baseline:
        return line(Piece("  the baseline", "dim"))
    if candidate.factors:
        return line(Piece(f"  differs in {', '.join(map(visible, candidate.factors))}", "dim"))
    return line(Piece("  like the baseline" if baseline else "  no baseline", "dim"))


def differing(candidate: CandidateState) -> Iterable[Line]:
    """Each field that differs, the baseline's value first."""
    width = max((len(field) for field in candidate.differs), default=0)
    for field, change in candidate.differs.items():
        yield line(Piece("≠ ", "warn"), f"{visible(field):<{width}}  ", visible(change))


def engine_lines(candidate: CandidateState) -> Iterable[Line]:
    """The engine, and what it told of itself."""
    facts = candidate.engine
    if facts is None:
        yield labelled("engine", visible(engine_title(candidate.engine_name)), Piece("  not started", "dim"))
        return
    about = [facts.version or "", facts.device or "", f"pid {facts.pid}" if facts.pid else "", facts.base_url or ""]
    told = " · ".join(visible(part) for part in about if part)
    yield labelled("engine", visible(engine_title(facts.name)), Piece(f" {told}", "dim"))
    yield from _table("settings", facts.settings)
    yield from _table("KV cache", facts.kv_cache)


def artifact_lines(artifact: Artifact) -> Iterable[Line]:
    """The model as it lies on disk."""
    about = (artifact.format, artifact.quantization or artifact.dtype, artifact.architecture)
    parts = [visible(part) for part in about if part]
    parts += [size(artifact.bytes)] if artifact.bytes is not None else []
    parts += [f"context {artifact.context_length}"] if artifact.context_length else []
    yield labelled("artifact", " · ".join(parts))
    for label, value in (("path", artifact.path), ("revision", artifact.revision)):
        if value:
            yield labelled(label, visible(value))
    yield from _checksum_lines(artifact)


def _checksum_lines(artifact: Artifact) -> Iterable[Line]:
    """Some of the checksums, those of weights first; the rest as a number."""
    named = sorted(artifact.sha256.items(), key=lambda item: (item[0].endswith(TEXTS), item[0]))
    how = "  declared by the hub" if artifact.checksum == "declared" else ""
    label = "sha256"
    for path, digest in named[:MOST_CHECKSUMS]:
        yield labelled(label, f"{digest[:16]}…", Piece(f"  {visible(path)}{how}", "dim"))
        label = ""
    if (more := len(named) - MOST_CHECKSUMS) > 0:
        yield labelled("", Piece(f"and of {more} more file{'' if more == 1 else 's'}", "dim"))


def argv_lines(facts: EngineFacts) -> Iterable[Line]:
    """The command, an option a line."""
    group: list[str] = []
    label = "argv"
    for word in facts.argv:
        if group and (word.startswith("-") or not group[0].startswith("-")):
            yield labelled(label, " ".join(map(visible, group)))
            group, label = [], ""
        group.append(word)
    if group:
        yield labelled(label, " ".join(map(visible, group)))


def _table(label: str, values: Mapping[str, Any]) -> Iterable[Line]:
    for key, value in values.items():
        yield labelled(label, f"{visible(str(key))} = {visible(value_text(value))}")
        label = ""


def value_text(value: Any) -> str:
    """A value as a reader would write it: no signs of the language it is kept in."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return MISSING
        case dict():
            return ", ".join(f"{key} {value_text(one)}" for key, one in value.items()) or MISSING
        case list() | tuple():
            return ", ".join(map(value_text, value)) or MISSING
        case _:
            return str(value)
