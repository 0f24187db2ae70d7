"""A GGUF model: its files, what their headers tell, and whether they are whole."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from deploytui.artifact.attention import sliding_layers
from deploytui.artifact.facts import Attention, FileFact, ModelFacts, TokenizerFacts
from deploytui.artifact.gguf import KNOWN_VERSIONS, GgufHeader, Tensor, alignment, read_gguf
from deploytui.artifact.gguf_types import PLAIN, QUANTIZATIONS, TENSOR_TYPES
from deploytui.artifact.reading import FETCH_AGAIN, FaultError, absent, check_content, damaged, opened
from deploytui.artifact.tokenizer import kept_template, text_sha256
from deploytui.artifact.weights import by_size, file_size
from deploytui.record.facts import Failure

SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")
MOST_SHARDS = 1000
OTHER_KINDS = {"clip": "a vision projector", "mmproj": "a vision projector", "adapter": "a LoRA adapter"}


class GgufFile(Struct, frozen=True):
    """One file with its header."""

    path: Path
    header: GgufHeader


def read_gguf_model(path: Path) -> ModelFacts:
    """The model of which `path` is the only or one file."""
    expected = shards_of(path)
    files = tuple(GgufFile(shard, read_gguf(shard)) for shard in expected if file_size(shard) is not None)
    first = next((file.header for file in files if file.header.pairs), GgufHeader())
    mix = Counter[str]()
    for file in files:
        mix.update(_mix(file.header))
    kind = QUANTIZATIONS.get(told) if (told := first.number("general.file_type")) is not None else None
    largest = next(iter(by_size(mix)), None)
    shown = kind or largest
    architecture = first.text("general.architecture")
    return ModelFacts(
        path=str(expected[0]),
        format="gguf",
        architecture=architecture,
        model_type=architecture,
        parameters=_parameters(files) if len(files) == len(expected) else None,
        bytes=sum(file.header.size or 0 for file in files) or None,
        dtype=PLAIN.get(shown or ""),
        quantization=None if shown in PLAIN else shown,
        mix=by_size(mix),
        context_length=first.number(f"{architecture}.context_length"),
        attention=_attention(first, architecture),
        vocabulary=_vocabulary(first, architecture),
        experts=first.number(f"{architecture}.expert_count"),
        active_experts=first.number(f"{architecture}.expert_used_count"),
        tied=_tied(files),
        files=tuple(FileFact(path=file.path.name, bytes=file.header.size or 0) for file in files),
        tokenizer=_tokenizer(first),
        faults=tuple(_faults(path, expected, files)),
        notes=tuple(_notes(files)),
    )


def shards_of(path: Path) -> tuple[Path, ...]:
    """All files the model should have, in order: by the number in the file's name."""
    match = SHARD.match(path.name)
    count = int(match["count"]) if match else 0
    if match is None or not 0 < count <= MOST_SHARDS:
        return (path,)
    return tuple(
        path.with_name(f"{match['stem']}-{number:05}-of-{match['count']}.gguf") for number in range(1, count + 1)
    )


def tensor_bytes(tensor: Tensor) -> int | None:
    """What a tensor takes [bytes]; None when its type is newer than this list."""
    found = TENSOR_TYPES.get(tensor.kind)
    return None if found is None else math.prod(tensor.shape) // found[1] * found[2]


def _mix(header: GgufHeader) -> Counter[str]:
    mix = Counter[str]()
    for tensor in header.tensors:
        if (size := tensor_bytes(tensor)) is not None:
            mix[TENSOR_TYPES[tensor.kind][0]] += size
    return mix


def _parameters(files: tuple[GgufFile, ...]) -> int | None:
    tensors = [tensor for file in files for tensor in file.header.tensors]
    return sum(math.prod(tensor.shape) for tensor in tensors) if tensors else None


def _tied(files: tuple[GgufFile, ...]) -> bool | None:
    names = {tensor.name for file in files for tensor in file.header.tensors}
    return "output.weight" not in names if "token_embd.weight" in names else None


def _vocabulary(header: GgufHeader, architecture: str | None) -> int | None:
    told = header.number(f"{architecture}.vocab_size")
    tokens = header.listed("tokenizer.ggml.tokens")
    return told if told is not None else tokens.count if tokens else None


def _tokenizer(header: GgufHeader) -> TokenizerFacts:
    template = header.text("tokenizer.chat_template")
    tokens = header.listed("tokenizer.ggml.tokens")
    return TokenizerFacts(
        kind=header.text("tokenizer.ggml.model"),
        vocabulary=tokens.count if tokens else None,
        sha256=header.tokenizer_sha256,
        template_sha256=text_sha256(template) if template else None,
        template=kept_template(template),
    )


def _attention(header: GgufHeader, architecture: str | None) -> Attention:
    def number(name: str) -> int | None:
        return header.number(f"{architecture}.{name}")

    layers, kv_heads = _key_value_layers(header, architecture)
    heads, hidden = number("attention.head_count"), number("embedding_length")
    rank = number("attention.kv_lora_rank")
    window = number("attention.sliding_window") or None
    return Attention(
        layers=layers,
        heads=heads,
        kv_heads=kv_heads if kv_heads is not None else heads,
        head_dim=number("attention.key_length") or (hidden // heads if hidden and heads else None),
        hidden_size=hidden,
        sliding_window=window,
        sliding_layers=_sliding(header, architecture, layers) if window else None,
        kv_lora_rank=rank,
        rope_head_dim=number("rope.dimension_count") if rank else None,
    )


def _key_value_layers(header: GgufHeader, architecture: str | None) -> tuple[int | None, int | None]:
    """Layers with keys and values, and their KV heads; both are lists where layers differ."""
    layers = header.number(f"{architecture}.block_count")
    key = f"{architecture}.attention.head_count_kv"
    told = header.listed(key)
    if told is None or told.values is None:
        return layers, header.number(key)
    counts = [int(count) for count in told.values if count]
    return len(counts), max(counts, default=None)


def _sliding(header: GgufHeader, architecture: str | None, layers: int | None) -> int | None:
    key = f"{architecture}.attention.sliding_window_pattern"
    told = header.listed(key)
    if told is not None and told.values is not None:
        return sum(bool(value) for value in told.values)
    return sliding_layers(architecture, layers, header.number(key))


def _notes(files: tuple[GgufFile, ...]) -> Iterator[str]:
    kinds = {t.kind for file in files for t in file.header.tensors if t.kind not in TENSOR_TYPES}
    if kinds:
        yield f"Tensor types {', '.join(map(str, sorted(kinds)))} are newer than this version knows: sizes unchecked."


def _faults(asked: Path, expected: tuple[Path, ...], files: tuple[GgufFile, ...]) -> Iterator[Failure]:
    present = {file.path for file in files}
    for path in expected:
        if path not in present:
            yield absent(path).failure
    for file in files:
        failure = _header_fault(file) or _extent_fault(file)
        if failure is not None:
            yield failure
    if files and not any(file.header.fault for file in files):
        yield from _kind_faults(files[0])
        yield from _split_faults(asked, expected, files)


def _header_fault(file: GgufFile) -> Failure | None:
    header, name = file.header, file.path.name
    if header.fault is None:
        return None
    if header.unknown_version:
        known = f"versions {' and '.join(map(str, KNOWN_VERSIONS))} are known"
        what = f"{name} is of GGUF version {header.version}; {known}."
        if "big-endian" in header.fault:
            what = f"{name} is a GGUF file for big-endian machines."
        fix = "Convert the model again with today's llama.cpp."
        return Failure(kind="unsupported_format", what=what, why=header.fault, fix=fix)
    try:
        with opened(file.path) as (opened_file, size):
            check_content(file.path, opened_file.read(512), size)
    except FaultError as error:
        return error.failure
    return damaged(file.path, header.fault).failure


def _extent_fault(file: GgufFile) -> Failure | None:
    """A tensor that is not where it should be, or lies behind the end of the file."""
    header, step, expected = file.header, alignment(file.header.pairs), 0
    if header.fault or header.data_start is None or header.size is None:
        return None
    for tensor in header.tensors:
        size = tensor_bytes(tensor)
        if size is None:
            return None
        if tensor.offset != expected:
            why = f"tensor '{tensor.name}' starts at {tensor.offset}, not at {expected}"
            return damaged(file.path, why).failure
        if header.data_start + tensor.offset + size > header.size:
            return _truncated(file, tensor, header.data_start + tensor.offset + size)
        expected += -(-size // step) * step
    return None


def _truncated(file: GgufFile, tensor: Tensor, needed: int) -> Failure:
    return Failure(
        kind="corrupt",
        what=f"{file.path.name} is cut off: it has {file.header.size} bytes, and a tensor ends at {needed}.",
        why=f"tensor '{tensor.name}' data is not within the file bounds",
        fix=FETCH_AGAIN,
    )


def _kind_faults(file: GgufFile) -> Iterator[Failure]:
    header, name = file.header, file.path.name
    architecture = header.text("general.architecture")
    if not architecture:
        what = f"{name} names no architecture: it is no text model, or it is damaged."
        yield Failure(kind="unsupported_arch", what=what, fix="Name the file of a text model.")
    for word in (architecture, header.text("general.type")):
        if word in OTHER_KINDS:
            what = f"{name} is {OTHER_KINDS[word]}, not a text model."
            yield Failure(kind="unsupported_arch", what=what, fix="Name the file of the text model itself.")
            return


def _split_faults(asked: Path, expected: tuple[Path, ...], files: tuple[GgufFile, ...]) -> Iterator[Failure]:
    told = files[0].header.number("split.count") or 1
    if told != len(expected):
        what = f"{asked.name} says that it is one of {told} files, and its name says {len(expected)}."
        yield Failure(kind="corrupt", what=what, fix="Give the files the names they had: NAME-00001-of-0000N.gguf.")
        return
    tensors = files[0].header.number("split.tensors.count")
    total = sum(len(file.header.tensors) for file in files)
    if len(files) == len(expected) > 1 and tensors is not None and tensors != total:
        what = f"The {told} files of {asked.name} hold {total} tensors, and the first says {tensors}."
        yield Failure(kind="corrupt", what=what, why="The files are not of one model.", fix="Fetch them again.")
