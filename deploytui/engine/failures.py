"""Why an engine failed, read from its log: the first root cause by priority, with the engine's own line."""

import re
import signal as signals
from collections.abc import Iterable
from itertools import islice

from deploytui.engine.rule import Rule
from deploytui.engine.rules_load import CONFIGURATION, FILES, LAST, MEMORY
from deploytui.engine.rules_support import BROKEN, DEVICE, MODEL
from deploytui.record.facts import Failure
from deploytui.record.words import FailureKind, Status

RULES: tuple[Rule, ...] = (*BROKEN, *DEVICE, *MODEL, *MEMORY, *FILES, *CONFIGURATION, *LAST)
"""First in the list wins, whatever comes first in the log: what can't run here at all, then memory, then the file, the
configuration, the port, and last a missing module, which is often missing only on a path another line explains better.
"""

WHY_LENGTH = 500
"""Longest `why` [characters]: some engines end a line with the names of all they support."""

UNSUPPORTED_KINDS: frozenset[FailureKind] = frozenset(
    {
        "unsupported_arch",
        "unsupported_format",
        "unsupported_quant",
        "unsupported_dtype",
        "unsupported_setting",
        "not_installed",
        "broken_install",
        "no_adapter",
        "wrong_version",
        "wrong_device",
    }
)
"""What can't run here as it is asked; everything else that fails at load is `load_failed` or `invalid_config`."""

_QUOTED_SOURCE = re.compile(r"\braise [A-Za-z_.]+\(")
"""A traceback quotes the line that raises; the message itself comes later, filled in."""

_SIGNAL_FIXES = {
    "SIGKILL": "Something killed it, often the kernel for want of memory: see `dmesg` and the job's memory limit.",
    "SIGSEGV": "The file may be damaged or the build may not fit this machine: check the checksum, try another build.",
    "SIGILL": "This build uses instructions the CPU does not have: take a build for this CPU.",
    "SIGABRT": "The engine gave itself up: see the last lines of its log.",
}


def status_of(kind: FailureKind) -> Status:
    """The candidate's status when its load ended with a failure of this kind."""
    if kind in UNSUPPORTED_KINDS:
        return "unsupported"
    return "invalid_config" if kind == "invalid_config" else "load_failed"


def explain_log(log: Iterable[str], rules: tuple[Rule, ...] = RULES) -> Failure | None:
    """The first root cause found in a whole log; None when no rule knows a line of it."""
    best: tuple[int, Rule, str] | None = None
    seen: set[str] = set()
    befores = tuple({rule.after for rule in rules if rule.after})
    for line in log:
        if _QUOTED_SOURCE.search(line):
            continue
        seen.update(mark for mark in befores if mark in line)
        hit = _first_rule(line, rules[: best[0]] if best else rules, seen)
        if hit is not None:
            best = (hit, rules[hit], line)
            if hit == 0:
                break
    return _failure(best[1], best[2]) if best else None


def _first_rule(line: str, rules: tuple[Rule, ...], seen: set[str]) -> int | None:
    for place, rule in enumerate(rules):
        if rule.mark in line and (not rule.after or rule.after in seen) and re.search(rule.pattern, line):
            return place
    return None


def _failure(rule: Rule, line: str) -> Failure:
    match = re.search(rule.pattern, line)
    found = {name: text for name, text in (match.groupdict() if match else {}).items() if text is not None}
    return Failure(
        kind=rule.kind,
        what=rule.what.format(**found),
        why=_shortened(line, line.find(rule.mark)),
        fix=rule.fix.format(**found),
    )


def _shortened(line: str, decisive: int = 0) -> str:
    """The line, cut to what stands round the place that decides when it is very long."""
    start = max(0, decisive - WHY_LENGTH // 2) if decisive > WHY_LENGTH // 2 and len(line) > WHY_LENGTH else 0
    part = line[start : start + WHY_LENGTH].strip()
    return ("…" if start else "") + part + ("…" if start + WHY_LENGTH < len(line) else "")


def explain_exit(code: int | None, signal: int | None, tail: Iterable[str], doing: str = "loading") -> Failure:
    """The failure of an engine that ended by itself while `doing` something and left no line that a rule knows."""
    if signal is None and code is not None and code < 0:
        signal = -code
    how, fix = _ending(code, signal)
    return Failure(
        kind="crashed", what=f"The engine {how} while {doing}.", why=last_words(tail), fix=fix or "See its log."
    )


def _ending(code: int | None, signal: int | None) -> tuple[str, str]:
    if signal is not None:
        name = signal_name(signal)
        return f"died by signal {signal} ({name})" if name else f"died by signal {signal}", _SIGNAL_FIXES.get(name, "")
    if code is None:
        return "ended", ""
    return f"ended with status {code}", ""


def signal_name(number: int) -> str:
    """Such as SIGKILL; empty when this platform has no such signal."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return ""


def last_words(tail: Iterable[str], lines: int = 3) -> str:
    """The last lines with text in them, oldest first; empty when there are none."""
    spoken = [line.strip() for line in tail if line.strip()]
    return "\n".join(_shortened(line) for line in islice(spoken, max(0, len(spoken) - lines), None))
