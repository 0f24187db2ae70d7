"""What the runner and the telemetry process say to each other: an order and changes in, samples out, as JSON lines."""

from typing import Literal

import msgspec
from msgspec import Struct

MemorySource = Literal["nvml-v2", "nvml-v1", "system-unified"]
"""`used` of v1 contains what the driver reserves, of v2 it does not; the two are not compared. A GPU that has no memory
of its own uses the host's: its figures are the host's, with all that runs there."""


class TelemetryOrder(Struct, frozen=True, kw_only=True):
    """The first line the process reads."""

    pids: tuple[int, ...] = ()
    """Roots of the process trees whose memory is wanted."""
    interval_s: float = 0.25


class Watch(Struct, frozen=True, kw_only=True, tag="watch", tag_field="do"):
    """A later line: these process trees from now on."""

    pids: tuple[int, ...]


class DeviceReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU, or one MIG slice, at one moment; a field is None where the driver does not tell it."""

    uuid: str
    index: int
    name: str
    used_bytes: int | None = None
    total_bytes: int | None = None
    memory_source: MemorySource | None = None
    utilisation: float | None = None
    """Percent of the last interval in which a kernel ran [%]."""
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    lost: str | None = None
    """The driver's words since the device can't be reached any more; it is not asked again."""


class Sample(Struct, frozen=True, kw_only=True, tag="sample", tag_field="kind", omit_defaults=True):
    """The node at one moment; `at_ns` is its monotonic clock."""

    at_ns: int
    devices: tuple[DeviceReading, ...] = ()
    gpu_missing: str | None = None
    """Why there are no devices in this sample; None when there are."""
    host_used_bytes: int | None = None
    host_total_bytes: int | None = None
    cpu_percent: float | None = None
    """Of all cores, since the sample before; None in the first."""
    rss: dict[int, int | None] = {}
    """Resident bytes of each watched tree by its root's pid; None when the root is gone or can't be read."""


order_decoder = msgspec.json.Decoder(TelemetryOrder)
watch_decoder = msgspec.json.Decoder(Watch)
sample_decoder = msgspec.json.Decoder(Sample)
