"""`python -m benchmarks.peers --aiperf VENV`: what aiperf says of the paced server, what is true, what deploytui says.

VENV is a virtual environment with aiperf in it, of its own, made beforehand: `python -m venv VENV` and
`VENV/bin/pip install aiperf`. Both tools get 1,000 streams × 20 ms × 128 tokens, one core, and the same server on
another; what is true differs a little between the two runs and stands beside each.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from benchmarks.cores import Cores, chosen, circumstances, favour, on_cores
from benchmarks.processes import Watch, adopt_orphans
from benchmarks.server import MODEL, Served, Server, serving, tokens_per_s
from benchmarks.session import Load, run_headless
from benchmarks.truth import quantile
from deploytui.record.events import Measured
from deploytui.record.facts import Distribution
from deploytui.record.lines import LineReader

LOAD = Load()
LIMIT_S = 180.0
MS_PER_NS = 1e-6
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = {"[UNK]": 0} | {f"w{k:02d}": k + 1 for k in range(100)}
own = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=own, unk_token="[UNK]").save_pretrained(sys.argv[1])
"""
"""Makes a tokenizer for which each word of the server is one token, so that nothing is fetched."""


@dataclass(frozen=True)
class Account:
    """Latencies [ms] and rate, as a tool tells them or as the server knows them; None where it does not tell."""

    ttft: "Two"
    gap: "Two"
    """Of every gap between tokens."""
    mean: "Two"
    """Of each request's mean gap."""
    tokens_per_s: float | None
    cpu_s: float | None = None
    """Processor time of all its processes, from start to exit [s]."""


@dataclass(frozen=True)
class Two:
    """Median and 99th percentile; None where a tool does not tell."""

    p50: float | None = None
    p99: float | None = None


Pick = Callable[[Account], float | None]
ROWS: dict[str, Pick] = {
    "TTFT P50 [ms]": lambda told: told.ttft.p50,
    "TTFT P99 [ms]": lambda told: told.ttft.p99,
    "ITL of every gap, P50 [ms]": lambda told: told.gap.p50,
    "ITL of every gap, P99 [ms]": lambda told: told.gap.p99,
    "mean ITL of a request, P50 [ms]": lambda told: told.mean.p50,
    "mean ITL of a request, P99 [ms]": lambda told: told.mean.p99,
    "output tokens/s": lambda told: told.tokens_per_s,
    "CPU, start to exit [s]": lambda told: told.cpu_s,
}


def truth(served: Sequence[Served]) -> Account:
    """What the server knows of the requests that asked for the load's length."""
    asked = [request for request in served if request.asked_tokens == LOAD.tokens and request.events == LOAD.tokens]
    ttft = sorted((request.sent_ns[0] - request.arrived_ns) * MS_PER_NS for request in asked)
    gaps = [[(b - a) * MS_PER_NS for a, b in zip(r.sent_ns, r.sent_ns[1:], strict=False)] for r in asked]
    means, every = sorted(map(fmean, gaps)), sorted(gap for each in gaps for gap in each)
    return Account(_two(ttft), _two(every), _two(means), tokens_per_s(asked))


def _two(ordered: Sequence[float]) -> Two:
    return Two(quantile(ordered, 0.5), quantile(ordered, 0.99))


def ask_aiperf(server: Server, cores: Cores, venv: Path, folder: Path) -> Account:
    """Run aiperf and read what it wrote."""
    subprocess.run([venv / "bin/python", "-c", TOKENIZER, folder / "tokenizer"], check=True, capture_output=True)
    watch = Watch(server.pid)
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "160", "DO_NOT_TRACK": "1"}
    with (folder / "aiperf.log").open("wb") as log, on_cores(cores.client):
        pid = subprocess.Popen(
            _aiperf_argv(server, venv, folder),
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).pid
    last = time.monotonic() + LIMIT_S
    while pid not in watch.reap() and time.monotonic() < last:
        watch.look()
        time.sleep(0.02)
    for left in watch.alive():
        os.kill(left, 9)
    written = next((folder / "out").rglob("profile_export_aiperf.json"), None)
    if written is None:
        raise SystemExit(f"aiperf wrote no result:\n{(folder / 'aiperf.log').read_text()[-2000:]}")
    return _aiperf_account(msgspec.json.decode(written.read_bytes()), watch.reaped_cpu_s)


def _aiperf_argv(server: Server, venv: Path, folder: Path) -> list[str]:
    options = {
        "--model": MODEL,
        "--url": server.url,
        "--endpoint-type": "chat",
        "--tokenizer": str(folder / "tokenizer"),
        "--concurrency": str(LOAD.streams),
        "--request-count": str(LOAD.requests),
        "--isl": "32",
        "--isl-stddev": "0",
        "--osl": str(LOAD.tokens),
        "--osl-stddev": "0",
        "--ui": "none",
        "--output-artifact-dir": str(folder / "out"),
    }
    words = [word for pair in options.items() for word in pair]
    return [str(venv / "bin/aiperf"), "profile", *words, "--streaming", "--no-gpu-telemetry", "--no-server-metrics"]


def _aiperf_account(told: dict[str, Any], cpu_s: float) -> Account:
    told = told.get("records", told)
    ttft, mean = told["time_to_first_token"], told["inter_token_latency"]
    rate = told["output_token_throughput"]["avg"]
    return Account(Two(ttft["p50"], ttft["p99"]), Two(), Two(mean["p50"], mean["p99"]), rate, cpu_s)


def ask_deploytui(server: Server, cores: Cores, folder: Path) -> Account:
    """Run deploytui and read what its journal says."""
    ran = run_headless(server, (cores.client,), folder, LOAD)
    events = LineReader().feed((ran.folder / "journal.jsonl").read_bytes())
    said = next(event.metrics for event in events if isinstance(event, Measured))
    ttft, gap, mean = (_in_ms(told) for told in (said.ttft, said.icl, said.tpot))
    return Account(ttft, gap, mean, said.output_tok_s, ran.watch.reaped_cpu_s)


def _in_ms(told: Distribution) -> Two:
    p50, p99 = (None if value is None else value * 1e3 for value in (told.p50, told.p99))
    return Two(p50, p99)


def table(columns: Sequence[tuple[str, Account]]) -> Iterator[str]:
    """The accounts side by side, in Markdown."""
    yield f"| | {' | '.join(name for name, _ in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for text, pick in ROWS.items():
        values = [pick(account) for _, account in columns]
        yield f"| {text} | {' | '.join('–' if value is None else f'{value:,.2f}' for value in values)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--aiperf", type=Path, required=True, metavar="VENV", help="where aiperf is installed")
    venv = parser.parse_args().aiperf.absolute()
    cores = chosen()
    adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="deploytui-benchmarks-"))
    try:
        with serving(cores.server) as server:
            lines = [f"- {line}" for line in circumstances(cores, favoured=favour(server.pid))]
            server.expect()
            peer = ask_aiperf(server, cores, venv, folder)
            peer_truth = truth(server.log())
            server.expect()
            ours = ask_deploytui(server, cores, folder / "deploytui")
            ours_truth = truth(server.log())
        columns = [
            ("aiperf said", peer),
            ("true then", peer_truth),
            ("deploytui said", ours),
            ("true then", ours_truth),
        ]
        print("\n".join((*lines, "", *table(columns))))  # noqa: T201
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
