from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from deploytui.artifact.facts import Attention, ModelFacts, OnnxFacts, TensorRtFacts, TokenizerFacts
from deploytui.artifact.model import read_model
from deploytui.check.support import load_failure, load_notes, source_failure
from deploytui.check.told import other_gpu, with_operators
from deploytui.engine.adapter import Adapter
from deploytui.engine.protocol import Capabilities, PreparationPlan, Probe, Probed
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Failure
from tests.artifact.build import checkpoint, sharded


class Serving(Adapter):
    name = "serving"
    title = "Serving"
    formats = frozenset({"safetensors", "pytorch", "gguf", "tensorrt", "onnx"})
    capabilities = Capabilities(
        quantizations=frozenset({"awq", "gptq", "fp8", "compressed-tensors"}),
        dtypes=frozenset({"auto", "bfloat16", "half"}),
        kv_cache_dtypes=frozenset({"auto", "fp8"}),
    )


class GgufOnly(Adapter):
    name = "gguf-only"
    title = "GGUF only"
    formats = frozenset({"gguf"})


class Converting(Adapter):
    name = "converting"
    title = "Converting"
    formats = frozenset({"onnx"})

    def preparation(self, candidate: Candidate, source_format: str | None) -> PreparationPlan | None:
        if source_format not in ("safetensors", "pytorch"):
            return None
        return PreparationPlan(name="onnx int4", argv=("convert",), format="onnx")


PLAIN = ModelFacts(path="/m", format="safetensors", architecture="LlamaForCausalLM", dtype="bfloat16")


def failure(facts: ModelFacts = PLAIN, engine: Adapter | None = None, **candidate: Any) -> Failure | None:
    probed = candidate.pop("probed", None)
    asked = Candidate(name="a", engine="e", model="org/m", **candidate)
    return load_failure(engine or Serving(), asked, facts, probed)


def refused(facts: ModelFacts = PLAIN, engine: Adapter | None = None, **candidate: Any) -> tuple[str, str, str]:
    found = failure(facts, engine, **candidate)
    assert found is not None
    return found.kind, found.what, found.fix


def test_a_model_as_it_is_loads() -> None:
    assert failure() is None


def test_a_faulty_model_loads_nowhere(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    (folder / "model-00002-of-00002.safetensors").unlink()
    for engine in (Serving(), GgufOnly(), Converting()):
        assert refused(read_model(folder), engine)[0] == "missing_file"


def test_a_format_that_the_engine_can_not_load_is_told_with_those_it_can() -> None:
    kind, what, fix = refused(PLAIN, GgufOnly())
    assert (kind, "it is safetensors" in what, "gguf" in fix) == ("unsupported_format", True, True)


def test_a_format_that_is_prepared_is_the_engines_own() -> None:
    assert failure(PLAIN, Converting()) is None
    assert refused(replace(PLAIN, format="gguf"), Converting())[0] == "unsupported_format"
    assert failure(PLAIN, Converting(), format="onnx") is None
    assert failure(PLAIN, Converting(), format="safetensors") is None


def test_another_format_than_the_profile_says_is_told() -> None:
    kind, what, _ = refused(PLAIN, format="gguf")
    assert (kind, "'gguf'" in what, "safetensors" in what) == ("invalid_config", True, True)


@pytest.mark.parametrize(
    ("found", "asked", "words"),
    [
        ("fp8", "awq", ("'awq'", "fp8")),
        (None, "awq", ("'awq'", "not quantised")),
        ("awq-4bit", "none", ("'none'", "awq-4bit")),
        ("gptq-4bit", "bitsandbytes", ("'bitsandbytes'", "gptq-4bit")),
    ],
)
def test_a_quantisation_that_the_checkpoint_does_not_have_is_refused_with_both_values(
    found: str | None, asked: str, words: tuple[str, str]
) -> None:
    kind, what, _ = refused(replace(PLAIN, quantization=found), quantization=asked)
    assert kind == "invalid_config"
    assert all(word in what for word in words)


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        *(("awq-4bit", "awq"), ("awq-4bit", "awq_marlin"), (None, "fp8"), (None, "bitsandbytes"), (None, "none")),
        *(("compressed-tensors-fp8", "compressed-tensors"), ("fp8", None), (None, "bf16")),
    ],
)
def test_a_quantisation_that_fits_loads(found: str | None, asked: str | None) -> None:
    assert failure(replace(PLAIN, quantization=found), quantization=asked) is None


def test_a_gguf_file_has_no_other_method() -> None:
    facts = replace(PLAIN, format="gguf", quantization="Q4_1", architecture="llama")
    assert failure(facts, quantization="Q4_K_M") is None
    assert failure(facts, quantization="gguf") is None
    assert "Q4_1" in refused(facts, quantization="fp8")[1]


def test_a_method_that_the_engine_has_no_kernels_for_is_unsupported() -> None:
    kind, what, fix = refused(replace(PLAIN, quantization="aqlm-2bit"))
    assert (kind, "aqlm-2bit" in what, "awq" in fix) == ("unsupported_quant", True, True)


@pytest.mark.parametrize(("dtype", "fits"), [("bfloat16", True), ("bf16", True), ("float16", True), ("float64", False)])
def test_a_dtype_is_known_by_any_of_its_names(dtype: str, fits: bool) -> None:
    assert (failure(dtype=dtype) is None) == fits
    if not fits:
        assert refused(dtype=dtype)[0] == "unsupported_dtype"


def test_a_cache_dtype_that_the_engine_does_not_have_is_unsupported() -> None:
    assert failure(settings=Settings(kv_cache_dtype="fp8")) is None
    assert refused(settings=Settings(kv_cache_dtype="q4_0"))[0] == "unsupported_setting"


def test_pickles_are_loaded_only_where_the_profile_allows_it() -> None:
    pickled = replace(PLAIN, format="pytorch", pickled=True)
    kind, _, fix = refused(pickled)
    assert (kind, "allow_pickle = true" in fix) == ("not_allowed", True)
    assert refused(pickled, Converting())[0] == "not_allowed"
    assert failure(pickled, allow_pickle=True) is None
    assert refused(pickled, GgufOnly())[0] == "unsupported_format"


def test_code_of_the_model_runs_only_where_the_profile_allows_it(tmp_path: Path) -> None:
    facts = read_model(checkpoint(tmp_path, auto_map={"AutoConfig": "c.C"}))
    kind, _, fix = refused(facts)
    assert (kind, "trust_remote_code = true" in fix) == ("not_allowed", True)
    assert refused(facts, Converting())[0] == "not_allowed"
    assert failure(facts, trust_remote_code=True) is None


def test_nothing_is_made_of_what_the_profile_does_not_allow_to_be_loaded() -> None:
    asked = Candidate(name="a", engine="e", model="m")
    for facts, allowed in (
        (replace(PLAIN, format="pytorch", pickled=True), replace(asked, allow_pickle=True)),
        (replace(PLAIN, custom_code=True), replace(asked, trust_remote_code=True)),
    ):
        found = source_failure(asked, facts)
        assert found is not None
        assert found.kind == "not_allowed"
        assert source_failure(allowed, facts) is None
    assert source_failure(asked, PLAIN) is None


def test_the_runtime_is_asked_for_its_operators_only_about_graphs() -> None:
    asked: list[Probe] = []

    async def ask(probe: Probe) -> Probed:
        asked.append(probe)
        return Probed(found=True, detail={"onnx": {"operators": {}}})

    candidate = Candidate(name="a", engine="e", python="/opt/python")
    there = Probed(found=True, version="1", detail={"module": "m"})
    assert anyio.run(with_operators, ask, candidate, PLAIN, there) == there
    assert asked == []
    told = anyio.run(with_operators, ask, candidate, replace(PLAIN, onnx=OnnxFacts()), there)
    assert told is not None
    assert told.detail == {"module": "m", "onnx": {"operators": {}}}
    assert asked[0].argv[0] == "/opt/python"
    assert asked[0].argv[1].endswith("probe_onnx.py")


def test_code_of_the_model_is_no_matter_where_the_engine_has_its_own() -> None:
    facts = replace(PLAIN, custom_code=True)
    for detail in ({"architectures": ["LlamaForCausalLM"]}, {"model_type": {"name": "llama", "known": True}}):
        assert failure(facts, probed=Probed(found=True, detail=detail)) is None


def test_an_architecture_that_the_installed_engine_does_not_know_is_unsupported() -> None:
    probed = Probed(found=True, version="0.9", detail={"architectures": ["OtherForCausalLM"]})
    kind, what, _ = refused(probed=probed)
    assert (kind, "Serving 0.9" in what, "LlamaForCausalLM" in what) == ("unsupported_arch", True, True)
    assert failure(replace(PLAIN, format="gguf", architecture="llama"), probed=probed) is None


def test_one_file_of_a_checkpoint_is_not_the_model() -> None:
    assert "engines load its folder" in refused(replace(PLAIN, whole=False))[1]


BUILT = TensorRtFacts(version="1.2.1", tensor_parallel=2, pipeline_parallel=1, max_batch_size=8, max_seq_len=256)
ENGINE = ModelFacts(path="/e", format="tensorrt", tensorrt=BUILT)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(tensor_parallel=4), "tensor_parallel is 4"),
        (Settings(pipeline_parallel=2), "pipeline_parallel is 2"),
        (Settings(max_model_len=512), "at most 256"),
        (Settings(max_num_seqs=9), "at most 8"),
    ],
)
def test_an_engine_runs_only_as_it_was_built(settings: Settings, words: str) -> None:
    assert words in refused(ENGINE, settings=settings)[1]
    assert failure(ENGINE, settings=Settings(tensor_parallel=2, max_model_len=256)) is None


def test_an_engine_of_another_version_or_gpu_is_told_with_both() -> None:
    _, what, _ = refused(ENGINE, probed=Probed(found=True, version="1.3.0"))
    assert "1.2.1" in what
    assert "1.3.0" in what
    assert failure(ENGINE, probed=Probed(found=True, version="1.2.1")) is None
    facts = replace(ENGINE, tensorrt=replace(BUILT, compute_capability="8.0", built_for="A100-SXM"))
    found = other_gpu(Candidate(name="a", engine="e", model="m"), facts, (8, 9))
    assert found is not None
    assert "8.0" in found.what
    assert "8.9" in found.what
    assert other_gpu(Candidate(name="a", engine="e"), facts, (8, 0)) is None
    assert other_gpu(Candidate(name="a", engine="e"), facts, None) is None
    assert other_gpu(Candidate(name="a", engine="e"), ENGINE, (8, 9)) is None


def test_operators_that_the_runtime_lacks_are_named() -> None:
    onnx = OnnxFacts(opset={"ai.onnx": 22}, operators={"com.microsoft": tuple(f"Op{n}" for n in range(12))}, genai=True)
    runtime = {"onnx": {"opset": {"ai.onnx": 28}, "operators": {"com.microsoft": {"Op0": 1}}}}
    facts = ModelFacts(path="/o", format="onnx", onnx=onnx)
    kind, what, _ = refused(facts, probed=Probed(found=True, detail=runtime))
    assert (kind, "com.microsoft:Op1" in what, "and 3 more" in what) == ("unsupported_format", True, True)
    assert failure(facts, probed=Probed(found=True)) is None
    assert "genai_config.json" in refused(replace(facts, onnx=replace(onnx, genai=False)))[1]


def test_notes_tell_what_was_allowed_and_what_is_missing() -> None:
    candidate = Candidate(name="a", engine="e", quantization="Q4_K_M", allow_pickle=True, trust_remote_code=True)
    facts = replace(
        PLAIN,
        quantization="Q4_1",
        pickled=True,
        custom_code=True,
        tokenizer=TokenizerFacts(kind="BPE"),
        attention=Attention(sliding_window=64, sliding_layers=3),
        notes=("and more",),
    )
    notes = load_notes(candidate, facts)
    for words in ("Q4_K_M, the file says Q4_1", "allow_pickle", "trust_remote_code", "no chat template", "64 tokens"):
        assert any(words in note for note in notes), words
    assert notes[-1] == "and more"
    assert load_notes(Candidate(name="a", engine="e"), PLAIN) == ()
