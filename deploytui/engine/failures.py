"""Why an engine failed, read from its log: the first root cause by priority, with the engine's own line."""

import re
import signal as signals
from collections.abc import Iterable

from deploytui.engine.cause import find_cause, shortened, spoken
from deploytui.engine.rule import Rule
from deploytui.engine.rules_hosts import HOSTS
from deploytui.engine.rules_hub import HUB
from deploytui.engine.rules_load import ALLOWED, CONFIGURATION, FILES, LAST
from deploytui.engine.rules_memory import MEMORY
from deploytui.engine.rules_model import MODEL
from deploytui.engine.rules_places import CONTAINER, DRIVER, KILLED, LIMITS, LINKS
from deploytui.engine.rules_support import BROKEN, DEVICE, LIBRARIES, PLACEHOLDER
from deploytui.record.facts import Failure
from deploytui.record.words import FailureKind, Status

RULES: tuple[Rule, ...] = (
    *CONTAINER,
    *BROKEN,
    *DRIVER,
    *DEVICE,
    *LIBRARIES,
    *PLACEHOLDER,
    *ALLOWED,
    *MODEL,
    *MEMORY,
    *HUB,
    *FILES,
    *CONFIGURATION,
    *HOSTS,
    *LINKS,
    *LIMITS,
    *LAST,
    *KILLED,
)
"""First in the list wins, whatever comes first in the log: what can't run here at all, what is not allowed, the model,
then memory, the hub, the file, the configuration, and last the port and a missing module, which is often missing only
on a path another line explains better. One list for all engines: they are made of one another's parts.
"""

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

_SIGNAL_FIXES = {
    "SIGKILL": "It was killed from outside: by a user, by a scheduler at a limit of the job, or by the kernel for want "
    "of memory, which `dmesg` would tell.",
    "SIGSEGV": "The file may be damaged or the build may not fit this machine: check the checksum, try another build.",
    "SIGILL": "This build uses instructions the CPU does not have: take a build for this CPU.",
    "SIGABRT": "The engine gave itself up: see the last lines of its log.",
}


_ERROR = re.compile(
    r"^.{0,60}?\b(ERROR|CRITICAL|FATAL)\b|^[\w.]*(Error|Exception)\b|^terminate called|Assertion .*failed|^Traceback "
)
"""What a line that tells of an error begins like, or the last line of a traceback."""


def status_of(kind: FailureKind) -> Status:
    """The candidate's status when its load ended with a failure of this kind."""
    if kind in UNSUPPORTED_KINDS:
        return "unsupported"
    return "invalid_config" if kind in ("invalid_config", "not_allowed") else "load_failed"


def explain_log(log: Iterable[str], rules: tuple[Rule, ...] = RULES) -> Failure | None:
    """The first root cause found in a whole log; None when no rule knows a line of it."""
    cause = find_cause(log, rules)
    return cause.failure if cause else None


def explain_exit(code: int | None, signal: int | None, tail: Iterable[str], doing: str = "loading") -> Failure:
    """The failure of an engine that ended by itself while `doing` something and left no line that a rule knows."""
    if signal is None and code is not None and code < 0:
        signal = -code
    how, fix = _ending(code, signal)
    why = last_words(tail) if signal is None else last_error(tail)
    return Failure(kind="crashed", what=f"The engine {how} while {doing}.", why=why, fix=fix or "See its log.")


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


def last_error(tail: Iterable[str]) -> str:
    """The last line that tells of an error, else the last one: lines before a signal are mostly routine."""
    said = spoken(tail)
    errors = (line for line in reversed(said) if _ERROR.search(line))
    return shortened(next(errors, said[-1] if said else ""))


def last_words(tail: Iterable[str], lines: int = 3) -> str:
    """The last lines with text in them, oldest first; empty when there are none."""
    return "\n".join(shortened(line) for line in spoken(tail)[-lines:])
