"""Words of a candidate's own that open a door, or let code in: refused where no key of the profile says so."""

import pytest
from msgspec.structs import replace

from deploytui.check.allowed import not_allowed
from deploytui.engine.registry import load_engine
from deploytui.profile.schema import Candidate, Prepare

PLAIN = Candidate(name="a", engine="vllm", model="m")


@pytest.mark.parametrize(
    "words",
    [("--host", "0.0.0.0"), ("--host=0.0.0.0",), ("--host", "::"), ("--host", "[::]"), ("sh -c 'serve --host ::'",)],
)
def test_no_engine_is_told_to_listen_beyond_this_node(words: tuple[str, ...]) -> None:
    for candidate in (replace(PLAIN, args=words), replace(PLAIN, command=words)):
        failure = not_allowed(load_engine("vllm"), candidate)
        assert failure is not None
        assert failure.kind == "not_allowed"
        assert "beyond this node" in failure.what


def test_an_address_in_the_environment_counts_as_well() -> None:
    failure = not_allowed(load_engine("vllm"), replace(PLAIN, env={"LLAMA_ARG_HOST": "0.0.0.0"}))
    assert failure is not None
    assert "env.LLAMA_ARG_HOST holds 0.0.0.0" in failure.what


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"args": ("--trust-remote-code",)}, "trust_remote_code"),
        ({"args": ("--trust_remote_code",)}, "trust_remote_code"),
        ({"command": ("sh", "-c", "serve --trust-remote-code")}, "trust_remote_code"),
        ({"prepare": Prepare(args=("--extra_options", "hf_remote=true"))}, "trust_remote_code"),
        ({"args": ("--load-format", "pt")}, "allow_pickle"),
        ({"args": ("--load_format=pt",)}, "allow_pickle"),
        ({"args": ("--allow-pickle",)}, "allow_pickle"),
    ],
)
def test_code_is_let_in_by_a_key_that_is_recorded_and_not_by_a_word_alone(changed: dict[str, object], key: str) -> None:
    candidate, engine = replace(PLAIN, **changed), load_engine("vllm")
    failure = not_allowed(engine, candidate)
    assert failure is not None
    assert failure.kind == "not_allowed"
    assert f"{key} = true" in failure.fix
    assert not_allowed(engine, replace(candidate, **{key: True})) is None


@pytest.mark.parametrize("words", [("--load-format", "pt_like"), ("--seed", "10.0.0.0"), ("a::b",), ("--host", "::1")])
def test_other_words_are_the_candidates_own(words: tuple[str, ...]) -> None:
    assert not_allowed(load_engine("vllm"), replace(PLAIN, args=words)) is None
