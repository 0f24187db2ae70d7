"""What an engine is told of its GPUs."""

from deploytui.profile.schema import Candidate
from deploytui.run.gpus import environment


def test_cuda_is_told_uuids_in_the_drivers_order() -> None:
    told = environment(Candidate(name="x", engine="vllm"), ("GPU-b", "MIG-1"))
    assert told == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "GPU-b,MIG-1"}


def test_a_candidate_on_the_cpu_sees_no_gpu() -> None:
    assert environment(Candidate(name="x", engine="vllm", device="cpu"), ()) == {"CUDA_VISIBLE_DEVICES": ""}


def test_without_gpus_nothing_is_said() -> None:
    assert environment(Candidate(name="x", engine="vllm"), ()) == {}
