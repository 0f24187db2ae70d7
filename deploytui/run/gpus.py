"""Which GPUs a candidate gets: of those this process may use, as many as it asks for, by UUID."""

from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure
from deploytui.run.failing import CandidateFailed


def chosen_gpus(candidate: Candidate, usable: tuple[str, ...]) -> tuple[str, ...]:
    """UUIDs of the candidate's GPUs; empty for a CPU candidate, or one that asks for none where there is none.

    CandidateFailed when it asks for more than there are, or for one that is not there.
    """
    if candidate.device == "cpu":
        return ()
    wanted = candidate.devices if candidate.devices is not None else _parallel(candidate)
    if isinstance(wanted, int):
        if wanted > len(usable) and (candidate.devices is not None or candidate.device == "cuda" or wanted > 1):
            raise CandidateFailed(_too_few(candidate.name, wanted, len(usable)))
        return usable[:wanted]
    for uuid in wanted:
        if uuid not in usable:
            raise CandidateFailed(_not_there(candidate.name, uuid, usable))
    return wanted


def environment(gpu_uuids: tuple[str, ...]) -> dict[str, str]:
    """What tells CUDA which GPUs to use, in the order the driver library numbers them."""
    if not gpu_uuids:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpu_uuids)}


def _parallel(candidate: Candidate) -> int:
    return (candidate.settings.tensor_parallel or 1) * (candidate.settings.pipeline_parallel or 1)


def _too_few(name: str, wanted: int, there: int) -> Failure:
    return Failure(
        kind="wrong_device",
        what=f"{name} needs {wanted} GPUs, and this process may use {there}.",
        fix="Lower `devices` or the parallel settings, or look at CUDA_VISIBLE_DEVICES and the driver.",
    )


def _not_there(name: str, uuid: str, usable: tuple[str, ...]) -> Failure:
    return Failure(
        kind="wrong_device",
        what=f"{name} names the GPU {uuid}, which this process may not use.",
        fix=f"It may use: {', '.join(usable) or 'none'}.",
    )
