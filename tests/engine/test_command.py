import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.check.probe import run_probe
from deploytui.engine.command import OWN, Command, placeholders
from deploytui.engine.protocol import Place, Probed
from deploytui.profile.schema import Candidate, Container, Settings

ENGINE = Command()
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300, gpu_uuids=("GPU-1", "GPU-2"))
PLAIN = Candidate(name="a", engine="command", model="/models/m", command=("server", "--port", "{port}"))


def filled(*words: str, **changes: Any) -> tuple[str, ...]:
    """The argv of a command."""
    candidate = replace(PLAIN, command=("server", "--port", "{port}", *words), **changes)
    assert ENGINE.objection(candidate) is None
    return ENGINE.launch(candidate, PLACE).argv[3:]


def test_every_word_in_braces_is_filled_in() -> None:
    words = tuple(f"{name}={{{name}}}" for name in OWN)
    assert filled(*words) == (
        *("model=/models/m", "port=8123", "host=127.0.0.1", "served_model=a"),
        *("context=300", "concurrency=4", "gpus=GPU-1,GPU-2"),
    )


def test_settings_stand_under_their_own_names_and_context_and_concurrency_follow_them() -> None:
    settings = Settings(max_model_len=2048, max_num_seqs=9, threads=2, prefix_cache=False, memory_share=0.5)
    words = filled("{context}", "{concurrency}", "{threads}", "{prefix_cache}", "{memory_share}", settings=settings)
    assert words == ("2048", "9", "2", "false", "0.5")


def test_doubled_braces_stay_and_own_arguments_follow() -> None:
    assert filled('{{"port": {port}}}', args=("--verbose",)) == ('{"port": 8123}', "--verbose")


def test_the_served_model_is_what_the_candidate_says_else_its_name() -> None:
    assert ENGINE.launch(PLAIN, PLACE).served_model == "a"
    named = ENGINE.launch(replace(PLAIN, served_model="big"), PLACE)
    assert named.served_model == "big"


def test_gpus_and_environment_are_handed_on() -> None:
    env = ENGINE.launch(replace(PLAIN, env={"X": "1"}), PLACE).env
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert env["X"] == "1"
    assert ENGINE.launch(replace(PLAIN, device="cpu"), PLACE).env["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("ready", "asked"),
    [
        ("/ready", "/ready"),
        ("http://127.0.0.1:{port}/ready", "http://127.0.0.1:8123/ready"),
        ("http://localhost:9000/ready", "http://localhost:9000/ready"),
        (None, None),
    ],
)
def test_where_it_says_that_it_is_ready(ready: str | None, asked: str | None) -> None:
    candidate = replace(PLAIN, ready_path=ready)
    assert ENGINE.objection(candidate) is None
    assert ENGINE.launch(candidate, PLACE).ready_path == asked


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"command": None}, "no command"),
        ({"command": ()}, "no command"),
        ({"command": ("s", "{port}", "{prot}")}, "{prot}"),
        ({"command": ("s", "{port}", "{model.x}")}, "can't be filled in"),
        ({"command": ("s", "{port}", "{}")}, "can't be filled in"),
        ({"command": ("s", "{port}", '{"a": 1}')}, "can't be filled in"),
        ({"command": ("s", "{port}", "{")}, "can't be filled in"),
        ({"command": ("s", "{port}", "{threads}")}, "settings.threads is not set"),
        ({"command": ("s", "--port", "8000")}, "does not hold {port}"),
        ({"command": ("s", "{port}", "{model}"), "model": None}, "names no model"),
        ({"settings": Settings(threads=2)}, "settings.threads"),
        ({"settings": Settings(max_model_len=64)}, "settings.max_model_len"),
        ({"dtype": "float16"}, "dtype"),
        ({"python": "/opt/py"}, "python"),
        ({"base_url": "http://127.0.0.1:1"}, "base_url"),
        ({"ready_path": "http://example.org/ready"}, "no address of this node"),
        ({"ready_path": "ready"}, "no path"),
    ],
)
def test_what_a_command_can_not_take_is_refused_before_launch(changes: dict[str, Any], told: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert told in failure.what
    assert failure.fix


def test_an_unknown_word_is_answered_with_those_that_are_known() -> None:
    failure = ENGINE.objection(replace(PLAIN, command=("s", "{port}", "{prot}")))
    assert failure is not None
    assert all(f"{{{name}}}" in failure.fix for name in OWN)


def test_parallelism_of_one_asks_for_nothing() -> None:
    assert ENGINE.objection(replace(PLAIN, settings=Settings(tensor_parallel=1))) is None


def test_a_program_is_looked_for_and_an_image_is_not_asked(tmp_path: Path) -> None:
    here = replace(PLAIN, command=(sys.executable, "{port}"))
    probe = ENGINE.probe(here)
    assert probe is not None
    assert ENGINE.judge(here, anyio.run(run_probe, probe)) is None
    absent = replace(PLAIN, command=(str(tmp_path / "none"), "{port}"))
    probe = ENGINE.probe(absent)
    assert probe is not None
    failure = ENGINE.judge(absent, anyio.run(run_probe, probe))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert str(tmp_path / "none") in failure.what
    assert ENGINE.probe(replace(PLAIN, container=Container(image="server:1"))) is None


def test_a_lock_can_not_be_held_and_is_not_passed_over() -> None:
    failure = ENGINE.judge(replace(PLAIN, engine_version="==1.0"), Probed(found=True))
    assert failure is not None
    assert failure.kind == "wrong_version"


@given(st.lists(st.sampled_from(["{port}", "{", "}", "{{", "}}", "{model}", "{a b}", "{0}", "x", "{port!r}", "{:>4}"])))
def test_whatever_is_not_objected_to_can_be_filled_in(parts: list[str]) -> None:
    candidate = replace(PLAIN, command=("s", "{port}", "".join(parts)))
    if ENGINE.objection(candidate) is None:
        assert len(ENGINE.launch(candidate, PLACE).argv) == 3


def test_the_words_of_a_template() -> None:
    assert placeholders("{a}-{{b}}-{c}") == ("a", "c")
