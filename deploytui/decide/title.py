"""The sentence a decision is known by, with the hardware it holds for."""

from deploytui.decide.ranking import Ranking
from deploytui.decide.subject import Subject
from deploytui.decide.wording import title as metric_title
from deploytui.plan.points import counted
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Workload
from deploytui.record.planned import point_label
from deploytui.record.state import SessionState
from deploytui.record.words import DecisionWord

UNKNOWN = "on unknown hardware"
ATTACHED = "openai"
"""The engine that runs already, perhaps elsewhere: this host's hardware says nothing about it."""


def hardware(state: SessionState, chosen: Subject | None = None) -> str:
    """Where the numbers hold, such as `on 1× H100-80G`; an attached endpoint's is only declared."""
    if chosen is not None and chosen.asked.base_url is not None:
        declared = chosen.asked.declared.get("hardware")
        return f"on {declared} (declared)" if declared else UNKNOWN
    if chosen is None and state.candidates and all(row.engine_name == ATTACHED for row in state.candidates.values()):
        return "for the attached endpoints only"
    label = state.environment.label if state.environment else UNKNOWN
    if chosen is not None and state.environment is not None and state.environment.gpus and _on_cpu(chosen):
        return "on the CPU of a host " + label.replace("on ", "with ", 1)
    return label


def _on_cpu(chosen: Subject) -> bool:
    device = chosen.seen.engine.device if chosen.seen.engine else None
    return (device or chosen.asked.device or "").lower().startswith("cpu")


def at_load(workload: Workload) -> str:
    """The load that a sweep is decided at, such as `at concurrency 16`; empty without a sweep."""
    if sweep(workload.load) is None or workload.decide_at is None:
        return ""
    return f"at {point_label(counted(workload.load), float(workload.decide_at))}"


def full_title(words: str, place: str, *, final: bool, simulated: bool) -> str:
    """Such as `ACCEPT llama-2t for this CPU host only`; it begins with SIMULATED and ends in `so far` where it is."""
    return ("SIMULATED: " if simulated else "") + f"{words} {place}".rstrip() + ("" if final else ", so far")


def sentence(word: DecisionWord, ranking: Ranking, objective: str, pending: bool) -> str:
    """The decision without its place; a tie is said."""
    match word:
        case "accept" if ranking.tie:
            return f"ACCEPT {ranking.recommended} ({', '.join(ranking.tie)} tie on {metric_title(objective)})"
        case "accept":
            return f"ACCEPT {ranking.winner}"
        case "tune" if pending:
            return "TUNE: nothing is accepted, and not all is measured"
        case "tune":
            return "TUNE: nothing can be accepted yet"
        case _:
            return "REJECT: no candidate can be accepted"
