"""A profile written is the profile read."""

import tomllib

import msgspec
import pytest
from hypothesis import given, settings

from deploytui.profile.load_schema import Closed
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Candidate, EngineGate, Gates, Limits, Profile, Settings, Workload
from deploytui.profile.write import profile_toml
from tests.profile.strategies import profiles

SMALL = Profile(
    name="qwen-chat",
    baseline="vllm-bf16",
    workload=Workload(prompt_tokens=1024, load=Closed(concurrency=8)),
    gates=Gates(max_ttft_ms=Limits(p95=500.0)),
    candidates=(
        Candidate(
            name="vllm-bf16", engine="vllm", model="Qwen/Qwen2.5-7B-Instruct", settings=Settings(max_model_len=8192)
        ),
        Candidate(name="prod", engine="openai", base_url="http://127.0.0.1:8000", declared={"hardware": "1x H100"}),
    ),
)


@settings(max_examples=60, deadline=None)
@given(profiles())
def test_a_written_profile_reads_back_the_same(profile: Profile) -> None:
    assert parse_profile(profile_toml(profile)) == profile


def test_a_written_profile_looks_as_a_person_would_write_it() -> None:
    assert profile_toml(SMALL) == (
        "schema = 1\n"
        'name = "qwen-chat"\n'
        'baseline = "vllm-bf16"\n'
        "\n"
        "[workload]\n"
        "prompt_tokens = 1024\n"
        'load = { kind = "closed", concurrency = 8 }\n'
        "\n"
        "[gates]\n"
        "max_ttft_ms = { p95 = 500.0 }\n"
        "\n"
        "[[candidates]]\n"
        'name = "vllm-bf16"\n'
        'engine = "vllm"\n'
        'model = "Qwen/Qwen2.5-7B-Instruct"\n'
        "settings = { max_model_len = 8192 }\n"
        "\n"
        "[[candidates]]\n"
        'name = "prod"\n'
        'engine = "openai"\n'
        'base_url = "http://127.0.0.1:8000"\n'
        'declared = { hardware = "1x H100" }\n'
    )


def test_an_empty_engine_gate_is_not_the_same_as_none() -> None:
    gated = msgspec.structs.replace(SMALL, engine_gate=EngineGate())
    assert parse_profile(profile_toml(gated)).engine_gate == EngineGate()
    assert parse_profile(profile_toml(SMALL)).engine_gate is None


def test_results_stand_behind_the_candidates_with_missing_numbers_left_out() -> None:
    result = {"candidate": "prod", "metrics": {"ttft_ms": {"p50": 12.5, "p99": None}}, "points": [[0, 1], [1, 2]]}
    text = profile_toml(
        msgspec.structs.replace(SMALL, results=(result, {"metrics": {"n": 1}}), decision={"decision": "tune"})
    )
    assert tomllib.loads(text)["results"][0]["metrics"] == {"ttft_ms": {"p50": 12.5}}
    assert tomllib.loads(text)["results"][1] == {"metrics": {"n": 1}}
    assert text.count("[[results]]") == 2
    assert text.index("[[candidates]]") < text.index("[decision]") < text.index("[[results]]")


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": [1, float("inf")]}, {"x": [1, None]}])
def test_what_toml_or_a_record_cannot_hold_is_refused_with_its_place(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"results\[0\]\.x"):
        profile_toml(msgspec.structs.replace(SMALL, results=(bad,)))
