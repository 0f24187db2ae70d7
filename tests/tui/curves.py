"""A candidate under a sweep, and one whose capacity was searched for."""

from collections.abc import Iterable, Sequence

from deploytui.record.capacity import Capacity, Search, TriedPoint
from deploytui.record.events import AnyEvent, CapacityFound, Measured, Planned, SessionEnded
from deploytui.record.planned import PlannedCandidate, PlannedPoint
from tests.tui.candidates import served
from tests.tui.facts import at, environment, metrics, started

USERS = (1, 4, 16, 64, 128)
RATES = (300.0, 1150.0, 4100.0, 4300.0, 4320.0)
WAITS = (0.05, 0.06, 0.15, 0.9, 2.1)


def sweep_events(users: Sequence[int] = USERS, decided: int = 2) -> list[AnyEvent]:
    """One candidate, measured at several concurrencies, decided on at 16."""
    return [
        *_planned(users, decided),
        *served("vllm-bf16", "vllm", "0.33.0", begin=1),
        *_measured(users),
        SessionEnded(at_ns=at(220), exit_status=0),
    ]


def capacity_events(*, complete: bool = True) -> list[AnyEvent]:
    """One candidate that bears 16 users and not 64."""
    found = Capacity(
        by="concurrency",
        value=16,
        first_bad=17,
        gate="ttft_ms.p95",
        why="TTFT p95 812 > 500 ms (n=600 requests)",
        tried=(TriedPoint(asked=16, repeats=3, held=True), TriedPoint(asked=17, repeats=1, held=False, hopeless=True)),
        notes=() if complete else ("The time was up before the interval was as narrow as asked.",),
        complete=complete,
    )
    return [
        *_planned(USERS, 0, Search(by="concurrency", lowest=1, highest=1024)),
        *served("vllm-bf16", "vllm", "0.33.0", begin=1),
        *_measured(USERS),
        CapacityFound(at_ns=at(200), candidate="vllm-bf16", point=2, capacity=found),
        SessionEnded(at_ns=at(220), exit_status=0),
    ]


def _planned(users: Sequence[int], decided: int, search: Search | None = None) -> Iterable[AnyEvent]:
    points = tuple(
        PlannedPoint(point=place, by="concurrency", asked=float(count), workload_key=f"key{place}")
        for place, count in enumerate(users)
    )
    row = PlannedCandidate(name="vllm-bf16", engine="vllm", artifact="bf16")
    yield started()
    yield Planned(
        at_ns=at(0),
        candidates=(row,),
        steps=(),
        workload_key="key2",
        points=points,
        decided_point=decided,
        search=search,
    )
    yield environment(gpus=1)


def _measured(users: Sequence[int]) -> Iterable[AnyEvent]:
    for place in range(len(users)):
        found = metrics(ttft_s=WAITS[place], rate=RATES[place], tpot_s=0.01 + 0.002 * place)
        yield Measured(at_ns=at(100 + place), candidate="vllm-bf16", point=place, metrics=found)
