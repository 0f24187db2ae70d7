"""The real NVML binding on a driver library of ours, whose state a test writes."""

import ctypes
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


class FakeDriver:
    """The state of the driver library that NVML calls read."""

    def __init__(self, binding: Any, state: Path) -> None:
        self.binding, self.state = binding, state
        self._rows: dict[tuple[int, str], int] = {}

    def set(self, gpu: int = -1, **values: int) -> None:
        """Change rows of one GPU, or of the library itself."""
        self._rows.update({(gpu, key): value for key, value in values.items()})
        lines = [f"{row} {key} {value}\n" for (row, key), value in self._rows.items()]
        new = self.state.with_suffix(".new")
        new.write_text("".join(lines), encoding="utf-8")
        new.replace(self.state)

    def reset(self) -> None:
        """One idle GPU again."""
        self._rows.clear()
        self.set(count=1)


@pytest.fixture
def driver(nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """A copy of the binding with our library loaded; the module `pynvml` of other tests stays as it is."""
    state = tmp_path / "nvml-state"
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))
    found = importlib.util.find_spec("pynvml")
    assert found is not None
    assert found.origin is not None
    spec = importlib.util.spec_from_file_location("pynvml_on_fake_driver", found.origin)
    assert spec is not None
    assert spec.loader is not None
    binding: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, binding)
    spec.loader.exec_module(binding)
    binding.nvmlLib = ctypes.CDLL(str(nvml_folder / "libnvidia-ml.so.1"))
    fake = FakeDriver(binding, state)
    fake.reset()
    return fake
