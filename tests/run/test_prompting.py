"""The prompts files of a session, made against a real server that counts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deploytui.errors import ProfileError
from deploytui.load.orders import Prompt
from deploytui.plan.dataset import parse_dataset
from deploytui.plan.inputs import Inputs
from deploytui.plan.parts import Part, parts
from deploytui.plan.prompts import Calibration
from deploytui.profile.load_schema import Burst, Closed, Constant, Uniform
from deploytui.profile.schema import SharedPrefix, Workload
from deploytui.record.events import PromptsMade
from deploytui.run.doors import door
from deploytui.run.prompting import part_path, prepare_prompts, write_part
from deploytui.session.folder import SessionFolder
from tests.host.mocks import mock

BASE: dict[str, Any] = {"prompt_tokens": 24, "output_tokens": 5, "requests": 4, "repeats": 2, "warmup_requests": 2}


def workload(**changes: Any) -> Workload:
    return Workload(load=changes.pop("load", Closed(concurrency=2)), **BASE | changes)


def prepare(
    root: Path, asked: Workload, inputs: Inputs | None = None, options: Sequence[str] = ()
) -> tuple[PromptsMade, Calibration | None]:
    """Make all prompts with a mock engine that counts words."""

    async def made(port: int) -> tuple[PromptsMade, Calibration | None]:
        async with door(f"http://127.0.0.1:{port}", {}) as calls:
            return await prepare_prompts(calls, SessionFolder(root), asked, "m", "a", 20.0, inputs or Inputs())

    with mock(*options) as engine:
        return anyio.run(made, engine.port)


def lines(root: Path, part: str) -> list[dict[str, Any]]:
    """The lines of a prompts file."""
    return [json.loads(line) for line in part_path(SessionFolder(root), part).read_bytes().splitlines()]


def test_a_plain_workload_has_its_prompts_and_nothing_else_in_its_lines(tmp_path: Path) -> None:
    made, found = prepare(tmp_path, workload())
    assert (made.exact, made.target_tokens, made.tokenizer_of) == (True, 24, "a")
    assert [(file.path, file.count) for file in made.files] == [
        ("prompts/warmup.jsonl", 2),
        ("prompts/r0.jsonl", 4),
        ("prompts/r1.jsonl", 4),
    ]
    assert [set(line) for line in lines(tmp_path, "r0")] == [{"id", "prompt"}] * 4
    assert found is not None


def test_every_part_of_a_sweep_in_an_open_loop_has_its_file_with_times(tmp_path: Path) -> None:
    asked = workload(load=Constant(rate=(2.0, 4.0)), decide_at=2.0, output_tokens=Uniform(min=2, max=9))
    made, _ = prepare(tmp_path, asked)
    assert [Path(file.path).stem for file in made.files] == [part.name for part in parts(asked)]
    assert [line["at_s"] for line in lines(tmp_path, "p1.r1")] == [0, 0.25, 0.5, 0.75]
    assert all(2 <= line["max_tokens"] <= 9 for line in lines(tmp_path, "p0.r0"))
    assert all("at_s" not in line for line in lines(tmp_path, "warmup"))


def test_conversations_are_exact_to_their_last_turn(tmp_path: Path) -> None:
    made, found = prepare(tmp_path, workload(turns=3, requests=6))
    assert found is not None
    assert made.exact
    assert made.target_tokens is None
    assert [line["conversation"] for line in lines(tmp_path, "r0")] == [0, 0, 0, 1, 1, 1]
    assert [len(line["messages"]) for line in lines(tmp_path, "r0")] == [1, 3, 5] * 2


def test_prompts_of_many_lengths_that_share_a_prefix_are_exact(tmp_path: Path) -> None:
    asked = workload(prompt_tokens=Uniform(min=20, max=60), shared_prefix=SharedPrefix(ratio=0.5))
    made, _ = prepare(tmp_path, asked)
    assert made.exact
    assert made.target_tokens is None


def test_a_dataset_is_sent_as_it_is_and_nothing_is_counted(tmp_path: Path) -> None:
    rows = [{"prompt": f"p{k}"} for k in range(20)]
    inputs = Inputs(dataset=parse_dataset("d", "\n".join(map(json.dumps, rows)).encode()))
    asked = workload(prompt_tokens=None, dataset="d", load=Burst())
    made, found = prepare(tmp_path, asked, inputs)
    assert (made.exact, made.target_tokens, made.tokenizer_of, found) == (False, None, None, None)
    texts = [line["prompt"] for part in parts(asked) for line in lines(tmp_path, part.name)]
    assert len(set(texts)) == 10
    assert all(line["at_s"] == 0 for line in lines(tmp_path, "r0"))


def test_an_engine_that_counts_nothing_gets_words_for_tokens(tmp_path: Path) -> None:
    made, found = prepare(tmp_path, workload(), options=("--usage", "never"))
    assert (made.exact, found) == (False, None)
    assert all(len(line["prompt"].split()) == 24 for line in lines(tmp_path, "r0"))


def test_a_part_added_later_is_made_alike_and_a_worker_can_read_it(tmp_path: Path) -> None:
    asked = workload()
    _, found = prepare(tmp_path, asked)
    folder = SessionFolder(tmp_path)
    file = write_part(folder, asked, Part(name="p5.r0", requests=3, load=Constant(rate=10.0), draw="r0"), found)
    assert file.count == 3
    prompts = part_path(folder, "p5.r0").read_bytes().splitlines()
    assert [msgspec.json.decode(prompt, type=Prompt).at_s for prompt in prompts] == [0, 0.1, 0.2]


def test_a_prompt_shorter_than_the_template_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="too short"):
        prepare(tmp_path, workload(prompt_tokens=Uniform(min=3, max=7), endpoint="chat"))
