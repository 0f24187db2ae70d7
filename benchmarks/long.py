"""What grows with the number of requests: the end of a large run, and a worker's memory while streams come and go."""

from pathlib import Path

from benchmarks.cores import Cores
from benchmarks.figures import Figures
from benchmarks.server import Server, span_ns, tokens_per_s
from benchmarks.session import Load, run_headless
from benchmarks.worker import carry

LARGE = Load(requests=100_000, streams=256)
FLAT_REQUESTS = 5000
STREAMS = 1000
MOMENTS = (0.2, 0.4, 0.6, 0.8, 0.98)


def measure_large(server: Server, cores: Cores, folder: Path, figures: Figures) -> None:
    """100,000 requests of 128 tokens, unpaced: from the last byte to the written result, and the worker's memory."""
    server.expect(burst=8, stamps=0)
    ran = run_headless(server, (cores.client,), folder / "large", LARGE)
    served = [request for request in server.log_without_stamps() if request.asked_tokens == LARGE.tokens]
    _, last = span_ns(served)
    figures.add("large written s", (ran.written_ns["measured"] - last) / 1e9)
    figures.add("large exit s", (ran.exit_ns - last) / 1e9)
    figures.add("large worker bytes", max(life.peak_rss_bytes for life in ran.watch.of("worker")))
    figures.remarks.append(f"100,000 requests, 8 events a send: {tokens_per_s(served) / 1e6:.2f} M tokens/s")


def measure_memory(server: Server, cores: Cores, folder: Path, figures: Figures) -> None:
    """Resident memory of a worker that keeps 1,000 streams open over five generations of requests."""
    server.expect(stamps=0)
    done = carry(server, cores.client, folder / "memory", requests=FLAT_REQUESTS, streams=STREAMS, memory=True)
    begin, end = span_ns(done.served)
    for share in MOMENTS:
        moment = begin + (end - begin) * share
        nearest = min(done.life.rss, key=lambda sample: abs(sample[0] - moment))
        figures.add(f"rss at {share:.0%}", nearest[1])
