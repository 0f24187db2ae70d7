"""What a hub's model is, without its weights: the hub's listing, and the small files that describe it."""

import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread
from msgspec.structs import replace

from deploytui.artifact.checkpoint import read_checkpoint
from deploytui.artifact.facts import FileFact, ModelFacts, OnnxFacts
from deploytui.artifact.format import SUFFIXES
from deploytui.artifact.hub import HubDownload, HubRequest, ask_hub, fetch_hub
from deploytui.artifact.hub_files import HubFile, HubModel
from deploytui.artifact.model import read_model
from deploytui.artifact.onnx import read_onnx
from deploytui.artifact.reading import FaultError, read_json
from deploytui.artifact.tensorrt import read_tensorrt
from deploytui.artifact.tokenizer import read_tokenizer
from deploytui.artifact.weights import Weights

DESCRIBING = frozenset(
    {
        *("config.json", "params.json", "genai_config.json"),
        *("hf_quant_config.json", "quantize_config.json", "quant_config.json"),
        *("model.safetensors.index.json", "pytorch_model.bin.index.json"),
        *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt"),
        *("chat_template.jinja", "chat_template.json", "adapter_config.json"),
    }
)
LARGEST = 64 << 20
"""A file that is larger describes nothing [bytes]."""

WEIGHTS_NOTE = "Read from the hub's listing and the files that describe the model; its weights were not looked into."


async def remote_facts(model: HubModel, revision: str | None, own_cache: Path) -> ModelFacts:
    """The facts of a hub's model; a fault says why the hub told nothing, or that it is offline.

    A model that is in the client's cache is read there, as any folder. Nothing is left in a cache that was not there.
    """
    answer = await ask_hub(HubRequest(model=model, revision=revision), own_cache)
    if answer.download is None:
        return ModelFacts(path=model.repo, faults=(answer.failure,) if answer.failure else (), notes=answer.notes)
    download = answer.download
    if download.is_here:
        facts = await anyio.to_thread.run_sync(read_model, download.path)
        return replace(facts, notes=(*answer.notes, *facts.notes))
    with tempfile.TemporaryDirectory(prefix="deploytui-inspect-") as scratch:
        small = _describing(download, Path(scratch))
        failure = await fetch_hub(small, Path(scratch), lambda _done, _whole: None)
        if failure is not None:
            return ModelFacts(path=model.repo, faults=(failure,), notes=answer.notes)
        facts = await anyio.to_thread.run_sync(listed_facts, download, small.path)
    return replace(facts, path=f"{model.repo}@{download.commit}", notes=(*answer.notes, *facts.notes, WEIGHTS_NOTE))


def _describing(download: HubDownload, cache: Path) -> HubDownload:
    files = tuple(
        file
        for file in download.files
        if _is_beside(file, download) and PurePosixPath(file.path).name in DESCRIBING and (file.bytes or 0) <= LARGEST
    )
    size = sum(file.bytes or 0 for file in files)
    env = {**download.env, "HF_HUB_CACHE": str(cache)}
    return replace(download, files=files, cache=str(cache), env=env, fetched_bytes=size, bytes=size)


def _is_beside(file: HubFile, download: HubDownload) -> bool:
    """Whether a file lies in the model's folder; of a single-file model the repository's root counts."""
    parent = str(PurePosixPath(file.path).parent)
    return parent in (".", download.model)


def listed_facts(download: HubDownload, folder: Path) -> ModelFacts:
    """The facts in a folder of describing files, with the weights as the listing has them."""
    weights = [file for file in download.files if PurePosixPath(file.path).suffix in SUFFIXES]
    kinds = {SUFFIXES[PurePosixPath(file.path).suffix] for file in weights}
    kind = next((kind for kind in ("safetensors", "onnx", "gguf", "tensorrt", "pytorch") if kind in kinds), None)
    files = tuple(_fact(file) for file in download.files)
    size = _sum(file for file in weights if SUFFIXES[PurePosixPath(file.path).suffix] == kind)
    return replace(_by_format(folder, kind, size), files=files, bytes=size)


def _by_format(folder: Path, kind: str | None, size: int | None) -> ModelFacts:
    match kind:
        case "safetensors" | "pytorch":
            return read_checkpoint(folder, kind, weights=Weights(bytes=size, parameters=_parameters(folder)))
        case "onnx":
            facts = replace(read_onnx(folder), faults=(), parameters=None, tokenizer=read_tokenizer(folder)[0])
            return replace(facts, onnx=OnnxFacts(genai=facts.onnx is not None and facts.onnx.genai))
        case "tensorrt":
            facts = read_tensorrt(folder)
            return replace(facts, faults=tuple(fault for fault in facts.faults if fault.kind == "corrupt"))
        case _:
            return ModelFacts(path=str(folder), format=kind)


def _parameters(folder: Path) -> int | None:
    """As the index counts them; None where it does not."""
    try:
        told = read_json(folder / "model.safetensors.index.json").get("metadata")
    except FaultError:
        return None
    count = told.get("total_parameters") if isinstance(told, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None


def _sum(files: Iterable[HubFile]) -> int | None:
    sizes = [file.bytes for file in files]
    return None if None in sizes or not sizes else sum(size for size in sizes if size is not None)


def _fact(file: HubFile) -> FileFact:
    return FileFact(path=file.path, bytes=file.bytes or 0, sha256=file.sha256, declared=file.sha256 is not None)
