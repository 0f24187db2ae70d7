"""A package index of our own: small wheels in a folder, and pip told to look nowhere else."""

import os
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder: Path, name: str, version: str, *needs: str, tag: str = "py3-none-any", cuda: str = "") -> None:
    """Put a wheel there that holds one empty module, and what torch says of its CUDA."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    lines = "".join(f"Requires-Dist: {need}\n" for need in needs) + "Requires-Python: >=3.9\n"
    with ZipFile(folder / f"{module}-{version}-{tag}.whl", "w") as archive:
        archive.writestr(f"{module}/__init__.py", "")
        archive.writestr(f"{module}/version.py", f"cuda: Optional[str] = {cuda or None!r}\n")
        archive.writestr(f"{info}/METADATA", METADATA.format(name=name, version=version, needs=lines))
        archive.writestr(f"{info}/WHEEL", WHEEL)
        archive.writestr(f"{info}/RECORD", "")


def only_from(folder: Path | None, **more: str) -> dict[str, str]:
    """The environment of a pip that knows this folder and no index and no configuration of the user's."""
    found = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)} if folder else {}
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1", **found} | more


def installed(environment: Path) -> Sequence[str]:
    """Names of what lies in an environment, without what a fresh one has."""
    infos = environment.glob("lib/python*/site-packages/*.dist-info")
    return sorted(name for name in (info.name.partition("-")[0] for info in infos) if name not in ("pip", "setuptools"))
