"""Where the numbers of a session hold."""

from typing import Any

from deploytui.record.facts import Environment
from deploytui.telemetry.host import read_host
from deploytui.telemetry.nvml import read_gpus


def read_environment(binding: Any = None) -> Environment:
    """Host, all GPUs the driver shows, and versions; may take seconds on a cold driver, so call it in a thread."""
    found = read_gpus(binding)
    return Environment(
        host=read_host(), gpus=found.gpus, driver=found.driver, cuda=found.cuda, gpu_missing=found.missing
    )
