"""Exit statuses and which one wins."""

from deploytui.decide.effects import effect_of
from deploytui.record.verdict import Decision, Reason

PRECEDENCE: tuple[tuple[str, int], ...] = (
    ("interrupted", 130),
    ("usage_error", 2),
    ("runner_failed", 1),
    ("regression", 5),
    ("gate_open", 6),
    ("reject", 4),
    ("tune", 3),
)
"""What happened, and the exit status it gives; the first that happened wins."""

MEANINGS: dict[int, str] = {
    0: "accept, or done",
    1: "the runner or a requested output failed",
    2: "usage or profile error",
    3: "tune",
    4: "reject",
    5: "regression",
    6: "the engine gate was open, which is why nothing could be accepted",
    130: "interrupted; the session can be resumed",
}


def exit_status(
    decision: Decision | None,
    *,
    interrupted: bool = False,
    usage_error: bool = False,
    runner_failed: bool = False,
    regression: bool = False,
) -> int:
    """The exit status; 0 where nothing of the table happened, as for a command that decides nothing."""
    flags = {
        "interrupted": interrupted,
        "usage_error": usage_error,
        "runner_failed": runner_failed,
        "regression": regression,
    }
    happened = {word for word, is_so in flags.items() if is_so} | (_said(decision) if decision else set())
    return next((status for word, status in PRECEDENCE if word in happened), 0)


def _said(decision: Decision) -> set[str]:
    """The words of the table that a decision says."""
    reasons: list[Reason] = [reason for found in decision.verdicts for reason in found.reasons]
    regressed = any(effect_of(reason.code) == "regression" for reason in reasons)
    opened = decision.decision != "accept" and any(reason.code == "gate_open" for reason in reasons)
    said: set[str] = {decision.decision}
    return said | ({"regression"} if regressed else set()) | ({"gate_open"} if opened else set())
