"""As fast as it goes: a load worker alone on a server that spins on its core, eight events a send and one."""

from pathlib import Path

from benchmarks.cores import Cores
from benchmarks.figures import Figures
from benchmarks.floor import carry as carry_in_c
from benchmarks.pace import note_pace
from benchmarks.server import Server, span_ns, tokens_per_s
from benchmarks.worker import carry

USERS = 256
REQUESTS = {8: 8000, 1: 4000}
TOKENS = 128
REST_US = 1000


def measure(server: Server, cores: Cores, folder: Path, rounds: int, figures: Figures) -> None:
    """Floor, what the server can send to a client that rests, and worker in turn, for each number of events a send."""
    for k in range(rounds):
        note_pace(cores.client, figures)
        for burst, requests in REQUESTS.items():
            server.expect(burst=burst, stamps=0)
            floor = carry_in_c(server, cores.client, requests=requests, streams=USERS, tokens=TOKENS)
            figures.add(f"floor burst {burst}", tokens_per_s(server.log_without_stamps()))
            figures.add(f"floor burst {burst} us per token", floor.cpu_s / requests / TOKENS * 1e6)
            server.expect(burst=burst, stamps=0)
            carry_in_c(server, cores.client, requests=requests, streams=USERS, tokens=TOKENS, rest_us=REST_US)
            figures.add(f"server burst {burst}", tokens_per_s(server.log_without_stamps()))
            server.expect(burst=burst, stamps=0)
            where = folder / f"{k}-{burst}"
            done = carry(server, cores.client, where, requests=requests, streams=USERS, tokens=TOKENS)
            figures.add(f"worker burst {burst}", tokens_per_s(done.served))
            spent = done.life.cpu_between(*span_ns(done.served))
            figures.add(f"worker burst {burst} us per token", spent / requests / TOKENS * 1e6)
