"""Where a candidate is placed, and why it is not."""

import pytest
from msgspec.structs import replace

from deploytui.artifact.facts import Attention, ModelFacts, TensorRtFacts
from deploytui.check.hardware import Hardware, Needs, hardware
from deploytui.check.node import GpuNow, GpuProcess, Node
from deploytui.engine.adapter import Adapter
from deploytui.engine.failures import UNSUPPORTED_KINDS
from deploytui.engine.protocol import Capabilities
from deploytui.profile.schema import Candidate, Container, Settings

GIB = 1 << 30
NEEDS = Needs(context_tokens=1024, concurrency=4)
MODEL = ModelFacts(
    path="/m",
    format="safetensors",
    bytes=16 * GIB,
    dtype="bfloat16",
    attention=Attention(layers=32, heads=32, kv_heads=8, head_dim=128, hidden_size=4096),
)


class Served(Adapter):
    """An engine as far as hardware goes."""

    name = title = "served"
    capabilities = Capabilities(compute_capability=(7, 0), dtype_capability={"bfloat16": (8, 0), "fp8": (8, 9)})


class OnlyGpu(Served):
    capabilities = Capabilities(devices=frozenset({"cuda"}))


class OnlyCpu(Served):
    capabilities = Capabilities(devices=frozenset({"cpu"}))


def gpu(index: int, capability: tuple[int, int] | None = (9, 0), **more: object) -> GpuNow:
    known = {"uuid": f"GPU-{'abcdefgh'[index]}", "index": index, "name": "card", "compute_capability": capability}
    return GpuNow(**{"total_bytes": 80 * GIB, "free_bytes": 79 * GIB, "used_bytes": 0, **known, **more})  # type: ignore[arg-type]


FOUR = Node(gpus=tuple(map(gpu, range(4))), host_free_bytes=64 * GIB)
NONE = Node(gpu_missing="No GPU can be read: NVML Shared Library Not Found.", host_free_bytes=64 * GIB)
BUSY = GpuProcess(pid=4711, name="python3", bytes=30 * GIB)


def placed(
    node: Node = FOUR,
    facts: ModelFacts | None = MODEL,
    engine: Adapter | None = None,
    needs: Needs = NEEDS,
    **fields: object,
) -> Hardware:
    candidate = Candidate(name="x", engine="served", **fields)  # type: ignore[arg-type]
    return hardware(engine or Served(), candidate, facts, node, needs)


def refused(found: Hardware) -> str:
    assert found.failure is not None
    assert found.failure.kind in UNSUPPORTED_KINDS
    return f"{found.failure.what} {found.failure.why} {found.failure.fix}"


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({}, "a"),
        ({"device": "cpu"}, ""),
        ({"devices": 2}, "ab"),
        ({"devices": ("GPU-c", "GPU-a")}, "ca"),
        ({"settings": Settings(tensor_parallel=2)}, "ab"),
        ({"settings": Settings(tensor_parallel=2, pipeline_parallel=2)}, "abcd"),
        ({"settings": Settings(tensor_parallel=2, data_parallel=2)}, "abcd"),
        ({"engine": OnlyCpu()}, ""),
    ],
)
def test_a_candidate_gets_what_it_asks_for(fields: dict[str, object], chosen: str) -> None:
    found = placed(**fields)  # type: ignore[arg-type]
    assert found.failure is None
    assert found.gpu_uuids == tuple(f"GPU-{letter}" for letter in chosen)


@pytest.mark.parametrize(
    "fields",
    [
        {"devices": 5},
        {"settings": Settings(tensor_parallel=8)},
        {"devices": ("GPU-z",)},
        {"devices": ("GPU-a",), "settings": Settings(tensor_parallel=2)},
        {"device": "cuda", "engine": OnlyCpu()},
    ],
)
def test_more_than_there_are_is_unsupported(fields: dict[str, object]) -> None:
    found = placed(**fields)  # type: ignore[arg-type]
    refused(found)
    assert found.gpu_uuids == ()


def test_how_many_there_are_and_why_is_said() -> None:
    hidden = replace(FOUR, gpus=FOUR.gpus[:2], hidden=6)
    said = refused(placed(hidden, devices=4))
    assert "needs 4 GPUs, and this process may use 2" in said
    assert "6 more GPUs of this node are hidden" in said


@pytest.mark.parametrize("fields", [{"device": "cuda"}, {"devices": 1}, {"engine": OnlyGpu()}])
def test_a_gpu_is_never_replaced_by_the_cpu(fields: dict[str, object]) -> None:
    assert "NVML Shared Library Not Found" in refused(placed(NONE, **fields))  # type: ignore[arg-type]


def test_an_engine_for_both_runs_on_a_cpu_where_nobody_asked_for_more() -> None:
    found = placed(NONE)
    assert (found.failure, found.gpu_uuids) == (None, ())
    assert found.fit is not None
    assert found.fit.on == "host"


def test_gpus_for_the_cpu_make_no_sense() -> None:
    found = placed(device="cpu", devices=2)
    assert found.failure is not None
    assert found.failure.kind == "invalid_config"


def test_naming_a_gpu_twice_is_told() -> None:
    found = placed(devices=("GPU-a", "GPU-A"))
    assert found.failure is not None
    assert found.failure.kind == "invalid_config"


def test_a_gpu_nobody_uses_comes_first_and_that_is_said() -> None:
    node = replace(FOUR, gpus=(gpu(0, processes=(BUSY,)), gpu(1), gpu(2, used_bytes=20 * GIB), gpu(3)))
    found = placed(node, devices=2)
    assert found.gpu_uuids == ("GPU-b", "GPU-d")
    assert any("GPU 0 was passed over" in note and "4711 (python3, 30.00 GiB)" in note for note in found.notes)


def test_a_foreign_process_on_a_chosen_gpu_is_named() -> None:
    node = replace(FOUR, gpus=(gpu(0, processes=(BUSY, GpuProcess(pid=99))),))
    (note,) = placed(node).notes
    assert "process 4711 (python3, 30.00 GiB), process 99 (of another namespace)" in note


def test_memory_in_use_by_nobody_who_can_be_seen_is_told() -> None:
    node = replace(FOUR, gpus=(gpu(0, used_bytes=40 * GIB),))
    (note,) = placed(node).notes
    assert "40.00 GiB in use, by processes that can't be seen from here" in note


def test_a_lost_gpu_is_not_chosen() -> None:
    node = replace(FOUR, gpus=(gpu(0, lost="GPU is lost"), gpu(1)))
    assert placed(node).gpu_uuids == ("GPU-b",)
    assert "GPU is lost" in refused(placed(node, devices=2))
    assert "can't reach" in refused(placed(node, devices=("GPU-a",)))


def test_a_dtype_the_card_is_too_old_for_is_refused_with_both_numbers() -> None:
    node = replace(FOUR, gpus=(gpu(0, (7, 5)),))
    found = placed(node, dtype="bf16")
    said = refused(found)
    assert found.failure is not None
    assert found.failure.kind == "unsupported_dtype"
    assert "needs compute capability 8.0 for bfloat16, and GPU 0 (card) has 7.5" in said
    assert 'dtype = "float16"' in said


def test_the_models_own_dtype_is_a_warning_since_engines_may_take_another() -> None:
    node = replace(FOUR, gpus=(gpu(0, (7, 5)),))
    found = placed(node)
    assert found.failure is None
    assert any("bfloat16" in note and "8.0" in note and "7.5" in note for note in found.notes)


@pytest.mark.parametrize(
    "fields", [{"quantization": "fp8"}, {"settings": Settings(kv_cache_dtype="fp8")}], ids=["weights", "cache"]
)
def test_a_quantisation_the_card_is_too_old_for_is_refused(fields: dict[str, object]) -> None:
    said = refused(placed(replace(FOUR, gpus=(gpu(0, (8, 6)),)), **fields))  # type: ignore[arg-type]
    assert "8.9 for fp8" in said


def test_a_card_the_engine_does_not_know_is_refused() -> None:
    assert "needs compute capability 7.0" in refused(placed(replace(FOUR, gpus=(gpu(0, (6, 1)),))))


def test_without_a_capability_nothing_is_claimed() -> None:
    assert placed(replace(FOUR, gpus=(gpu(0, None),)), dtype="bfloat16").failure is None


def test_an_engine_that_was_built_for_another_card_is_refused() -> None:
    facts = ModelFacts(path="/e", format="tensorrt", tensorrt=TensorRtFacts(compute_capability="8.0"))
    assert "built for compute capability 8.0, and GPU 0 (card) has 9.0" in refused(placed(facts=facts))


def test_an_engine_that_was_built_for_more_gpus_gets_them() -> None:
    facts = ModelFacts(path="/e", format="tensorrt", tensorrt=TensorRtFacts(tensor_parallel=2))
    assert placed(facts=facts).gpu_uuids == ("GPU-a", "GPU-b")


def test_weights_that_cannot_fit_are_unsupported_before_a_launch() -> None:
    found = placed(replace(FOUR, gpus=(gpu(0, free_bytes=8 * GIB),)))
    assert "The weights of x do not fit into its GPU" in refused(found)
    assert found.fit is not None
    assert found.fit.verdict == "cannot_fit"


def test_what_may_not_fit_is_a_note() -> None:
    found = placed(replace(FOUR, gpus=(gpu(0, free_bytes=17 * GIB),)))
    assert found.failure is None
    assert any("It may not fit" in note for note in found.notes)


def test_the_fullest_of_several_gpus_decides() -> None:
    cards = (gpu(0), gpu(1, free_bytes=GIB), gpu(2), gpu(3))
    found = placed(replace(FOUR, gpus=cards), settings=Settings(tensor_parallel=4))
    assert found.fit is not None
    assert (found.fit.free_bytes, found.fit.devices) == (GIB, 4)
    assert "do not fit into its GPUs" in refused(found)


def test_a_runtime_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = placed(container=Container(image="vllm/vllm-openai:v0.33.0", runtime="podman"))
    assert found.failure is not None
    assert found.failure.kind == "not_installed"
    assert "podman" in found.failure.what
