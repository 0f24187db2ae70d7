"""The Config tab: what was asked, what really ran, and what differs from the baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploytui.record.facts import Artifact, EngineFacts
from deploytui.record.state import CandidateState
from deploytui.tui.details.live import labelled
from deploytui.tui.figures import size
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.words import engine_title


def config_lines(candidate: CandidateState, baseline: str | None) -> tuple[Line, ...]:
    """Engine, artifact, settings as read back, argv."""
    return (
        line(Piece(visible(candidate.name), "strong"), *_factors(candidate, baseline)),
        *differing(candidate),
        *engine_lines(candidate),
        *(artifact_lines(candidate.artifact) if candidate.artifact else ()),
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
    about = (artifact.format, artifact.quantization, artifact.architecture)
    parts = [visible(part) for part in about if part]
    parts += [size(artifact.bytes)] if artifact.bytes is not None else []
    parts += [f"context {artifact.context_length}"] if artifact.context_length else []
    yield labelled("artifact", " · ".join(parts))
    for label, value in (("path", artifact.path), ("revision", artifact.revision)):
        if value:
            yield labelled(label, visible(value))
    for path, digest in list(artifact.sha256.items())[:3]:
        yield labelled("sha256", f"{digest[:16]}…", Piece(f"  {visible(path)}", "dim"))


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
        yield labelled(label, f"{visible(str(key))} = {visible(str(value))}")
        label = ""
