"""What all tests share."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

SOURCE = Path(__file__).parent / "data" / "fake_nvml.c"

# A busy machine is no reason for a property to fail.
settings.register_profile("deploytui", deadline=None)
settings.load_profile("deploytui")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the product does."""
    return "asyncio"


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our `libnvidia-ml.so.1`."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc for the stand-in of the driver's library")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True, timeout=120)
    return folder
