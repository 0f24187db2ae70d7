"""The end of a session as plain text: a table of candidates and the decision with its reasons. Pure."""

import unicodedata
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from deploytui.export.curve import LEGEND, capacity_table, curve_table
from deploytui.export.result import STAMP, rows
from deploytui.export.tool_error import load_lines
from deploytui.profile.schema import Profile
from deploytui.record.before import before_phrases
from deploytui.record.facts import Distribution, MemoryUse
from deploytui.record.fidelity import client_bound
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.session.speech import fitting
from deploytui.units import gib, ms

MISSING = "–"
HEAD = (
    *("candidate", "engine", "artifact", "status"),
    *("TTFT p50", "TTFT p95", "TPOT p50", "tok/s", "memory", "quality"),
    "verdict",
)
TEXT_COLUMNS = (0, 1, 2, 3, 10)
"""Columns that stand left; figures stand right."""


def summary_text(
    profile: Profile, state: SessionState, *, encoding: str | None = "utf-8", unreadable_lines: int = 0
) -> str:
    """The table and the decision in signs that `encoding` has, a newline at the end; without control characters."""
    found = rows(profile, state)
    lines = [
        *_stamp(state),
        *_title(profile, state),
        *_unreadable(unreadable_lines),
        "",
        *_table([HEAD, *(_row(row, state) for row in found)]),
        *_curves(found, state),
        "",
        *_decision(state),
        *_why(found, state),
    ]
    return fitting("\n".join(line.rstrip() for line in lines), encoding) + "\n"


def visible(text: str) -> str:
    """Foreign text on one line, its control and direction characters spelled out."""
    return "".join(_spelled(char) if unicodedata.category(char) in _UNSEEN else char for char in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _stamp(state: SessionState) -> list[str]:
    names = [row.name for row in state.candidates.values() if row.simulated]
    return [f"{STAMP}: {visible(', '.join(names))}: no engine was measured, the numbers mean nothing."] if names else []


def _title(profile: Profile, state: SessionState) -> list[str]:
    first = state.first_started
    parts = [profile.name, *([f"session {first.session}", first.hostname] if first else [])]
    return [visible(" · ".join(parts))]


def _unreadable(lines: int) -> list[str]:
    if lines == 0:
        return []
    return [f"{lines} lines of the journal could not be read: what they told is missing here."]


def _row(row: CandidateState, state: SessionState) -> tuple[str, ...]:
    metrics, verdict = row.metrics, state.verdict(row.name)
    none = Distribution(n=0)
    return (
        visible(row.name) + (f" [{STAMP}]" if row.simulated else ""),
        visible(_engine(row)),
        visible(row.artifact_label) or MISSING,
        _status(row),
        _ms((metrics.ttft if metrics else none).p50),
        _ms((metrics.ttft if metrics else none).p95),
        _ms((metrics.tpot if metrics else none).p50),
        _figure(metrics.output_tok_s if metrics else None),
        _memory(row.memory),
        _quality(row),
        verdict.decision if verdict else MISSING,
    )


def _engine(row: CandidateState) -> str:
    version = row.engine.version if row.engine else None
    return f"{row.engine_name} {version}" if version else row.engine_name


def _status(row: CandidateState) -> str:
    if row.oom:
        return f"{row.run or row.status}: oom"
    if row.run is not None:
        return row.run
    word = row.status or row.phase
    return f"{word}: {row.failure.kind}" if row.failure and row.failure.kind != word else word


def _ms(seconds: float | None) -> str:
    value = ms(seconds)
    return MISSING if value is None else f"{_figure(value)} ms"


def _figure(value: float | None) -> str:
    """About three digits that say something."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _memory(memory: MemoryUse | None) -> str:
    """The GPU's peak; without one the host's, which says so: one never stands for the other."""
    if memory is None:
        return MISSING
    for name, count in (("GPU", memory.peak_gpu_bytes), ("host", memory.peak_host_bytes)):
        if (value := gib(count)) is not None:
            return f"{value:.2f} GiB {name}"
    return MISSING


def _quality(row: CandidateState) -> str:
    score = row.quality.score if row.quality else None
    return MISSING if score is None or score.value is None else f"{score.value:.2f} (n={score.n})"


def _curves(found: Sequence[CandidateState], state: SessionState) -> Iterable[str]:
    """A table of each candidate whose load has several points, then what was found of the capacities."""
    for row in found:
        if cells := curve_table(row, state):
            yield from ("", f"{visible(row.name)}: {LEGEND}", *_table(cells, (0, 1)))
    if state.search is not None:
        cells = capacity_table([replace(row, name=visible(row.name)) for row in found])
        yield from ("", *_table(cells, (0, 1, 2, 3)))


def _table(cells: Sequence[Sequence[str]], text: Sequence[int] = TEXT_COLUMNS) -> list[str]:
    """The rows with their columns under each other; those of `text` stand left."""
    widths = [max(map(_cells, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(_padded(cell, widths[i], i in text) for i, cell in enumerate(row)) for row in cells]


def _padded(text: str, width: int, left: bool) -> str:
    blanks = " " * (width - _cells(text))
    return text + blanks if left else blanks + text


def _cells(text: str) -> int:
    """Terminal cells of a text: a wide character takes two, a combining one none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _decision(state: SessionState) -> list[str]:
    decision = state.decision
    if decision is None:
        return ["No decision: the session ended before there was one." if state.ended else "No decision yet."]
    return [
        visible(decision.title),
        *(f"  {line}" for line in _details(decision)),
        *(f"  {line}" for line in _reasons("·", decision.reasons)),
    ]


def _details(decision: Decision) -> Iterable[str]:
    named = {
        "winner": [decision.winner] if decision.winner else [],
        "tie": decision.tie,
        "recommended": [decision.recommended] if decision.recommended not in (None, decision.winner) else [],
        "accepted": decision.accepted if len(decision.accepted) > 1 else (),
        "not covered": decision.not_covered,
        "fallback": [decision.fallback] if decision.fallback else [],
    }
    for word, names in named.items():
        if names:
            yield f"{word}: {visible(', '.join(str(name) for name in names))}"


def _why(found: Iterable[CandidateState], state: SessionState) -> Iterable[str]:
    for row in found:
        verdict = state.verdict(row.name)
        lines = [*(_judged(verdict) or _failure(row)), *_before(row), *_load(row, verdict)]
        if lines:
            yield ""
            yield visible(row.name)
            yield from (f"  {line}" for line in lines)


def _load(row: CandidateState, verdict: Verdict | None) -> list[str]:
    """What the load was answered and what the tool may have added; a verdict's reason is not told twice."""
    if row.metrics is None:
        return []
    bound = client_bound(row.metrics.tool)
    is_told = verdict is not None and any(reason.code == "client_bound" for reason in verdict.reasons)
    return [visible(part) for part in (*load_lines(row.metrics), *([f"✘ {bound}"] if bound and not is_told else []))]


def _before(row: CandidateState) -> list[str]:
    """What was prepared, whether it was to fit, how it recovered."""
    return [visible(part) for part in before_phrases(row.fit, row.memory, row.preparations, row.recovery)]


def _failure(row: CandidateState) -> list[str]:
    if row.failure is None:
        return []
    parts = (f"✘ {row.failure.what}", row.failure.why, row.failure.fix)
    return [visible(part) for part in parts if part]


def _judged(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return []
    return [*_reasons("✘", verdict.reasons), *_reasons("✔", verdict.held), *_reasons("·", verdict.notes)]


def _reasons(sign: str, reasons: Iterable[Reason]) -> list[str]:
    return [line for reason in reasons for line in _reason(sign, reason)]


def _reason(sign: str, reason: Reason) -> list[str]:
    """A reason and what to change next; of a gate that held only the figures, since its code names the failing."""
    figure = f"{reason.metric or ''} {MISSING if reason.value is None else _figure(reason.value)}".strip()
    text = visible(reason.text or figure)
    told = f"{sign} {text}" if reason.passed else f"{sign} {reason.code}: {text}"
    return [told, f"  next: {visible(reason.next)}"] if reason.next else [told]
