"""What tells CUDA which GPUs an engine gets."""

from deploytui.profile.schema import Candidate


def environment(candidate: Candidate, gpu_uuids: tuple[str, ...]) -> dict[str, str]:
    """GPUs and MIG slices by UUID, numbered as the driver's library does; none at all for a candidate on the CPU."""
    if gpu_uuids:
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpu_uuids)}
    return {"CUDA_VISIBLE_DEVICES": ""} if candidate.device == "cpu" else {}
