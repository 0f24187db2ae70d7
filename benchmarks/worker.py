"""One load worker alone, given an order as the runner would give it."""

import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.cores import on_cores
from benchmarks.processes import Life, Watch
from benchmarks.server import MODEL, Served, Server
from deploytui.load.orders import LoadOrder, Prompt, Report, Trouble, said_decoder

LOOK_S = 0.005
LIMIT_S = 180.0


@dataclass(frozen=True)
class Carried:
    """A load that a worker has carried."""

    report: Report
    life: Life
    served: list[Served]


def write_prompts(path: Path, count: int) -> None:
    """Short prompts, numbered from 0."""
    lines = [msgspec.json.encode(Prompt(id=k, prompt=f"say some words about number {k}")) for k in range(count)]
    path.write_bytes(b"\n".join(lines) + b"\n")


def carry(
    server: Server, core: int, folder: Path, *, requests: int, streams: int, tokens: int = 128, memory: bool = False
) -> Carried:
    """Send a closed load through one worker; RuntimeError when it could not. The server keeps no stamps."""
    folder.mkdir(parents=True)
    write_prompts(folder / "prompts.jsonl", requests)
    order = LoadOrder(
        base_url=server.url,
        endpoint="chat",
        model=MODEL,
        output_tokens=tokens,
        prompts=str(folder / "prompts.jsonl"),
        concurrency=streams,
        records=str(folder / "requests.w0.jsonl"),
        stamps=str(folder / "stamps.w0.bin"),
    )
    watch = Watch(server.pid, memory=memory)
    with (folder / "errors").open("wb") as errors, on_cores(core):
        process = subprocess.Popen(
            [sys.executable, "-m", "deploytui.load.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    report = _led(process, msgspec.json.encode(order), watch)
    if report is None or report.ok < requests:
        raise RuntimeError(f"the load worker failed: {(folder / 'errors').read_text()} {report}")
    return Carried(report, watch.lives[process.pid], server.log_without_stamps())


def _led(process: "subprocess.Popen[bytes]", order: bytes, watch: Watch) -> Report | None:
    """Its report; the leash on its standard input is held until then."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order + b"\n")
    process.stdin.flush()
    held, report, last = b"", None, time.monotonic() + LIMIT_S
    while time.monotonic() < last:
        watch.look()
        if not select.select([process.stdout], [], [], LOOK_S)[0]:
            continue
        block = os.read(process.stdout.fileno(), 65536)
        if not block:
            break
        *lines, held = (held + block).split(b"\n")
        report = next((said for said in map(_said, lines) if said is not None), report)
        if report is not None:
            process.stdin.close()
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    return report


def _said(line: bytes) -> Report | None:
    match said_decoder.decode(line):
        case Report() as report:
            return report
        case Trouble() as trouble:
            raise RuntimeError(f"{trouble.what} {trouble.why}")
    return None
