from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.config import config_facts
from deploytui.artifact.quantization import method_of, quantization_of
from tests.artifact.build import LLAMA

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "architectures",
    "model_type",
    "dtype",
    "torch_dtype",
    "quantization_config",
    "text_config",
    "rope_scaling",
    "rope_parameters",
    "layer_types",
    "max_position_embeddings",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_size",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "vocab_size",
    "auto_map",
    "tie_word_embeddings",
    "multi_query",
    "hybrid_override_pattern",
    "attn_layer_indices",
    "full_attention_interval",
    "compression_config",
)


def attention(**config: Any) -> tuple[int | None, ...]:
    told = config_facts({**LLAMA, **config}).attention
    return told.layers, told.kv_heads, told.head_dim


@pytest.mark.parametrize(
    ("rope", "context"),
    [
        (None, 128),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 16}, 128),
        ({"type": "linear", "factor": 4}, 512),
        ({"type": "dynamic", "factor": 2.0}, 256),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}, 512),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, 128),
        ({"type": "longrope", "factor": 4.0}, 128),
        ({"type": "linear", "factor": "four"}, 128),
        ({"type": "linear", "factor": float("inf")}, 128),
        ({"rope_theta": 10000.0}, 128),
        ("no", 128),
    ],
)
def test_the_context_counts_what_the_rope_is_stretched_to(rope: Any, context: int) -> None:
    assert config_facts({**LLAMA, "rope_scaling": rope}).context_length == context
    assert config_facts({**LLAMA, "rope_parameters": rope}).context_length == context


def test_heads_are_found_under_the_names_that_models_use() -> None:
    assert attention() == (2, 2, 2)
    assert attention(num_key_value_heads=None) == (2, 4, 2)
    assert attention(num_key_value_heads=None, multi_query=True) == (2, 1, 2)
    assert attention(head_dim=256) == (2, 2, 256)
    assert attention(hidden_size=None) == (2, 2, None)


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"layer_types": ["full_attention", "linear_attention", "mamba", "sliding_attention"]}, 2),
        ({"hybrid_override_pattern": "M-M*-M*"}, 2),
        ({"attn_layer_indices": [3, 9, 27]}, 3),
        ({"num_hidden_layers": 48, "full_attention_interval": 4}, 12),
        ({"num_hidden_layers": 32, "attn_layer_period": 8}, 4),
    ],
)
def test_only_layers_with_keys_and_values_count(config: dict[str, Any], layers: int) -> None:
    assert attention(**config)[0] == layers


@pytest.mark.parametrize(
    ("config", "window", "sliding"),
    [
        ({"sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"]}, 64, 1),
        ({"sliding_window": 64, "model_type": "mistral"}, 64, 2),
        ({"sliding_window": 64, "model_type": "gemma3_text", "num_hidden_layers": 26}, 64, 22),
        ({"sliding_window": 64, "model_type": "cohere2", "num_hidden_layers": 8, "sliding_window_pattern": 4}, 64, 6),
        ({"sliding_window": 64, "use_sliding_window": False}, None, None),
        ({"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 1}, 64, 1),
        ({"sliding_window": 64, "model_type": "unheard_of"}, 64, None),
        ({"sliding_window": None}, None, None),
    ],
)
def test_sliding_layers_are_counted(config: dict[str, Any], window: int | None, sliding: int | None) -> None:
    told = config_facts({**LLAMA, **config}).attention
    assert (told.sliding_window, told.sliding_layers) == (window, sliding)


def test_latent_attention_and_experts_are_read() -> None:
    facts = config_facts(
        {**LLAMA, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "n_routed_experts": 256, "num_experts_per_tok": 8}
    )
    assert (facts.attention.kv_lora_rank, facts.attention.rope_head_dim) == (512, 64)
    assert (facts.experts, facts.active_experts) == (256, 8)


def test_the_language_part_of_a_larger_model_is_read() -> None:
    text = {"hidden_size": 16, "num_hidden_layers": 5, "num_attention_heads": 4, "dtype": "bfloat16"}
    facts = config_facts({"architectures": ["A"], "model_type": "vl", "text_config": {**text, "vocab_size": 9}})
    assert (facts.architecture, facts.model_type, facts.vocabulary, facts.dtype) == ("A", "vl", 9, "bfloat16")
    assert facts.attention.layers == 5


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ({"quant_method": "awq", "bits": 4}, ("awq-4bit", 4)),
        ({"quant_method": "gptq", "bits": 8}, ("gptq-8bit", 8)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8", 8)),
        ({"quant_method": "mxfp4"}, ("mxfp4", 4)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, ("bitsandbytes-4bit", 4)),
        ({"load_in_8bit": True}, ("bitsandbytes-8bit", 8)),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, ("modelopt-fp8", 8)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
            },
            ("compressed-tensors-4bit", 4),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            ("compressed-tensors-fp8", 8),
        ),
        ({"quant_method": "brand_new"}, ("brand_new", None)),
        ({}, (None, None)),
        ("awq", (None, None)),
    ],
)
def test_the_quantisation_is_named_with_its_width(block: Any, found: tuple[str | None, int | None]) -> None:
    assert quantization_of({"quantization_config": block}) == found


def test_labels_of_one_method_are_one_method() -> None:
    assert {method_of(label) for label in ("awq", "AWQ_Marlin", "awq-4bit", "awq_marlin")} == {"awq"}
    assert method_of("compressed-tensors-fp8") == method_of("compressed_tensors") == "compressed-tensors"
    assert method_of("fp8") == "fp8"


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8))
def test_no_configuration_makes_it_raise(config: dict[str, Any]) -> None:
    config_facts(config)
    config_facts({**LLAMA, **config})
    config_facts({"text_config": config})
