"""The lines above the grid: what session this is, where it stands, what the node does, what is wrong."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from deploytui.record.facts import DeviceSample, Environment
from deploytui.record.series import Series
from deploytui.record.state import SessionState
from deploytui.tui.figures import MISSING, clock
from deploytui.tui.pieces import Line, Piece, Tone, fitted, line, spread, width_of
from deploytui.tui.plain import visible
from deploytui.tui.progress import active, elapsed_s, eta_s, turn
from deploytui.tui.sparks import sparkline
from deploytui.tui.words import DECISION_SIGNS
from deploytui.units import GIB

Source = Literal["running", "ended", "died", "saved", "other_host"]
"""What stands behind the state: a runner, an ended session, a runner that is gone, a file, another host's session."""
NODE_SPARK = 4
HALF = 59
"""Cells that one GPU of two beside each other needs."""
BUSY_PERCENT = 5.0


class Standing(Struct, frozen=True):
    """The state of a session together with what the screen itself knows."""

    state: SessionState
    source: Source
    now_ns: int | None = None
    unreadable: int = 0
    """Journal lines that could not be read."""
    trouble: str = ""
    """Why the journal can't be read at all."""
    name: str = ""
    """Of the profile, where the state does not know it."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.source in ("ended", "died", "saved")

    @property
    def steerable(self) -> bool:
        """Whether a runner listens here."""
        return self.source == "running"


def header(standing: Standing, width: int) -> Line:
    """Name, candidates and host on the left; where the session is on the right."""
    state = standing.state
    count = len(state.candidates)
    host = state.environment.host.hostname if state.environment else state.started.hostname if state.started else ""
    many = f"{count} candidate{'' if count == 1 else 's'}" if count else ""
    facts = [fact for fact in (visible(session_name(standing)), many, visible(host)) if fact]
    stamp = line(Piece(" SIMULATED ", "sim"), " ") if state.simulated else ()
    right = where(standing)
    left = line(*stamp, Piece("deploytui", "mark"), "  ", " · ".join(facts))
    while len(facts) > 1 and width_of(left) + 2 + width_of(right) > width:
        facts.pop()
        left = line(*stamp, Piece("deploytui", "mark"), "  ", " · ".join(facts))
    return spread(left, right, width)


def session_name(standing: Standing) -> str:
    """The profile's name."""
    return standing.state.started.name if standing.state.started else standing.name or "starting"


def where(standing: Standing) -> Line:
    """What is being done, for how long, and how long it will take."""
    state = standing.state
    passed = elapsed_s(state, standing.now_ns)
    time = f" · {clock(passed)}" if passed is not None else ""
    match standing.source:
        case "died":
            return line(Piece("✘ runner gone", "bad"))
        case "saved":
            return line(Piece("saved results", "busy"))
        case "ended":
            return line(*_ending(state), time)
        case _:
            left = eta_s(state, standing.now_ns)
            # What has taken longer than expected has no time left that anyone knows.
            eta = f" · eta {clock(left)}" if left is not None and left >= 1 else ""
            return line(*_doing(state), time, eta)


def _ending(state: SessionState) -> Line:
    status = state.ended.exit_status if state.ended else 0
    if status == 130:
        return line(Piece("interrupted", "warn"))
    if status in (1, 2):
        return line(Piece(f"✘ ended with status {status}", "bad"))
    return line("finished")


def _doing(state: SessionState) -> Line:
    row, count = active(state), len(state.candidates)
    if state.paused:
        return line(Piece("paused", "warn"))
    if not count:
        return line(Piece("starting", "busy"))
    return line(Piece(row.phase if row else "waiting", "busy"), f" {turn(state)}/{count}")


def node_lines(standing: Standing, width: int, most: int = 4) -> tuple[Line, ...]:
    """A line a GPU, two where they fit beside each other, or one of the CPU host; only what it is after the end."""
    state = standing.state
    devices = state.node.devices if state.node and not standing.over else ()
    if not devices:
        return (host_line(standing),)
    beside = len(devices) > 1 and width >= 2 * HALF
    cells = [device_line(state, device, brief=beside) for device in devices]
    if beside:
        cells = [_beside(cells[place : place + 2], width // 2) for place in range(0, len(cells), 2)]
    hidden = len(cells) - most
    return (*cells[: most - 1], line(Piece(f"… {hidden + 1} more lines", "dim"))) if hidden > 0 else tuple(cells)


def _beside(pair: Sequence[Line], half: int) -> Line:
    first = fitted(pair[0], half)
    return line(*first, " " * (half - width_of(first)), *(pair[1] if len(pair) > 1 else ()))


def device_line(state: SessionState, device: DeviceSample, *, brief: bool = False) -> Line:
    """One GPU: what it is, how busy, how full, its power and temperature."""
    name = Piece(f"GPU {device.index} ", "mark"), f"{visible(short_name(device.name))} "
    if device.lost:
        return line(*name, Piece(f"✘ lost: {visible(device.lost)}", "bad"))
    memory = _of(device.used_bytes.last if device.used_bytes else None, device.total_bytes)
    if _idle(device):
        return line(*name, Piece(f"idle  {memory}", "dim"))
    busy, used = state.gpu_utilisation.get(device.uuid, Series()), state.gpu_used.get(device.uuid, Series())
    share = f"{device.utilisation.last:.0f} %" if device.utilisation else MISSING
    return line(
        *name,
        Piece(sparkline(busy, NODE_SPARK, per_bar=2, ceiling=100.0), "busy"),
        f" {share}  {'' if brief else 'mem '}",
        Piece(sparkline(used, NODE_SPARK, per_bar=2, ceiling=device.total_bytes), "busy"),
        f" {memory}",
        f"  {_watts(device, brief=brief)}" if device.power_w is not None else "",
        f" {_degrees(device, brief=brief)}" if device.temperature_c is not None else "",
    )


def _idle(device: DeviceSample) -> bool:
    """Whether a GPU does nothing, now and for the whole interval."""
    return device.utilisation is not None and device.utilisation.max < BUSY_PERCENT


def short_name(name: str) -> str:
    """A GPU's name without the words that all of them share."""
    return name.removeprefix("NVIDIA ").replace(" HBM3", "")


def host_line(standing: Standing) -> Line:
    """The host: its GPUs by name or that it has none, processor, memory, how busy while it is measured."""
    state = standing.state
    node, host = state.node, state.environment.host if state.environment else None
    parts = [visible(host.cpu) if host and host.cpu else ""]
    if host and host.cores:
        parts.append(f"{host.cores} core{'' if host.cores == 1 else 's'}")
    if node is not None and not standing.over:
        parts.append(f"mem {_of(node.host_used_bytes, node.host_total_bytes)}")
        parts.append(f"cpu {MISSING if node.cpu_percent is None else f'{node.cpu_percent:.0f} %'}")
    elif host and host.memory_bytes:
        parts.append(f"mem {host.memory_bytes / GIB:.1f} GiB")
    shown = " · ".join(part for part in parts if part)
    return line(Piece(_node_title(state.environment), "mark"), f" · {shown}" if shown else "")


def _node_title(environment: Environment | None) -> str:
    if environment is None or not environment.gpus:
        return "CPU host"
    names = Counter(visible(short_name(gpu.name)) for gpu in environment.gpus)
    return ", ".join(f"{count}× {name}" for name, count in names.items())


def _of(used: float | None, total: float | None) -> str:
    """`71.2/80.0 GiB`, each part a dash where it is not known."""
    parts = (MISSING if part is None else f"{part / GIB:.1f}" for part in (used, total))
    return "/".join(parts) + " GiB"


def _watts(device: DeviceSample, *, brief: bool) -> str:
    limit = f"/{device.power_limit_w:.0f}" if device.power_limit_w is not None and not brief else ""
    return f"{device.power_w:.0f}{limit} W"


def _degrees(device: DeviceSample, *, brief: bool) -> str:
    return f"{device.temperature_c:.0f}°C" if brief else f" {device.temperature_c:.0f} °C"


def alert(standing: Standing) -> Line:
    """What is wrong and what to do about it; nothing when nothing is."""
    state = standing.state
    if standing.trouble:
        return line(Piece("✘ ", "bad"), visible(standing.trouble.replace("\n", " ")))
    if standing.source == "died":
        return line(
            Piece("✘ The runner is gone without an end. ", "bad"),
            "What was finished is kept: s save, e export, r again.",
        )
    if standing.source == "other_host":
        return line(Piece("! ", "warn"), "This session runs on another host: it can be read here, not steered.")
    if standing.unreadable:
        return line(Piece(f"! {standing.unreadable} lines of the journal could not be read.", "warn"))
    if state.ended is not None and state.ended.why:
        return line(Piece("! ", "warn"), visible(state.ended.why))
    troubles = [note for note in state.notes if note.startswith(("error: ", "warning: "))]
    if not troubles:
        return ()
    tone: Tone = "bad" if troubles[-1].startswith("error") else "warn"
    more = f"  (+{len(troubles) - 1}, see Decision)" if len(troubles) > 1 else ""
    return line(Piece("! ", tone), visible(troubles[-1].partition(": ")[2]), Piece(more, "dim"))


def status_line(standing: Standing) -> Line:
    """All of it in one line, for a window too small for more."""
    state, decision = standing.state, standing.state.decision
    row = active(state)
    stamp = Piece("SIMULATED ", "sim") if state.simulated else Piece("")
    so_far = f" · {DECISION_SIGNS[decision.decision]} {decision.decision}" if decision else ""
    leader = f" {visible(decision.winner)}" if decision and decision.winner else ""
    return line(stamp, *where(standing), f" · {visible(row.name)}" if row else "", so_far, leader)
