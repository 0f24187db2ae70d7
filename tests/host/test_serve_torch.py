"""torch as the hosts use it, with a stand-in that has GPUs where none is at hand."""

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.host.toys import HOST

if TYPE_CHECKING:
    from deploytui.host import serve_openai, serve_torch
else:
    sys.path.insert(0, str(HOST))
    import serve_openai
    import serve_torch

    sys.path.remove(str(HOST))


def torch_with(*gpus: tuple[int, int, int, int]) -> Any:
    """A torch whose GPUs have these figures: allocated, reserved, and the peaks of both."""
    cuda = SimpleNamespace(
        is_available=lambda: bool(gpus),
        device_count=lambda: len(gpus),
        get_device_name=lambda index: f"GPU {index}",
        memory_allocated=lambda index: gpus[index][0],
        memory_reserved=lambda index: gpus[index][1],
        max_memory_allocated=lambda index: gpus[index][2],
        max_memory_reserved=lambda index: gpus[index][3],
    )
    return SimpleNamespace(cuda=cuda)


def test_memory_is_the_worst_gpu_the_sum_is_called_so_and_each_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with((10, 20, 30, 45), (15, 16, 17, 18)))
    told = serve_torch.memory()
    assert [told[name] for name in serve_openai.MEMORY] == [15, 20, 30, 45]
    assert [told["sum_" + name] for name in serve_openai.MEMORY] == [25, 36, 47, 63]
    assert [gpu["index"] for gpu in told["gpus"]] == [0, 1]


def test_without_a_gpu_no_figure_is_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with())
    told = serve_torch.memory()
    assert told.pop("gpus") == []
    assert set(told.values()) == {None}


class Model:
    """A model as accelerate leaves it, or as it was read without it."""

    def __init__(self, placed: dict[str, Any] | None) -> None:
        if placed is not None:
            self.hf_device_map = placed
        self.moved: str | None = None

    def to(self, device: str) -> "Model":
        self.moved = device
        return self


def test_a_model_that_was_not_placed_is_moved_whole() -> None:
    assert serve_torch.on_device(Model(None), "cuda").moved == "cuda"


def test_a_placed_model_is_left_where_it_is() -> None:
    assert serve_torch.on_device(Model({"a": 0, "b": 1}), "cuda").moved is None


@pytest.mark.parametrize("place", ["cpu", "disk"])
def test_a_model_of_which_a_part_lies_off_the_gpus_is_refused(place: str) -> None:
    with pytest.raises(serve_openai.OptionError, match=f"1 of 2 parts would lie on {place}"):
        serve_torch.on_device(Model({"a": 0, "b": place}), "cuda")


def test_a_device_map_is_followed_and_the_cpu_needs_none() -> None:
    assert serve_torch.placement("cuda", "balanced") == {"device_map": "balanced"}
    assert serve_torch.placement("cpu", None) == {}
