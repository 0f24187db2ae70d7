"""Which GPUs a candidate gets."""

import pytest

from deploytui.profile.schema import Candidate, Settings
from deploytui.run.failing import CandidateFailed
from deploytui.run.gpus import chosen_gpus, environment

USABLE = ("GPU-a", "GPU-b", "GPU-c")


def _candidate(**fields: object) -> Candidate:
    return Candidate(name="x", engine="vllm", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({}, ("GPU-a",)),
        ({"device": "cpu"}, ()),
        ({"devices": 2}, ("GPU-a", "GPU-b")),
        ({"devices": ("GPU-c", "GPU-a")}, ("GPU-c", "GPU-a")),
        ({"settings": Settings(tensor_parallel=2)}, ("GPU-a", "GPU-b")),
    ],
)
def test_a_candidate_gets_what_it_asks_for(fields: dict[str, object], chosen: tuple[str, ...]) -> None:
    assert chosen_gpus(_candidate(**fields), USABLE) == chosen


@pytest.mark.parametrize(
    "fields", [{"devices": 4}, {"devices": ("GPU-z",)}, {"settings": Settings(tensor_parallel=2, pipeline_parallel=2)}]
)
def test_more_than_there_are_is_unsupported(fields: dict[str, object]) -> None:
    with pytest.raises(CandidateFailed) as caught:
        chosen_gpus(_candidate(**fields), USABLE)
    assert caught.value.failure.kind == "wrong_device"


def test_a_gpu_is_never_replaced_by_the_cpu() -> None:
    with pytest.raises(CandidateFailed):
        chosen_gpus(_candidate(device="cuda"), ())
    assert chosen_gpus(_candidate(), ()) == ()


def test_cuda_is_told_uuids_in_the_drivers_order() -> None:
    assert environment(("GPU-b",)) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert environment(()) == {}
