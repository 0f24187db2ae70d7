"""The GPUs of this node through the NVIDIA driver's library; nothing is called before someone asks."""

import ctypes
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

from msgspec import Struct

from deploytui.record.facts import Gpu
from deploytui.telemetry.device import INTEGRATED, LOST, Device
from deploytui.telemetry.messages import DeviceReading

NO_BINDING = "The NVML binding can't be imported ({}); reinstall deploytui, which brings nvidia-ml-py."
LIBRARY, NO_LIBRARY = "libnvidia-ml.so.1", 12
"""The driver's library on Linux, and NVML's own number and words for its absence."""
NO_LIBRARY_TEXT = "NVML Shared Library Not Found"
NO_GPU = "The NVIDIA driver answers but shows no GPU; check CUDA devices of the job or container."
REMEDIES: dict[int, str] = {
    4: "ask for access to the /dev/nvidia* files",
    9: "load the kernel module (modprobe nvidia) or reboot",
    12: "install the NVIDIA driver, or start the container with its GPUs (--gpus all)",
    15: "reset or reboot the node",
    18: "driver and library differ since an update: reload the driver or reboot",
}
"""What to do, by NVML error."""


class GpuReading(Struct, frozen=True, kw_only=True):
    """The GPUs as found; `missing` says in one line why there are none, None when there are."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    missing: str | None = None


class Gpus:
    """The driver library while it is open, and its devices; without a GPU, `missing` says why."""

    def __init__(self, nvml: Any = None, devices: tuple[Device, ...] = (), missing: str | None = None) -> None:
        self.nvml, self.devices, self.missing = nvml, devices, missing

    @classmethod
    def open(cls, binding: Any = None) -> Self:
        """Load the library and find its devices; another binding than `pynvml` may be given. Raises nothing."""
        if binding is None and not _is_installed():
            return cls(missing=_in_words(NO_LIBRARY_TEXT, NO_LIBRARY))
        try:
            nvml = binding or _import_binding()
        except ImportError as error:
            return cls(missing=NO_BINDING.format(error))
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            return cls(missing=reason(error))
        gpus = cls(nvml)
        try:
            gpus.devices = tuple(_devices(nvml))
            gpus.missing = None if gpus.devices else NO_GPU
        except nvml.NVMLError as error:
            gpus.missing = reason(error)
        return gpus

    def read(self) -> tuple[DeviceReading, ...]:
        """Every device now."""
        return tuple(device.read() for device in self.devices)

    def inventory(self) -> GpuReading:
        """What the devices are."""
        return GpuReading(
            gpus=tuple(_gpu(device) for device in self.devices),
            driver=self._driver(),
            cuda=self._cuda(),
            missing=self.missing,
        )

    def close(self) -> None:
        """Let the library go; a second time does nothing."""
        nvml, self.nvml = self.nvml, None
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return

    def _driver(self) -> str | None:
        try:
            return _text(self.nvml.nvmlSystemGetDriverVersion()) if self.nvml else None
        except self.nvml.NVMLError:
            return None

    def _cuda(self) -> str | None:
        """The newest CUDA version the driver can serve, such as `13.0`."""
        try:
            version = int(self.nvml.nvmlSystemGetCudaDriverVersion()) if self.nvml else 0
        except self.nvml.NVMLError:
            return None
        return f"{version // 1000}.{version % 1000 // 10}" if version else None


def read_gpus(binding: Any = None) -> GpuReading:
    """The GPUs of this node; raises nothing."""
    gpus = Gpus.open(binding)
    try:
        return gpus.inventory()
    finally:
        gpus.close()


def reason(error: Any) -> str:
    """One line: what the driver's library says, and what to do."""
    return _in_words(str(error), getattr(error, "value", -1))


def _in_words(text: str, number: int) -> str:
    return f"No GPU can be read: {text.rstrip('.')}; {REMEDIES.get(number, 'run nvidia-smi for more')}."


def visible_uuids(cuda_visible_devices: str | None, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """The GPUs a process with that environment variable may use, in its order, each once; all when it is not set.

    Read as CUDA reads it in PCI order: an entry that names nothing, such as -1, hides itself and all after it.
    """
    if cuda_visible_devices is None:
        return tuple(gpu.uuid for gpu in gpus)
    chosen: list[str] = []
    for entry in (part.strip() for part in cuda_visible_devices.split(",")):
        if not entry:
            continue
        uuid = _resolve(entry, gpus)
        if uuid is None:
            break
        if uuid not in chosen:
            chosen.append(uuid)
    return tuple(chosen)


def usable_gpus(cuda_visible_devices: str | None, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs of `visible_uuids`."""
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    return tuple(by_uuid[uuid] for uuid in visible_uuids(cuda_visible_devices, gpus))


def _resolve(entry: str, gpus: Sequence[Gpu]) -> str | None:
    """An index, a UUID or the unique beginning of one; an index of a sliced GPU means its first slice, as in CUDA."""
    if entry.isdecimal():
        return next((gpu.uuid for gpu in gpus if gpu.index == int(entry)), None)
    if not entry.lower().startswith(("gpu-", "mig-")):
        return None
    begun = [gpu.uuid for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
    return begun[0] if len(begun) == 1 else None


def _is_installed() -> bool:
    """Whether the driver's library can be loaded, found out without the binding, which takes long to load."""
    if not sys.platform.startswith("linux"):
        return True
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def _import_binding() -> Any:
    # Another package of the same module name warns on each import, which would land on the screen.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pynvml

        return pynvml


def _devices(nvml: Any) -> Iterator[Device]:
    for index in range(nvml.nvmlDeviceGetCount()):
        whole = _device(nvml, index)
        slices = () if whole.lost else tuple(_slices(whole))
        yield from slices or (whole,)


def _device(nvml: Any, index: int) -> Device:
    device = Device(nvml, None, index, f"unknown-gpu-{index}", "unknown GPU")
    device.handle = device.ask("handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if device.handle is None:
        device.lost = device.lost or "The driver gives no handle for it."
        return device
    return _named(device)


def _named(device: Device) -> Device:
    nvml, handle = device.nvml, device.handle
    device.uuid = _text(device.ask("uuid", lambda: nvml.nvmlDeviceGetUUID(handle))) or device.uuid
    device.name = _text(device.ask("name", lambda: nvml.nvmlDeviceGetName(handle))) or device.name
    device.unified = device.parent is None and device.compute_capability() in INTEGRATED
    return device


def _slices(whole: Device) -> Iterator[Device]:
    """The MIG slices of a GPU, each with a handle and memory of its own; none when it is not sliced."""
    nvml = whole.nvml
    mode = whole.ask("mig", lambda: nvml.nvmlDeviceGetMigMode(whole.handle))
    if not mode or mode[0] != 1:
        return
    most = whole.ask("mig", lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(whole.handle)) or 0
    for place in range(most):
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(whole.handle, place)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) in LOST:
                return
            continue
        unnamed = f"unknown-slice-{whole.index}-{place}"
        yield _named(Device(nvml, handle, whole.index, unnamed, whole.name, parent=whole.handle))


def _gpu(device: Device) -> Gpu:
    return Gpu(
        uuid=device.uuid,
        index=device.index,
        name=device.name,
        total_bytes=device.total_bytes(),
        compute_capability=device.compute_capability(),
    )


def _text(value: Any) -> str:
    """Text of a binding that may give bytes; empty of None."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
