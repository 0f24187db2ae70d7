"""What an engine's own registry says of a model before launch."""

from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.artifact.facts import ModelFacts
from deploytui.check.support import load_failure
from deploytui.check.told import told_notes
from deploytui.engine.adapter import Adapter
from deploytui.engine.protocol import Probed
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure


class Serving(Adapter):
    name = "serving"
    title = "Serving"
    formats = frozenset({"safetensors", "gguf"})


PLAIN = ModelFacts(path="/m", format="safetensors", architecture="LlamaForCausalLM")
REGISTRY = {
    "architectures": ["OtherForCausalLM"],
    "model_types": ["other"],
    "fallback": {"version": "5.0", "architectures": ["LlamaForCausalLM"], "model_types": ["llama"]},
    "plugins": [],
}
ZZAMA = replace(PLAIN, architecture="ZzamaForCausalLM", model_type="zzama")


def failure(facts: ModelFacts, *args: str, **detail: Any) -> Failure | None:
    probed = Probed(found=True, version="0.32", detail={**REGISTRY, **detail})
    return load_failure(Serving(), Candidate(name="a", engine="e", model="org/m", args=args), facts, probed)


def noted(facts: ModelFacts, *args: str, **detail: Any) -> str:
    probed = Probed(found=True, version="0.32", detail={**REGISTRY, **detail})
    candidate = Candidate(name="a", engine="e", model="org/m", args=args)
    return " ".join(told_notes(Serving(), candidate, facts, probed))


def test_a_class_that_neither_the_engine_nor_its_transformers_has_is_refused_before_launch() -> None:
    found = failure(ZZAMA)
    assert found is not None
    assert (found.kind, found.what) == (
        "unsupported_arch",
        "Serving 0.32 does not know the architecture ZzamaForCausalLM.",
    )
    assert "Transformers 5.0" in found.why


@pytest.mark.parametrize(
    ("facts", "detail", "words"),
    [
        (PLAIN, {}, "falls back to Transformers"),
        (replace(ZZAMA, model_type="llama"), {}, "will probably refuse it"),
        (ZZAMA, {"plugins": ["more"]}, "plug-ins may: more"),
        (replace(PLAIN, architecture="OtherForCausalLM"), {}, ""),
        (replace(PLAIN, format="gguf", architecture="llama"), {}, ""),
    ],
)
def test_a_class_that_may_yet_run_is_noted_and_not_refused(
    facts: ModelFacts, detail: dict[str, Any], words: str
) -> None:
    assert failure(facts, **detail) is None
    said = noted(facts, **detail)
    assert words in said if words else said == ""


def test_a_profile_that_names_the_class_itself_is_not_second_guessed() -> None:
    assert failure(ZZAMA, "--hf-overrides", "{}") is None
    assert noted(ZZAMA, "--model-impl=transformers") == ""


@pytest.mark.parametrize(("model_type", "refusal"), [("other", None), ("llama", None), ("new", "not_allowed")])
def test_a_known_class_needs_no_code_of_the_model_unless_its_configuration_does(
    model_type: str, refusal: str | None
) -> None:
    facts = replace(PLAIN, architecture="OtherForCausalLM", model_type=model_type, custom_code=True)
    found = failure(facts)
    assert (found.kind if found else None) == refusal


def test_a_class_that_only_the_fallback_has_still_needs_leave_for_the_models_code() -> None:
    found = failure(replace(PLAIN, custom_code=True))
    assert found is not None
    assert found.kind == "not_allowed"
    assert "code of its own for LlamaForCausalLM" in noted(replace(PLAIN, custom_code=True))
