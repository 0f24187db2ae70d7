"""How many parameters tensors hold, where quantised ones are packed several to an element, with scales beside them."""

from collections.abc import Mapping

from deploytui.artifact.safetensors import BITS, TensorInfo

BESIDE = (
    "qzeros",
    "scales",
    "g_idx",
    "absmax",
    "quant_map",
    "nested_absmax",
    "nested_quant_map",
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "weight_global_scale",
    "weight_zero_point",
    "weight_shape",
    "weight_g_idx",
    "input_scale",
    "input_global_scale",
    "k_scale",
    "v_scale",
    "inv_freq",
    "SCB",
)
"""Last parts of names of tensors that describe weights and are none."""

PACKED = ("qweight", "weight_packed")
INTEGERS = frozenset({"I32", "I64", "U8", "I8", "U32"})
NARROW = frozenset({4, 3, 2, 5, 6, 7, 1})


def parameters_of(tensors: Mapping[str, TensorInfo], bits: int | None, *, quantized: bool) -> int | None:
    """All parameters; None when packed ones are there and nobody tells how many bits each has."""
    if not quantized:
        return sum(tensor.elements for tensor in tensors.values() if tensor.dtype not in ("BOOL",))
    total = 0
    for name, tensor in tensors.items():
        last = name.rpartition(".")[2]
        if last in BESIDE or ".quant_state." in name or last.endswith(("_scales", "_scale", "_bias_scale")):
            continue
        count = _unpacked(last, tensor, bits)
        if count is None:
            return None
        total += count
    return total


def _unpacked(last: str, tensor: TensorInfo, bits: int | None) -> int | None:
    packed = last in PACKED or last.endswith("_blocks") or (last == "weight" and tensor.dtype == "U8")
    if not packed or tensor.dtype not in INTEGERS:
        return tensor.elements
    if bits is None or (bits not in NARROW and bits != 8):
        return None
    return tensor.elements * BITS[tensor.dtype] // bits
