"""One GPU or MIG slice: each figure is asked for by itself, so that one which the card lacks takes no other with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deploytui.telemetry.messages import DeviceReading, MemorySource

T = TypeVar("T")

NOT_FOR_THIS_CARD = frozenset({2, 3, 4, 13, 25, 26})
"""NVML: invalid argument, not supported, no permission, function not found, version mismatch, deprecated."""
LOST = frozenset({15, 16, 28})
"""NVML: GPU is lost, reset required, GPU not found."""
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

    def _memory(self) -> tuple[int | None, int | None, MemorySource | None]:
        """Used and total bytes, and by which call. A passing failure of v2 is no reason for v1: they differ."""
        source: MemorySource = "nvml-v2"
        found = self.ask(source, lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle, self.nvml.nvmlMemory_v2))
        if found is None and source in self.unsupported:
            source = "nvml-v1"
            found = self.ask(source, lambda: self.nvml.nvmlDeviceGetMemoryInfo(self.handle))
        if found is None:
            return None, None, None
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


def _told(value: Any) -> int | None:
    return None if value is None or int(value) in ALL_ONES else int(value)
