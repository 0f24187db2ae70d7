"""Which GPUs a job may use."""

import pytest

from deploytui.record.facts import Gpu
from deploytui.telemetry.visible import allowed_gpus

GPUS = tuple(Gpu(uuid=f"GPU-{index}", index=index, name="A") for index in range(4))


@pytest.mark.parametrize(
    ("environment", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"SLURM_JOB_GPUS": "1,3"}, [1, 3]),
        ({"SLURM_JOB_GPUS": "1-2"}, [1, 2]),
        ({"SLURM_STEP_GPUS": "2", "SLURM_JOB_GPUS": "1,3"}, [2]),
        ({"GPU_DEVICE_ORDINAL": "0,1"}, [0, 1]),
        ({"SLURM_JOB_GPUS": "1,3", "GPU_DEVICE_ORDINAL": "0,1"}, [1, 3]),
        ({"CUDA_VISIBLE_DEVICES": "2", "SLURM_JOB_GPUS": "1,3"}, [2]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-3", "SLURM_JOB_GPUS": "1,3"}, [3]),
        ({"CUDA_VISIBLE_DEVICES": "", "SLURM_JOB_GPUS": "1,3"}, []),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,2"}, [0]),
        ({"SLURM_JOB_GPUS": ""}, [0, 1, 2, 3]),
        ({"SLURM_JOB_GPUS": "none"}, []),
    ],
)
def test_a_slurm_job_uses_only_what_it_was_given(environment: dict[str, str], places: list[int]) -> None:
    assert allowed_gpus(environment, GPUS) == tuple(GPUS[place] for place in places)


def test_a_job_that_sees_only_its_own_gpus_may_use_them_all() -> None:
    shown = GPUS[:2]  # the driver numbers the two from 0, Slurm calls them 4 and 5
    assert allowed_gpus({"SLURM_JOB_GPUS": "4,5"}, shown) == shown
