"""One GPU or MIG slice: each figure is asked for by itself, so that one which the card lacks takes no other with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import psutil

from deploytui.telemetry.host import memory_free
from deploytui.telemetry.messages import DeviceReading, MemorySource

T = TypeVar("T")

NOT_FOR_THIS_CARD = frozenset({2, 3, 4, 13, 25, 26})
"""NVML: invalid argument, not supported, no permission, function not found, version mismatch, deprecated."""
LOST = frozenset({15, 16, 28})
"""NVML: GPU is lost, reset required, GPU not found."""
NOT_SUPPORTED = 3
INTEGRATED = frozenset({"5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"})
"""Compute capabilities of GPUs that share the host's memory: Jetson boards, Thor, GB10. Some of their drivers tell no
memory, others a total that is not theirs."""
ALL_ONES = frozenset({2**32 - 1, 2**64 - 1})
"""What drivers write for `not available`."""


@dataclass
class Device:
    """A handle of the driver library and what we learned not to ask it."""

    nvml: Any
    """The binding, such as the module `pynvml`."""
    handle: Any
    index: int
    uuid: str
    name: str
    parent: Any = None
    """The handle of the whole GPU when this is a slice of it."""
    lost: str | None = None
    unsupported: set[str] = field(default_factory=set)
    unified: bool = False
    """Whether it is known to share the host's memory."""

    def read(self) -> DeviceReading:
        """All figures now."""
        used, total, source = self._memory()
        return DeviceReading(
            uuid=self.uuid,
            index=self.index,
            name=self.name,
            used_bytes=used,
            total_bytes=total,
            memory_source=source,
            utilisation=self._utilisation(),
            power_w=self._milli("power", lambda: self.nvml.nvmlDeviceGetPowerUsage(self.handle)),
            power_limit_w=self._milli("limit", lambda: self.nvml.nvmlDeviceGetEnforcedPowerLimit(self.handle)),
            temperature_c=self._temperature(),
            lost=self.lost,
        )

    def total_bytes(self) -> int | None:
        """Its memory [bytes]."""
        return self._memory()[1]

    def compute_capability(self) -> str | None:
        """Such as `9.0`."""
        handle = self.handle if self.parent is None else self.parent
        version = self.ask("capability", lambda: self.nvml.nvmlDeviceGetCudaComputeCapability(handle))
        return None if version is None else f"{version[0]}.{version[1]}"

    def capability(self) -> tuple[int, int] | None:
        """Its compute capability, such as (9, 0)."""
        text = self.compute_capability()
        major, dot, minor = (text or "").partition(".")
        return (int(major), int(minor)) if dot else None

    def free_bytes(self) -> int | None:
        """What can still be taken of its memory [bytes]."""
        if self._memory()[2] == "system-unified":
            return memory_free()
        found = self.ask("nvml-v2", lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle, self.nvml.nvmlMemory_v2))
        if found is None:
            found = self.ask("nvml-v1", lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle))
        free, total = (_told(found.free), _told(found.total)) if found is not None else (None, None)
        return free if free is not None and total and free <= total else None

    def processes(self) -> dict[int, int | None]:
        """Who uses it: pid, as the driver numbers them, to bytes; None where the driver does not tell."""
        found: dict[int, int | None] = {}
        for process in (*self._listed("Compute"), *self._listed("Graphics")):
            found[int(process.pid)] = self._plausible(process.usedGpuMemory)
        return found

    def _listed(self, kind: str) -> list[Any]:
        """The driver's list; versions are named, since without one an older driver is an error of another kind."""
        for version in ("v3", "v2"):
            call = f"nvmlDeviceGet{kind}RunningProcesses_{version}"
            listed = self.ask(call, partial(self._call, call))
            if listed is not None:
                return list(listed)
        return []

    def _call(self, name: str) -> Any:
        return getattr(self.nvml, name)(self.handle)

    def _plausible(self, used: Any) -> int | None:
        """Bytes of a process; None when it is not told, or more than there is."""
        told, total = _told(used), self.total_bytes()
        return None if told is None or (total is not None and told > total) else told

    def ask(self, name: str, question: Callable[[], T]) -> T | None:
        """The answer, or None; a question this card has no answer to, or a lost device, is not asked again."""
        if self.lost is not None or name in self.unsupported:
            return None
        try:
            return question()
        except AttributeError:
            self.unsupported.add(name)
        except self.nvml.NVMLError as error:
            self._learn(name, error)
        return None

    def _learn(self, name: str, error: Any) -> None:
        code = getattr(error, "value", None)
        if code in LOST:
            self.lost = str(error)
        elif code in NOT_FOR_THIS_CARD:
            self.unsupported.add(name)
            self.unified = self.unified or (name == "nvml-v1" and code == NOT_SUPPORTED and self.parent is None)

    def _memory(self) -> tuple[int | None, int | None, MemorySource | None]:
        """Used and total bytes, and by which call. A passing failure of v2 is no reason for v1: they differ."""
        if self.lost is None and self.unified:
            return _of_host()
        source: MemorySource = "nvml-v2"
        found = self.ask(source, lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle, self.nvml.nvmlMemory_v2))
        if found is None and source in self.unsupported:
            source = "nvml-v1"
            found = self.ask(source, lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle))
        if found is None:
            return _of_host() if self.lost is None and self.unified else (None, None, None)
        total = _told(found.total) or None
        used = _told(found.used)
        if used is not None and total is not None and used > total:
            used = None
        return used, total, source

    def _utilisation(self) -> float | None:
        # A slice has none of its own, and the parent's is not its.
        if self.parent is not None:
            return None
        rates = self.ask("utilisation", lambda: self.nvml.nvmlDeviceGetUtilizationRates(self.handle))
        return None if rates is None or rates.gpu > 100 else float(rates.gpu)

    def _temperature(self) -> float | None:
        sensor = getattr(self.nvml, "NVML_TEMPERATURE_GPU", 0)
        degrees = self.ask("temperature", lambda: self.nvml.nvmlDeviceGetTemperature(self.handle, sensor))
        value = _told(degrees)
        return None if value is None else float(value)

    def _milli(self, name: str, question: Callable[[], Any]) -> float | None:
        value = _told(self.ask(name, question))
        return None if value is None else value / 1000


def _of_host() -> tuple[int, int, MemorySource]:
    memory = psutil.virtual_memory()
    return int(memory.total - memory.available), int(memory.total), "system-unified"


def _told(value: Any) -> int | None:
    return None if value is None or int(value) in ALL_ONES else int(value)
