"""The files that a workload names, read and held against what it asks of them."""

from pathlib import Path

from deploytui.errors import ProfileError
from deploytui.plan.dataset import parse_dataset
from deploytui.plan.forecast import check_span
from deploytui.plan.inputs import Inputs, check_inputs
from deploytui.plan.trace import parse_trace
from deploytui.profile.load_schema import TraceReplay
from deploytui.profile.places import user_path
from deploytui.profile.schema import Profile


def read_inputs(profile: Profile, base_dir: Path) -> Inputs:
    """Dataset and trace of the workload, their paths relative to `base_dir`; ProfileError when they won't do."""
    workload = profile.workload
    dataset = trace = None
    if workload.dataset is not None:
        dataset = parse_dataset(workload.dataset, _content("workload.dataset", workload.dataset, base_dir))
    if isinstance(workload.load, TraceReplay):
        trace = parse_trace(workload.load.path, _content("workload.load.path", workload.load.path, base_dir))
    inputs = Inputs(dataset=dataset, trace=trace)
    check_inputs(workload, inputs)
    check_span(profile, inputs)
    return inputs


def _content(key: str, name: str, base_dir: Path) -> bytes:
    path = base_dir / user_path(name)
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        fix = "Paths are relative to the profile's folder."
        raise ProfileError(f"{key}: {path} can't be read.", why=str(error), fix=fix) from error
