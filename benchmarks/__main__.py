"""`python -m benchmarks`: the budgets of the load generator, each beside a floor in C in the same run.

1,000 streams × 20 ms × 128 tokens, unless said otherwise. The server has a core to itself, a client (the floor in C,
or all of deploytui: screen, runner, worker, sampler) has another. CPU a token counts the load alone, from the first
request's arrival to the last token, on both sides. Errors are the client's stamps against the server's log.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from compileall import compile_dir
from pathlib import Path

import deploytui
from benchmarks import long, paced, streams, unpaced
from benchmarks.cores import Cores, chosen, circumstances, favour
from benchmarks.figures import Figures
from benchmarks.processes import adopt_orphans
from benchmarks.server import Server, serving
from benchmarks.table import markdown

Part = Callable[[Server, Cores, Path, int, Figures], None]


def _large(server: Server, cores: Cores, folder: Path, _: int, figures: Figures) -> None:
    long.measure_large(server, cores, folder, figures)


def _memory(server: Server, cores: Cores, folder: Path, _: int, figures: Figures) -> None:
    long.measure_memory(server, cores, folder, figures)


def _workers(server: Server, cores: Cores, folder: Path, _: int, figures: Figures) -> None:
    streams.measure_workers(server, cores, folder, figures)


def _streams(server: Server, cores: Cores, folder: Path, rounds: int, figures: Figures) -> None:
    streams.measure(server, cores, folder, min(rounds, 3), figures)


PARTS: dict[str, Part] = {
    "paced": paced.measure,
    "streams": _streams,
    "unpaced": unpaced.measure,
    "large": _large,
    "memory": _memory,
    "workers": _workers,
}
QUICK = ("paced", "unpaced")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be given again")
    parser.add_argument("--quick", action="store_true", help=f"one round of {' and '.join(QUICK)}")
    asked = parser.parse_args()
    cores, figures = chosen(), Figures()
    compile_dir(Path(deploytui.__file__).parent, quiet=2)  # as an installed package is; else each start compiles anew
    adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="deploytui-benchmarks-"))
    try:
        with serving(cores.server) as server:
            for line in circumstances(cores, favoured=favour(server.pid)):
                _say(f"- {line}")
            for name in asked.only or (QUICK if asked.quick else tuple(PARTS)):
                print(f"measuring: {name} …", file=sys.stderr, flush=True)  # noqa: T201
                rounds = 1 if asked.quick else asked.rounds
                try:
                    PARTS[name](server, cores, folder / name, rounds, figures)
                except RuntimeError as error:  # the other parts are worth having all the same
                    figures.remarks.append(f"{name} ended early: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _say(f"\n{markdown(figures)}")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
