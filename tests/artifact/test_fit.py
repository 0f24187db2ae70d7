"""Whether a model will fit: against sizes that are published, and by the laws such an estimate must keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.artifact.facts import Attention, ModelFacts
from deploytui.artifact.fit import Room, estimate
from deploytui.artifact.kv_cache import kv_shape, value_bytes
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Fit

GIB = 1 << 30
KIB = 1 << 10

LLAMA_3_8B = ModelFacts(
    path="/models/llama-3-8b",
    format="safetensors",
    architecture="LlamaForCausalLM",
    parameters=8_030_261_248,
    dtype="bfloat16",
    vocabulary=128_256,
    attention=Attention(layers=32, heads=32, kv_heads=8, head_dim=128, hidden_size=4096),
)
"""16.06 GB in bfloat16, 128 KiB of KV cache a token."""
DEEPSEEK_V2 = Attention(layers=60, heads=128, kv_heads=128, hidden_size=5120, kv_lora_rank=512, rope_head_dim=64)
GEMMA_3_27B = Attention(
    layers=62, heads=32, kv_heads=16, head_dim=128, hidden_size=5376, sliding_window=1024, sliding_layers=52
)
MISTRAL_7B = Attention(layers=32, heads=32, kv_heads=8, head_dim=128, hidden_size=4096, sliding_window=4096)


def _candidate(**more: object) -> Candidate:
    return Candidate(name="x", engine="vllm", **more)  # type: ignore[arg-type]


def _settings(**settings: object) -> Candidate:
    return _candidate(settings=Settings(**settings))  # type: ignore[arg-type]


def _gpu(gib: float, devices: int = 1, total: float | None = None) -> Room:
    return Room(on="gpu", free_bytes=int(gib * GIB), total_bytes=int((total or gib) * GIB), devices=devices)


def _fit(
    candidate: Candidate,
    room: Room,
    facts: ModelFacts = LLAMA_3_8B,
    context_tokens: int = 2048,
    concurrency: int = 16,
) -> Fit:
    return estimate(facts, candidate, room, context_tokens=context_tokens, concurrency=concurrency)


def test_the_weights_and_cache_of_llama_3_8b_are_the_published_ones() -> None:
    fit = _fit(_candidate(), _gpu(79))
    assert fit.weights_bytes == pytest.approx(16.06e9, rel=1e-3)
    assert fit.kv_cache_tokens == 2048 * 16
    assert fit.kv_cache_bytes == 128 * KIB * 2048 * 16
    assert (fit.verdict, fit.on, fit.devices) == ("fits", "gpu", 1)


@pytest.mark.parametrize(
    ("attention", "per_token"),
    [
        (LLAMA_3_8B.attention, 128 * KIB),
        (DEEPSEEK_V2, 576 * 2 * 60),
        (replace(LLAMA_3_8B.attention, head_dim=None), 128 * KIB),
        (replace(LLAMA_3_8B.attention, kv_heads=None), 512 * KIB),
        (MISTRAL_7B, 128 * KIB),
    ],
)
def test_what_a_token_takes_is_known_from_the_attention(attention: Attention, per_token: int) -> None:
    shape = kv_shape(attention, 2.0)
    assert shape is not None
    assert shape.bytes(1) == per_token


def test_layers_that_slide_keep_only_their_window() -> None:
    shape = kv_shape(GEMMA_3_27B, 2.0)
    assert shape is not None
    of_a_layer = 2 * 16 * 128 * 2
    assert shape.bytes(1024) == 62 * of_a_layer * 1024
    assert shape.bytes(32_768) == 10 * of_a_layer * 32_768 + 52 * of_a_layer * 1024


def test_without_a_word_which_layers_slide_all_are_taken_as_whole() -> None:
    shape = kv_shape(MISTRAL_7B, 2.0)
    assert shape is not None
    assert shape.bytes(32_768) == 32_768 * 128 * KIB


@pytest.mark.parametrize(
    ("name", "dtype", "size"),
    [
        (None, "bfloat16", 2.0),
        (None, "float32", 4.0),
        ("auto", None, 2.0),
        ("fp8_e4m3", "bfloat16", 1.0),
        ("q8_0", None, 34 / 32),
        ("something-new", None, 2.0),
    ],
)
def test_the_cache_has_a_dtype_of_its_own_or_the_models(name: str | None, dtype: str | None, size: float) -> None:
    assert value_bytes(name, dtype) == size


def test_more_devices_than_heads_repeat_them() -> None:
    shape = kv_shape(LLAMA_3_8B.attention, 2.0, tensor=16)
    assert shape is not None
    assert shape.bytes(1) == 2 * 1 * 128 * 2 * 32


def test_a_compressed_latent_is_repeated_on_every_device() -> None:
    assert kv_shape(DEEPSEEK_V2, 2.0, tensor=8) == kv_shape(DEEPSEEK_V2, 2.0)


def test_weights_that_exceed_the_device_certainly_cannot_fit() -> None:
    fit = _fit(_candidate(), _gpu(12))
    assert fit.verdict == "cannot_fit"
    assert "14.96 GiB of weights and 12.00 GiB" in fit.why


def test_a_cache_that_exceeds_the_rest_may_not_fit() -> None:
    fit = _fit(_candidate(), _gpu(17))
    assert fit.verdict == "may_not_fit"
    assert fit.needed_bytes is not None
    assert fit.free_bytes is not None
    assert fit.needed_bytes > fit.free_bytes


def test_two_devices_hold_what_one_cannot() -> None:
    assert _fit(_settings(tensor_parallel=2), _gpu(12, devices=2)).verdict == "fits"


def test_a_copy_on_every_device_saves_no_weights() -> None:
    fit = _fit(_settings(data_parallel=2), _gpu(12, devices=2))
    assert fit.verdict == "cannot_fit"
    assert fit.kv_cache_tokens == 2048 * 8


def test_a_share_of_the_memory_is_all_there_is() -> None:
    assert _fit(_settings(memory_share=0.9), _gpu(79, total=80)).verdict == "fits"
    assert _fit(_settings(memory_share=0.15), _gpu(79, total=80)).verdict == "cannot_fit"


def test_a_share_above_what_is_free_is_said_with_both_numbers() -> None:
    fit = _fit(_settings(memory_share=0.9), _gpu(40, total=80))
    assert fit.verdict == "may_not_fit"
    assert "memory_share = 0.9 asks for 72.0 GiB of 80.0, and 40.0 GiB are free" in fit.why


def test_a_context_that_is_asked_for_has_to_fit_once() -> None:
    fit = _fit(_settings(max_model_len=131_072), _gpu(79), context_tokens=100, concurrency=1)
    assert fit.kv_cache_bytes == 131_072 * 128 * KIB


def test_fewer_sequences_than_requests_need_a_smaller_cache() -> None:
    assert _fit(_settings(max_num_seqs=4), _gpu(79)).kv_cache_tokens == 2048 * 4


def test_llama_cpp_gives_every_slot_its_context() -> None:
    facts = replace(LLAMA_3_8B, format="gguf", bytes=5 * GIB, quantization="Q4_K_M", dtype=None)
    fit = _fit(_settings(max_model_len=8192), _gpu(79), facts, concurrency=4)
    assert fit.kv_cache_tokens == 8192 * 4


def test_layers_left_on_the_host_take_no_gpu_memory() -> None:
    facts = replace(LLAMA_3_8B, format="gguf", bytes=33 * GIB, quantization="F32", dtype=None)
    whole, part = _fit(_candidate(), _gpu(24), facts), _fit(_settings(gpu_layers=11), _gpu(24), facts)
    assert whole.verdict == "cannot_fit"
    assert part.weights_bytes == 11 * GIB
    assert part.verdict == "fits"


def test_another_dtype_changes_what_the_weights_take() -> None:
    as_float32 = _fit(_candidate(dtype="float32"), _gpu(79)).weights_bytes
    assert as_float32 == pytest.approx(2 * 16.06e9, rel=1e-3)


def test_weights_that_are_quantised_while_loading_are_no_certain_refusal() -> None:
    assert _fit(_candidate(quantization="fp8"), _gpu(12)).verdict == "may_not_fit"


def test_a_file_that_is_mapped_may_exceed_the_host() -> None:
    facts = replace(LLAMA_3_8B, format="gguf", bytes=20 * GIB, quantization="Q8_0", dtype=None)
    room = Room(on="host", free_bytes=16 * GIB)
    assert _fit(_candidate(), room, facts).verdict == "may_not_fit"
    assert _fit(_candidate(), Room(on="host", free_bytes=8 * GIB)).verdict == "cannot_fit"
    assert _fit(_candidate(), Room(on="host", free_bytes=8 * GIB, reserve_bytes=16 * GIB)).verdict == "may_not_fit"


@pytest.mark.parametrize(
    ("facts", "room", "word"),
    [
        (replace(LLAMA_3_8B, parameters=None), _gpu(79), "how large the weights are"),
        (replace(LLAMA_3_8B, attention=Attention()), _gpu(79), "shape of the KV cache of LlamaForCausalLM"),
        (LLAMA_3_8B, Room(on="gpu", free_bytes=None), "free memory of the GPU"),
        (LLAMA_3_8B, Room(on="host", free_bytes=None), "free memory of this host"),
    ],
)
def test_what_is_not_known_is_said_and_nothing_is_claimed(facts: ModelFacts, room: Room, word: str) -> None:
    fit = _fit(_candidate(), room, facts)
    assert fit.verdict == "unknown"
    assert word in fit.why
    assert fit.needed_bytes is None or fit.free_bytes is None


def _needed(candidate: Candidate, context_tokens: int, concurrency: int, devices: int = 1) -> int:
    fit = _fit(candidate, _gpu(1000, devices), context_tokens=context_tokens, concurrency=concurrency)
    assert fit.needed_bytes is not None
    return fit.needed_bytes


@given(st.integers(1, 100_000), st.integers(0, 100_000), st.integers(1, 512), st.integers(0, 512))
def test_more_to_hold_never_needs_less(context: int, longer: int, users: int, more: int) -> None:
    least = _needed(_candidate(), context, users)
    assert _needed(_candidate(), context + longer, users) >= least
    assert _needed(_candidate(), context, users + more) >= least


@given(st.integers(1, 50_000), st.integers(1, 256), st.sampled_from([1, 2, 4]))
def test_twice_the_devices_hold_half_of_weights_and_cache(context: int, users: int, tensor: int) -> None:
    one, two = (
        _fit(_settings(tensor_parallel=count), _gpu(1000, count), context_tokens=context, concurrency=users)
        for count in (tensor, 2 * tensor)
    )
    assert one.weights_bytes == pytest.approx(2 * (two.weights_bytes or 0), abs=2)
    assert one.kv_cache_bytes == pytest.approx(2 * (two.kv_cache_bytes or 0), abs=2)


@given(st.floats(0.01, 200), st.integers(1, 30_000), st.integers(1, 64))
def test_the_verdict_is_what_the_numbers_say(gib: float, context: int, users: int) -> None:
    fit = _fit(_candidate(), _gpu(gib), context_tokens=context, concurrency=users)
    assert fit.weights_bytes is not None
    assert fit.free_bytes is not None
    assert fit.needed_bytes is not None
    assert (fit.verdict == "cannot_fit") == (fit.weights_bytes > fit.free_bytes)
    assert (fit.verdict == "fits") == (fit.needed_bytes <= fit.free_bytes)
