"""What an engine does after what it has to bear: a prompt that is too long, clients that leave, a burst.

It comes after all measuring: whatever happens here, what was measured stays.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Literal

import anyio
from anyio import to_thread
from msgspec import Struct

from deploytui.engine.metric_values import reading
from deploytui.errors import DeployError, EngineError
from deploytui.load.course import TOO_MANY
from deploytui.record.before import CHECKS
from deploytui.record.engine_events import RecoveryDone
from deploytui.record.events import Progress
from deploytui.record.facts import RecoveryCheck
from deploytui.record.trace import CUT_OFF, RequestRecord
from deploytui.run.bench import DEATH_S, Bench
from deploytui.run.context import Context
from deploytui.run.doors import Door, ask_one, door, get_answer, one_token_body
from deploytui.run.recorder import now_ns
from deploytui.run.recovery_asks import ask_over_long, burst, cut_streams

ANSWER_S = 30.0
"""How long an engine may take to answer a plain request again [s]."""
IDLE_S = 15.0
"""How long it may take until its own figures are those of an idle engine again [s]."""
LOOK_S = 0.1
SLACK = 0.01
"""Share of the KV cache that may be in use more than before: what a prefix cache keeps is a part of it."""

Name = Literal["over_long_prompt", "client_abort", "burst"]
Bear = Callable[[Context, Bench], Awaitable[list[RequestRecord]]]


class Own(Struct, frozen=True):
    """The engine's own figures; None where it does not tell."""

    running: float | None = None
    kv_usage: float | None = None


class Idle(Struct, frozen=True):
    """Whether the engine counts itself idle again, and after how long [s]; None where it does not tell."""

    kv: bool | None = None
    kv_s: float | None = None
    running: float | None = None
    running_s: float | None = None


class Died(Exception):
    """The engine ended in a check."""

    def __init__(self, check: RecoveryCheck) -> None:
        super().__init__(check.note)
        self.check = check


async def check_recovery(ctx: Context, bench: Bench) -> None:
    """Put all three on the engine, one after the other, and journal what it did; a dead engine ends the checks.

    Its death is in the record with its cause, and does not undo what was measured before.
    """
    tries: tuple[tuple[Name, Bear], ...] = (
        ("over_long_prompt", ask_over_long),
        ("client_abort", cut_streams),
        ("burst", burst),
    )
    name, checks = bench.candidate.name, list[RecoveryCheck]()
    ctx.note("info", f"{name}: looks how it recovers from a long prompt, clients that leave, a burst", name)
    try:
        async with door(bench.base_url, bench.headers) as calls:
            for number, (what, bear) in enumerate(tries):
                await ctx.halt.go.wait()
                _progress(ctx, name, what, number, len(tries))
                checks.append(await _check(ctx, bench, calls, what, bear))
    except Died as death:
        checks.append(death.check)
        ctx.note("error", f"{name}: {death.check.note}", name)
    finally:
        if checks:
            ctx.recorder.say(RecoveryDone(at_ns=now_ns(), candidate=name, checks=tuple(checks)))


def _progress(ctx: Context, name: str, what: Name, done: int, total: int) -> None:
    """It has no phase of its own: without a word the last one would seem to stand still."""
    text = f"recovery from {CHECKS[what]}"
    ctx.recorder.say(Progress(at_ns=now_ns(), candidate=name, done=done, total=total, text=text, unit="checks"))


async def _check(ctx: Context, bench: Bench, calls: Door, what: Name, bear: Bear) -> RecoveryCheck:
    before = await _own(bench, calls)
    try:
        records = await bear(ctx, bench)
    except (DeployError, OSError) as error:
        records, trouble = [], error.what if isinstance(error, DeployError) else str(error)
    else:
        trouble = ""
    over = time.monotonic()
    idle = await _idle_again(bench, calls, before, over) if what == "client_abort" else Idle()
    await _check_alive(bench, what, records)
    answered_s = await _answers(ctx, bench, calls, over)
    await _check_alive(bench, what, records)
    return RecoveryCheck(
        name=what,
        answers=answered_s is not None,
        status=_status(records) if what == "over_long_prompt" else None,
        seconds=answered_s,
        kv_idle=idle.kv,
        kv_idle_s=idle.kv_s,
        note=trouble or _said(what, records, idle),
    )


async def _check_alive(bench: Bench, what: Name, records: list[RequestRecord]) -> None:
    """Raise when the engine's process is gone; its end may come a little after the requests it broke."""
    if bench.kept is None:
        return
    broken = any(record.http_status is None or record.error_kind == "truncated" for record in records if not record.ok)
    with anyio.move_on_after(DEATH_S if broken else 0.0):
        await bench.kept.exited.wait()
    if bench.kept.exited.is_set():
        failure = await to_thread.run_sync(bench.died)
        note = " ".join(part for part in (failure.what, failure.why) if part)
        raise Died(RecoveryCheck(name=what, answers=False, status=_status(records), note=note))


async def _answers(ctx: Context, bench: Bench, calls: Door, since: float) -> float | None:
    """How long after `since` a plain request was answered [s]; None when none was within the limit."""
    path, body = one_token_body(ctx.profile.workload.endpoint, bench.served_model, "Hello", bench.candidate.api)
    with anyio.move_on_after(ANSWER_S):
        while True:
            try:
                await ask_one(calls, path, body, ANSWER_S)
            except EngineError:
                if bench.kept is not None and bench.kept.exited.is_set():
                    return None
                await anyio.sleep(LOOK_S)
            else:
                return time.monotonic() - since
    return None


async def _own(bench: Bench, calls: Door) -> Own:
    names = bench.engine.metrics
    if names is None:
        return Own()
    answer = await get_answer(calls, names.path.lstrip("/"))
    if answer is None:
        return Own()
    found = {figure: reading(names, figure, answer) for figure in ("running", "kv_usage")}
    return Own(**{figure: told.value for figure, told in found.items() if told is not None})


async def _idle_again(bench: Bench, calls: Door, before: Own, since: float) -> Idle:
    """Look at the engine's own figures until they are those of an idle engine, or the time is over."""
    idle = Idle()
    while True:
        now = await _own(bench, calls)
        idle, elapsed = _seen(idle, before, now, time.monotonic() - since), time.monotonic() - since
        if elapsed > IDLE_S or (idle.kv is not False and idle.running in (None, 0.0)):
            return idle
        if bench.kept is not None and bench.kept.exited.is_set():
            return idle
        await anyio.sleep(LOOK_S)


def _seen(idle: Idle, before: Own, now: Own, elapsed: float) -> Idle:
    """What is known after one more look; an engine that tells no more keeps what it told."""
    kv, kv_s, running, running_s = idle.kv, idle.kv_s, idle.running, idle.running_s
    if now.kv_usage is not None and before.kv_usage is not None and not kv:
        kv = now.kv_usage <= before.kv_usage + SLACK
        kv_s = elapsed if kv else None
    if now.running is not None and running != 0.0:
        running, running_s = now.running, elapsed if now.running == 0.0 else None
    return Idle(kv, kv_s, running, running_s)


def _status(records: list[RequestRecord]) -> int | None:
    return records[0].http_status if records else None


def _said(what: Name, records: list[RequestRecord], idle: Idle) -> str:
    """What came of the requests, in a sentence."""
    ok = sum(record.ok for record in records)
    if what == "over_long_prompt":
        return next((record.error or "it was answered" for record in records), "it was not sent")
    if what == "burst":
        busy = sum(record.http_status == TOO_MANY for record in records)
        return f"{ok} of {len(records)} answered, {busy} refused as too many"
    cut = sum(record.error_kind == CUT_OFF for record in records)
    if not cut:
        return "no stream was under way any more when it was to be cut"
    return f"{cut} streams cut{_counted(idle)}"


def _counted(idle: Idle) -> str:
    match idle:
        case Idle(running=None):
            return ""
        case Idle(running_s=None):
            return f"; the engine still counts {idle.running:g} running after {IDLE_S:g} s"
        case _:
            return f"; none running by the engine's count after {idle.running_s:.1f} s"
