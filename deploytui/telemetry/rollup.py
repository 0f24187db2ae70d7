"""Samples of an interval into what the journal keeps of it: least, most and last, so that no peak is thinned away."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from deploytui.record.facts import Band, DeviceSample
from deploytui.telemetry.messages import DeviceReading, Sample

Baseline = Mapping[str, int | None]
"""UUID → bytes in use before launch, of a candidate's devices; None where it was not told."""


class NodeParts(Struct, frozen=True, kw_only=True):
    """The node over one interval, in the words of `NodeRollup`."""

    devices: tuple[DeviceSample, ...] = ()
    host_used_bytes: int | None = None
    host_total_bytes: int | None = None
    cpu_percent: float | None = None


class CandidateParts(Struct, frozen=True, kw_only=True):
    """A candidate's memory over one interval, in the words of `Rollup`; None where no sample told it."""

    gpu_bytes: Band | None = None
    host_bytes: Band | None = None


def device_bytes(sample: Sample, uuids: Collection[str]) -> dict[str, int | None]:
    """Bytes in use on each of these devices; None where the sample does not tell."""
    used = {device.uuid: device.used_bytes for device in sample.devices}
    return {uuid: used.get(uuid) for uuid in uuids}


def worst_above(sample: Sample, baseline: Baseline) -> int | None:
    """The most bytes above the baseline over its devices; None when one of them is not told: it may be the worst."""
    used = device_bytes(sample, baseline.keys())
    above = [_difference(used[uuid], before) for uuid, before in baseline.items()]
    known = [value for value in above if value is not None]
    return max(known) if known and len(known) == len(above) else None


def tree_bytes(sample: Sample, roots: Collection[int]) -> int | None:
    """Resident bytes of these process trees together; None when one of them is not told."""
    sizes = [sample.rss.get(root) for root in roots]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def widened(band: Band | None, value: float | None) -> Band | None:
    """The band with one more value; an unknown value changes nothing."""
    if value is None:
        return band
    if band is None:
        return Band(value, value, value)
    return Band(min(band.min, value), max(band.max, value), value)


@dataclass(slots=True)
class RollupWindow:
    """One candidate's memory, interval by interval, with its peaks since the window was made."""

    baseline: Baseline = field(default_factory=dict)
    roots: tuple[int, ...] = ()
    peak_gpu_bytes: int | None = None
    peak_host_bytes: int | None = None
    last_gpu_bytes: int | None = None
    last_host_bytes: int | None = None
    _gpu: Band | None = None
    _host: Band | None = None

    def add(self, sample: Sample) -> None:
        """Take in one sample."""
        gpu, host = worst_above(sample, self.baseline), tree_bytes(sample, self.roots)
        self._gpu, self._host = widened(self._gpu, gpu), widened(self._host, host)
        if gpu is not None:
            self.last_gpu_bytes, self.peak_gpu_bytes = gpu, max(gpu, self.peak_gpu_bytes or gpu)
        if host is not None:
            self.last_host_bytes, self.peak_host_bytes = host, max(host, self.peak_host_bytes or host)

    def close(self) -> CandidateParts:
        """The interval so far; the next one begins empty, the peaks stay."""
        parts = CandidateParts(gpu_bytes=self._gpu, host_bytes=self._host)
        self._gpu = self._host = None
        return parts


@dataclass(slots=True)
class NodeWindow:
    """The whole node, interval by interval."""

    _newest: Sample | None = None
    _devices: dict[str, DeviceReading] = field(default_factory=dict)
    _used: dict[str, Band | None] = field(default_factory=dict)
    _busy: dict[str, Band | None] = field(default_factory=dict)
    _cpu: list[float] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        """Take in one sample."""
        self._newest = sample
        if sample.cpu_percent is not None:
            self._cpu.append(sample.cpu_percent)
        for device in sample.devices:
            self._devices[device.uuid] = device
            self._used[device.uuid] = widened(self._used.get(device.uuid), device.used_bytes)
            self._busy[device.uuid] = widened(self._busy.get(device.uuid), device.utilisation)

    def close(self) -> NodeParts | None:
        """The interval so far, None when no sample came in it; the next one begins empty."""
        newest = self._newest
        if newest is None:
            return None
        parts = NodeParts(
            devices=tuple(self._device(device) for device in self._devices.values()),
            host_used_bytes=newest.host_used_bytes,
            host_total_bytes=newest.host_total_bytes,
            cpu_percent=sum(self._cpu) / len(self._cpu) if self._cpu else None,
        )
        self._newest = None
        for kept in (self._devices, self._used, self._busy, self._cpu):
            kept.clear()
        return parts

    def _device(self, device: DeviceReading) -> DeviceSample:
        return DeviceSample(
            uuid=device.uuid,
            index=device.index,
            name=device.name,
            used_bytes=self._used[device.uuid],
            total_bytes=device.total_bytes,
            utilisation=self._busy[device.uuid],
            power_w=device.power_w,
            power_limit_w=device.power_limit_w,
            temperature_c=device.temperature_c,
            lost=device.lost,
        )


def _difference(used: int | None, before: int | None) -> int | None:
    return None if used is None or before is None else used - before
