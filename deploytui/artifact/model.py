"""What a model is: one reader for whatever lies at a path."""

import stat
from pathlib import Path

from msgspec.structs import replace

from deploytui.artifact.checkpoint import CONFIG, no_weights, read_checkpoint
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.format import SUFFIXES, format_of
from deploytui.artifact.gguf_facts import read_gguf_model, shards_of
from deploytui.artifact.listing import list_files
from deploytui.artifact.onnx import read_onnx
from deploytui.artifact.reading import FaultError, absent, check_content, damaged, fault, opened
from deploytui.artifact.tensorrt import read_tensorrt
from deploytui.artifact.tokenizer import read_tokenizer
from deploytui.artifact.weights import file_size
from deploytui.record.facts import Artifact

PROJECTORS = ("mmproj", "clip")
MOST_NAMED = 8


def read_model(path: Path) -> ModelFacts:
    """The model at `path`; what is wrong with it is in its faults, nothing raises."""
    try:
        return _read(path)
    except FaultError as error:
        return ModelFacts(path=str(path), faults=(error.failure,))
    except (OSError, ValueError, RecursionError) as error:
        return ModelFacts(path=str(path), faults=(damaged(path, f"{type(error).__name__}: {error}").failure,))


def _read(path: Path) -> ModelFacts:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise absent(path) from error
    except (OSError, ValueError):
        with opened(path):  # says in words why not
            raise
    return _folder(path) if stat.S_ISDIR(mode) else _file(path)


def _file(path: Path) -> ModelFacts:
    try:
        with opened(path) as (file, size):
            check_content(path, file.read(512), size)
    except FaultError as error:
        kind = SUFFIXES.get(path.suffix.lower())
        return ModelFacts(path=str(path), format=kind, bytes=file_size(path), faults=(error.failure,))
    match format_of(path):
        case "gguf":
            return read_gguf_model(path)
        case "safetensors" | "pytorch" as kind:
            return read_checkpoint(path.parent, kind, path)
        case "onnx":
            return replace(read_onnx(path), whole=False)
        case "tensorrt":
            return replace(read_tensorrt(path.parent), path=str(path), whole=False)
        case _:
            raise fault(
                "unsupported_format",
                f"Nothing shows what {path.name} is.",
                "It has neither a model format's first bytes nor its ending.",
                "Name a GGUF file, or a folder with a model.",
            )


def _folder(path: Path) -> ModelFacts:
    match format_of(path):
        case "gguf":
            return _gguf_folder(path)
        case "safetensors" | "pytorch" as kind:
            return read_checkpoint(path, kind)
        case "onnx":
            return _with_tokenizer(read_onnx(path), path)
        case "tensorrt":
            return _with_tokenizer(read_tensorrt(path), path)
        case _:
            return _nothing(path)


def _with_tokenizer(facts: ModelFacts, folder: Path) -> ModelFacts:
    tokenizer, faults = read_tokenizer(folder)
    return replace(facts, tokenizer=tokenizer, files=list_files(folder), faults=(*facts.faults, *faults))


def _gguf_folder(folder: Path) -> ModelFacts:
    """The one model in a folder; several are for the profile to choose from."""
    firsts = {shards_of(file)[0] for file in folder.glob("*.gguf")}
    models = sorted(first for first in firsts if not first.name.lower().startswith(PROJECTORS)) or sorted(firsts)
    if len(models) == 1:
        return read_gguf_model(models[0])
    names = ", ".join(model.name for model in models[:MOST_NAMED])
    what = f"{folder.name or folder.absolute().name} holds {len(models)} GGUF models."
    failure = fault("invalid_config", what, f"They are {names}.", "Name one file with model.").failure
    return ModelFacts(path=str(folder), format="gguf", files=list_files(folder), faults=(failure,))


def _nothing(folder: Path) -> ModelFacts:
    if file_size(folder / CONFIG) is not None:
        return replace(read_checkpoint(folder, "safetensors"), format=None, faults=(no_weights(folder),))
    what = f"Nothing in {folder.name or folder.absolute().name} shows a model."
    why = "It has no file that ends as weights do, and no genai_config.json."
    raise fault("unsupported_format", what, why, "Name the folder with the model's weights.")


def artifact_of(facts: ModelFacts) -> Artifact:
    """What the record keeps of a model."""
    return Artifact(
        path=facts.path,
        format=facts.format,
        quantization=facts.quantization,
        bytes=facts.bytes,
        architecture=facts.architecture,
        context_length=facts.context_length,
        dtype=facts.dtype,
        parameters=facts.parameters,
        mix=facts.mix,
        custom_code=facts.custom_code,
        pickled=facts.pickled,
        tokenizer_sha256=facts.tokenizer.sha256,
        template_sha256=facts.tokenizer.template_sha256,
    )
