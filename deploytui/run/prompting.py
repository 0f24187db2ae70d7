"""The session's prompts: counted once with the first engine that serves, written once, sent to every candidate."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from deploytui.load.orders import Prompt
from deploytui.plan.prompts import Calibration, Vocabulary, calibration, make_prompts, words_for
from deploytui.plan.workload import draw
from deploytui.profile.schema import Workload
from deploytui.record.events import PromptsMade
from deploytui.record.facts import Sidecar
from deploytui.run.doors import ask_one, one_token_body, prompt_tokens
from deploytui.run.recorder import now_ns
from deploytui.run.sidecars import sidecar, write_synced
from deploytui.session.folder import SessionFolder

if TYPE_CHECKING:
    from aiohttp import ClientSession

VERIFIED = 2
"""Prompts that are counted again after they were made; the measured requests verify all."""


class Uncounted(Exception):
    """The engine tells no prompt tokens."""


async def _count(door: "ClientSession", endpoint: str, model: str, text: str, timeout_s: float) -> int:
    path, body = one_token_body(endpoint, model, text)
    count = prompt_tokens(await ask_one(door, path, body, timeout_s))
    if count is None:
        raise Uncounted
    return count


async def calibrate(door: "ClientSession", workload: Workload, model: str, timeout_s: float) -> Calibration | None:
    """Which words are one token for this engine, and what its template adds; None when that can't be told."""
    steps = calibration(workload.prompt_tokens)
    try:
        text = next(steps)
        count = await _count(door, workload.endpoint, model, text, timeout_s)
        # One word with its template tells whether any prompt of that length can be made: said before all is counted.
        words_for(Calibration(Vocabulary((), ()), count - 1), workload.prompt_tokens or count)
        while True:
            text = steps.send(count)
            count = await _count(door, workload.endpoint, model, text, timeout_s)
    except StopIteration as done:
        found: Calibration | None = done.value
        return found
    except Uncounted:
        return None


def part_path(folder: SessionFolder, part: str) -> Path:
    """Where the prompts of `warmup` or of a repeat such as `r0` lie."""
    return folder.path / "prompts" / f"{part}.jsonl"


def _parts(workload: Workload) -> dict[str, int]:
    return {"warmup": workload.warmup_requests} | {f"r{k}": workload.requests for k in range(workload.repeats)}


async def prepare_prompts(
    door: "ClientSession", folder: SessionFolder, workload: Workload, model: str, candidate: str, timeout_s: float
) -> PromptsMade:
    """Make and write all prompts of the session."""
    assert workload.prompt_tokens is not None, "a workload without prompt_tokens is refused before"
    found = await calibrate(door, workload, model, timeout_s)
    texts = _texts(workload, found)
    exact = found is not None and await _verified(door, workload, model, texts["r0"], timeout_s)
    files = await to_thread.run_sync(_write, folder, texts)
    return PromptsMade(
        at_ns=now_ns(),
        draw=draw([file.sha256 for file in files]),
        files=files,
        tokenizer_of=candidate if found else None,
        target_tokens=workload.prompt_tokens,
        overhead_tokens=found.overhead_tokens if found else None,
        exact=exact,
    )


def _texts(workload: Workload, found: Calibration | None) -> dict[str, list[str]]:
    target = workload.prompt_tokens or 1
    vocabulary = found.vocabulary if found else None
    words = words_for(found, target) if found else target
    return {part: make_prompts(vocabulary, words, workload.seed, part, n) for part, n in _parts(workload).items()}


async def _verified(door: "ClientSession", workload: Workload, model: str, texts: list[str], timeout_s: float) -> bool:
    counts = [await _count(door, workload.endpoint, model, text, timeout_s) for text in texts[-VERIFIED:]]
    return all(count == workload.prompt_tokens for count in counts)


def _write(folder: SessionFolder, texts: dict[str, list[str]]) -> tuple[Sidecar, ...]:
    files = []
    for part, prompts in texts.items():
        path = part_path(folder, part)
        write_synced(path, [msgspec.json.encode(Prompt(id=k, prompt=text)) for k, text in enumerate(prompts)])
        files.append(sidecar(path, folder.path, len(prompts)))
    return tuple(files)
