"""1,000 streams at 20 ms, in rounds: the floor in C, deploytui without the screen, deploytui with it."""

from pathlib import Path

from benchmarks.cores import Cores
from benchmarks.figures import Figures
from benchmarks.floor import carry
from benchmarks.pace import note_pace
from benchmarks.server import Served, Server, span_ns
from benchmarks.session import Load, Ran, run_headless, run_on_screen
from benchmarks.truth import Errors, Heard, errors, heard_by_floor, heard_by_session, joined, quantile

ITL_US = 20_000
LOAD = Load()
LONGER = Load(requests=5 * LOAD.requests)
TOKENS = LOAD.requests * LOAD.tokens


def measure(server: Server, cores: Cores, folder: Path, rounds: int, figures: Figures) -> None:
    """All rounds; memory is weighed in the last one only, since reading it costs the weighed."""
    for k in range(rounds):
        note_pace(cores.client, figures)
        _floor(server, cores, folder / f"{k}", figures)
        last = k == rounds - 1
        ran = run_headless(_ready(server), (cores.client,), folder / f"{k}" / "headless", LOAD, memory=last)
        without = _session(server, ran, "headless", figures)
        _start(server, ran, figures)
        ran = run_on_screen(_ready(server), cores.client, folder / f"{k}" / "screen", LOAD, memory=last)
        live = _session(server, ran, "screen", figures)
        figures.add("screen moves itl p99 us", live - without)
        _longer(server, cores, folder / f"{k}" / "longer", figures)


def _longer(server: Server, cores: Cores, folder: Path, figures: Figures) -> None:
    """As many streams, each with several requests: what start and end cost weighs less."""
    server.expect(itl_us=ITL_US, stamps=0)
    ran = run_headless(server, (cores.client,), folder, LONGER)
    figures.add("longer cpu s per 1000", ran.watch.reaped_cpu_s / LONGER.requests * 1000)


def _ready(server: Server) -> Server:
    server.expect(itl_us=ITL_US)
    return server


def _floor(server: Server, cores: Cores, folder: Path, figures: Figures) -> None:
    """Twice: as cheap as can be, which is what cost is compared with; then with the kernel's stamps."""
    folder.mkdir(parents=True)
    stamps = folder / "floor.bin"
    shape = {"requests": LOAD.requests, "streams": LOAD.streams, "tokens": LOAD.tokens}
    _ready(server)
    plain = carry(server, cores.client, **shape, stamps=stamps, clock="user")
    figures.add("floor us per token", plain.cpu_s / TOKENS * 1e6)
    figures.add("floor cpu s per 1000", plain.cpu_s / LOAD.requests * 1000)
    _errors("floor user", joined(heard_by_floor(stamps), server.log()), figures)
    _ready(server)
    carry(server, cores.client, **shape, stamps=stamps, clock="kernel")
    _errors("floor", joined(heard_by_floor(stamps), server.log()), figures)


def _errors(who: str, pairs: list[tuple[Heard, Served]], figures: Figures) -> Errors:
    found = errors(pairs, ITL_US)
    figures.add(f"{who} itl p99 us", quantile(found.itl_us, 0.99))
    figures.add(f"{who} ttft p50 us", quantile(found.ttft_us, 0.5))
    figures.add(f"{who} ttft p99 us", quantile(found.ttft_us, 0.99))
    figures.add(f"{who} delivered", found.delivered)
    figures.add("server late p99 us", quantile(found.late_us, 0.99))
    return found


def _session(server: Server, ran: Ran, who: str, figures: Figures) -> float:
    """Everything but the start; gives the ITL error p99 [µs]."""
    pairs = joined(heard_by_session(ran.folder), server.log())
    if len(pairs) < LOAD.requests:
        figures.remarks.append(f"{who}: {LOAD.requests - len(pairs)} of {LOAD.requests} requests left no stamps")
    found = _errors(who, pairs, figures)
    begin, end = span_ns([true for _, true in pairs])
    figures.add(f"{who} repeat s", (ran.written_ns["repeat_done"] - end) / 1e9)
    worker = sum(life.cpu_between(begin, end) for life in ran.watch.of("worker"))
    figures.add(f"{who} us per token", worker / TOKENS * 1e6)
    figures.add(f"{who} cpu s per 1000", ran.watch.reaped_cpu_s / LOAD.requests * 1000)
    figures.add(f"{who} written s", (ran.written_ns["measured"] - end) / 1e9)
    figures.add(f"{who} exit s", (ran.exit_ns - end) / 1e9)
    for role in ("screen", "runner", "worker", "sampler"):
        spent = [life.cpu_ns[-1] for life in ran.watch.of(role) if life.cpu_ns]
        figures.add(f"{who} cpu s {role}", sum(spent) / 1e9 if spent else None)
    for name, peak in ran.watch.peak_pss.items():
        figures.add(f"{who} pss {name}", peak)
    return quantile(found.itl_us, 0.99)


def _start(server: Server, ran: Ran, figures: Figures) -> None:
    first_load = min(request.arrived_ns for request in server.log() if request.asked_tokens == LOAD.tokens)
    for name, kind in (("session", "session_started"), ("prompts", "prompts_made")):
        figures.add(f"start {name} s", (ran.written_ns[kind] - ran.exec_ns) / 1e9)
    figures.add("start any s", (server.stats()["first_arrived_ns"] - ran.exec_ns) / 1e9)
    figures.add("start load s", (first_load - ran.exec_ns) / 1e9)
