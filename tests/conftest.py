"""What all tests share."""

import shutil
import subprocess
from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def no_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What `setup-engine` made on this machine is found by no test that does not ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPLOYTUI_ENGINES", str(tmp_path_factory.mktemp("engines")))
        yield


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
