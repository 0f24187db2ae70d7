"""Spelling help."""

import pytest

from deploytui.profile.nearest import did_you_mean, nearest

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llamacpp", "transformers", "openai")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("vLLM", "vllm"),
        ("llama.cpp", "llamacpp"),
        ("tensorrt_llm", "tensorrt-llm"),
        ("sg-lang", "sglang"),
        ("zzz", None),
    ],
)
def test_the_word_someone_meant_is_found(said: str, meant: str | None) -> None:
    assert nearest(said, ENGINES) == meant


def test_without_a_near_word_all_are_listed() -> None:
    assert did_you_mean("zzz", ("a", "b")) == "Known here: a, b."
    assert did_you_mean("zzz", ()) == ""
