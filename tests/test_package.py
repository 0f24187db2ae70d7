"""Pure modules reach no event loop, screen, driver or engine: each is loaded in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

import deploytui

ROOT = Path(deploytui.__file__).parent
PURE_FOLDERS = ("profile", "record", "plan", "compare", "decide")
FORBIDDEN = (
    *("anyio", "asyncio", "textual", "rich", "pynvml", "psutil", "aiohttp", "prometheus_client", "click"),
    *("numpy", "scipy", "torch", "xllamacpp", "subprocess", "socket", "multiprocessing"),
)


def pure_modules() -> list[str]:
    files = [path for folder in PURE_FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    names = [f"deploytui.{path.parent.name}.{path.stem}".removesuffix(".__init__") for path in files]
    return ["deploytui.errors", "deploytui.units", "deploytui.definitions", *names]


MODULES = [name for name in pure_modules() if name != "deploytui.profile.files"]


@pytest.mark.parametrize("module", MODULES)
def test_a_pure_module_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & set({FORBIDDEN!r})))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (found.returncode, found.stdout.split(), found.stderr) == (0, [], "")


def test_importing_the_package_loads_none_of_its_modules() -> None:
    code = "import sys, deploytui; print(*[name for name in sys.modules if name.startswith('deploytui.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == []


def test_the_documented_functions_come_from_the_package() -> None:
    assert deploytui.build_deployment_case("", "b", "f", "h", {"a": 1}) == {"status": "invalid_config"}
    assert deploytui.compare_deployment_records([])["records"] == []
    assert callable(deploytui.make_deployment_decision)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = deploytui.no_such_thing
