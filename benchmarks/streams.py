"""How many streams at 20 ms one client core carries before the gaps are more than 1 ms off."""

from pathlib import Path

from benchmarks.cores import Cores
from benchmarks.figures import Figures
from benchmarks.floor import carry
from benchmarks.pace import note_pace
from benchmarks.paced import ITL_US
from benchmarks.server import Server
from benchmarks.session import Load, run_headless
from benchmarks.truth import errors, heard_by_floor, heard_by_session, joined, quantile

STREAMS = (1000, 1500, 2000, 2500, 3000)
LIMIT_US = 1000.0


def measure(server: Server, cores: Cores, folder: Path, rounds: int, figures: Figures) -> None:
    """Every number of streams in every round."""
    for k in range(rounds):
        note_pace(cores.client, figures)
        for streams in STREAMS:
            figures.add(
                f"floor {streams} streams itl p99 us", _floor(server, cores, folder / f"{k}-{streams}.bin", streams)
            )
            server.expect(itl_us=ITL_US)
            load = Load(requests=streams, streams=streams)
            ran = run_headless(server, (cores.client,), folder / f"{k}-{streams}", load)
            found = errors(joined(heard_by_session(ran.folder), server.log()), ITL_US)
            figures.add(f"{streams} streams itl p99 us", quantile(found.itl_us, 0.99))
            figures.add(f"{streams} streams delivered", found.delivered)
            figures.add(f"{streams} streams server late p99 us", quantile(found.late_us, 0.99))


def _floor(server: Server, cores: Cores, stamps: Path, streams: int) -> float:
    """The same from C, with the kernel's stamps: the error's P99 [µs]."""
    stamps.parent.mkdir(parents=True, exist_ok=True)
    server.expect(itl_us=ITL_US)
    carry(server, cores.client, requests=streams, streams=streams, tokens=Load().tokens, stamps=stamps, clock="kernel")
    return quantile(errors(joined(heard_by_floor(stamps), server.log()), ITL_US).itl_us, 0.99)


def measure_workers(server: Server, cores: Cores, folder: Path, figures: Figures) -> None:
    """Two load workers with 1,000 streams each, each on a core of its own; only where a third core is."""
    if cores.watcher == cores.server:
        figures.remarks.append("two load workers against one: not measured, that takes three cores")
        return
    server.expect(itl_us=ITL_US)
    load = Load(requests=2000, streams=2000, workers=2)
    ran = run_headless(server, (cores.client, (*cores.spare, cores.watcher)[0]), folder / "workers", load)
    found = errors(joined(heard_by_session(ran.folder), server.log()), ITL_US)
    share = "an unknown share" if found.delivered is None else f"{found.delivered:.2%}"
    figures.remarks.append(
        f"two load workers on two cores, 1,000 streams each: ITL error P99 {quantile(found.itl_us, 0.99):.1f} µs, "
        f"{share} of the offered load delivered"
    )


def most(figures: Figures, who: str = "") -> int | None:
    """The largest number that, like all smaller ones, has its median error within the limit; None of nothing.

    Of deploytui, or of the `floor `.
    """
    good = None
    for streams in STREAMS:
        p99 = figures.median(f"{who}{streams} streams itl p99 us")
        if p99 is None:
            continue
        if p99 >= LIMIT_US:
            return good or 0
        good = streams
    return good
