"""torch as a host needs it: threads, devices, and its own account of GPU memory."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from deploytui.host import serve_openai as door
else:
    import serve_openai as door

AWAY = ("cpu", "disk", "meta")
"""Where weights go that don't fit the GPUs."""


def use_threads(count: Optional[int]) -> None:
    """Compute with so many threads; before torch is imported, for the libraries below it read that then."""
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(count)
    import torch

    if count is not None:
        torch.set_num_threads(count)


def claim_device(device: str) -> None:
    """Touch the device; torch's own error when it isn't there."""
    import torch

    torch.zeros(1, device=device)


def placement(device: str, device_map: Optional[str]) -> Dict[str, Any]:
    """The words for from_pretrained that put weights where they belong while they are read."""
    if device_map:
        return {"device_map": device_map}
    if device == "cuda" and importlib.util.find_spec("accelerate"):
        return {"device_map": {"": "cuda:0"}}
    return {}


def on_device(model: Any, device: str) -> Any:
    """The model, whole on the kind of device that was asked for; OptionError when a part lies elsewhere."""
    placed = getattr(model, "hf_device_map", None)
    if placed is None:
        return model.to(device)
    away = sorted({str(place) for place in placed.values() if str(place) in AWAY})
    if device == "cuda" and away:
        parts = sum(str(place) in AWAY for place in placed.values())
        raise door.OptionError(
            "CUDA out of memory: the model does not fit the visible GPUs; {} of {} parts would lie on {}".format(
                parts, len(placed), " and ".join(away)
            )
        )
    return model


def versions(*names: str) -> Dict[str, str]:
    """The installed ones of these distributions."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def props(model: Any) -> Dict[str, Any]:
    """How a model lies and computes."""
    import torch

    placed = getattr(model, "hf_device_map", None)
    return {
        "dtype": str(model.dtype).replace("torch.", ""),
        "device": str(model.device),
        "device_map": {key or "all": str(place) for key, place in placed.items()} if placed else None,
        "attn_implementation": getattr(model.config, "_attn_implementation", None),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "gpus": [torch.cuda.get_device_name(index) for index in range(gpu_count())],
    }


def gpu_count() -> int:
    """How many GPUs torch may use."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def memory() -> Dict[str, Any]:
    """Bytes on the worst GPU under the plain names, their sum over all under `sum_…`, and each GPU's own.

    None where there is no GPU: torch keeps no account of host memory.
    """
    gpus = [on_gpu(index) for index in range(gpu_count())]
    worst = {name: max((gpu[name] for gpu in gpus), default=None) for name in door.MEMORY}
    total = {"sum_" + name: sum(gpu[name] for gpu in gpus) if gpus else None for name in door.MEMORY}
    return {**worst, **total, "gpus": gpus}


def on_gpu(index: int) -> Dict[str, int]:
    """torch's account of one GPU [bytes]."""
    import torch

    return {
        "index": index,
        "allocated_bytes": torch.cuda.memory_allocated(index),
        "reserved_bytes": torch.cuda.memory_reserved(index),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(index),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(index),
    }
