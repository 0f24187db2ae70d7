"""What kind of artifact lies at a path, by content and by name."""

from pathlib import Path

from deploytui.artifact.gguf import MAGIC
from deploytui.artifact.reading import FaultError, opened

MARKERS: tuple[tuple[str, str], ...] = (
    ("genai_config.json", "onnx"),
    ("*.safetensors", "safetensors"),
    ("model.safetensors.index.json", "safetensors"),
    ("*.onnx", "onnx"),
    ("*.engine", "tensorrt"),
    ("*.gguf", "gguf"),
    ("pytorch_model*.bin", "pytorch"),
    ("pytorch_model.bin.index.json", "pytorch"),
    ("*.pth", "pytorch"),
    ("*.pt", "pytorch"),
)
"""What in a folder shows its format; the first that is there wins."""

SUFFIXES = {
    ".gguf": "gguf",
    ".safetensors": "safetensors",
    ".onnx": "onnx",
    ".engine": "tensorrt",
    ".bin": "pytorch",
    ".pt": "pytorch",
    ".pth": "pytorch",
}


def format_of(path: Path) -> str | None:
    """The format by content or name; None when nothing shows it."""
    if not path.is_dir():
        return "gguf" if _starts_with_magic(path) else SUFFIXES.get(path.suffix.lower())
    return next((kind for pattern, kind in MARKERS if any(path.glob(pattern))), None)


def _starts_with_magic(path: Path) -> bool:
    try:
        with opened(path) as (file, _):
            return file.read(len(MAGIC)) == MAGIC
    except FaultError:
        return False
