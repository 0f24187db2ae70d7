"""The facts of a model as text: one aligned line a fact, then the engines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from deploytui.artifact.facts import ModelFacts
from deploytui.check.inspect_json import kv_cache
from deploytui.check.loaders import Loader
from deploytui.check.text import failure_details, plain, section, table
from deploytui.check.text import size as large_size
from deploytui.record.facts import Failure

SHORT_SHA256 = 12
MOST_FILES = 12
INSTALLED = "Which of them are installed here: deploytui doctor."


def size(count: int) -> str:
    """A number of bytes; small ones as they are."""
    return f"{count:,} bytes" if count < 10_000 else f"{count / 1024:.1f} KiB" if count < 1 << 20 else large_size(count)


def inspected_text(facts: ModelFacts, loaders: Sequence[Loader]) -> str:
    """Lines with a newline at the end of each; foreign control characters are made visible."""
    return "".join(f"{line}\n" for line in _lines(facts, loaders))


def _lines(facts: ModelFacts, loaders: Sequence[Loader]) -> Iterator[str]:
    kind = " · ".join(word for word in (facts.format, facts.architecture, facts.quantization or facts.dtype) if word)
    unread = not kind and bool(facts.faults)
    yield plain(f"{facts.path}: can't be told" if unread else f"{name_of(facts.path)}: {kind or 'unknown'}")
    if not unread:
        yield from (f"  {line}" for line in table([(name, plain(value)) for name, value in _rows(facts)]))
    yield from _faults(facts.faults, "" if unread else "Nothing can load it as it is:")
    yield from section("Notes", facts.notes)
    yield from section("Files", _files(facts))
    if not facts.faults:
        rows = [(loader.title, plain(_said(loader))) for loader in loaders]
        yield from section("Engines that can load it", (*table(rows), INSTALLED))


def name_of(path: str) -> str:
    """The last part of a path; of `.` that of the folder it stands for."""
    return Path(path).name or Path(path).absolute().name or path


def _faults(faults: Sequence[Failure], title: str) -> Iterator[str]:
    if faults and title:
        yield ""
        yield title
    for fault in faults:
        yield f"  {fault.kind}: {plain(fault.what)}"
        yield from (f"    {line}" for line in failure_details(fault))


def _said(loader: Loader) -> str:
    if loader.failure is not None:
        return f"no: {_shortly(loader)} {loader.failure.fix}".rstrip()
    return f"yes, after preparing it: {loader.preparation}" if loader.preparation else "yes"


def _shortly(loader: Loader) -> str:
    """Why not, without the names of engine and model that stand there already."""
    assert loader.failure is not None, "only a failure has a reason"
    head, sign, reason = loader.failure.what.partition(": ")
    return reason if sign and reason and head.startswith(f"{loader.title} can't load ") else loader.failure.what


def _rows(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    """Name and value of each fact that is told."""
    yield "path", facts.path
    if facts.parameters is not None:
        yield "parameters", f"{facts.parameters:,}"
    if facts.bytes is not None:
        yield "weights", f"{size(facts.bytes)} ({facts.bytes:,} bytes)" if facts.bytes >= 10_000 else size(facts.bytes)
    if facts.mix:
        yield "types", ", ".join(f"{name} {size(count)}" for name, count in facts.mix.items())
    unread = bool(facts.faults) or not facts.files
    if facts.quantization or facts.dtype or not unread:
        yield "quantisation", facts.quantization or (f"none, {facts.dtype}" if facts.dtype else "unknown")
    if facts.experts:
        yield "experts", f"{facts.experts}, {facts.active_experts or 'unknown'} for each token"
    if facts.context_length or not unread:
        yield "context", f"{facts.context_length:,} tokens" if facts.context_length else "unknown"
    yield from _attention_rows(facts)
    if facts.vocabulary or not unread:
        yield "vocabulary", f"{facts.vocabulary:,} tokens" if facts.vocabulary else "unknown"
    yield from _tokenizer_rows(facts, unread=unread)
    yield from _build_rows(facts)
    if facts.custom_code:
        yield "own code", "config.json points at Python code that comes with the model"
    if facts.pickled:
        yield "pickled", "loading the weights can run any code in them"


def _attention_rows(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    told = facts.attention
    if told.layers is not None:
        latent = f", latent of {told.kv_lora_rank} + {told.rope_head_dim or 0}" if told.kv_lora_rank else ""
        heads = (
            f"{told.heads or 'unknown'} heads, {told.kv_heads or 'unknown'} KV heads of {told.head_dim or 'unknown'}"
        )
        yield "attention", f"{told.layers} layers with keys and values, {heads}{latent}"
    if told.sliding_window:
        count = "some" if told.sliding_layers is None else f"{told.sliding_layers}"
        yield "window", f"{count} layers see the last {told.sliding_window:,} tokens"
    cache = kv_cache(facts)
    each, whole = cache["bytes_per_token"], cache["full_context_bytes"]
    if each is not None:
        sliding = cache["sliding_bytes_per_token"]
        window = f", and {sliding / 1024:,.1f} KiB within the window" if sliding else ""
        full = f"; {size(whole)} for a whole context" if whole else ""
        yield "KV cache", f"{each / 1024:,.1f} KiB a token{window} at {cache['value_bytes'] * 8:g} bits{full}"


def _tokenizer_rows(facts: ModelFacts, *, unread: bool) -> Iterator[tuple[str, str]]:
    """Tokenizer and template; that there is none is told only of files that could be read."""
    told = facts.tokenizer
    if told.kind is None and not unread:
        yield "tokenizer", "none"
    elif told.kind is not None:
        count = f", {told.vocabulary:,} tokens" if told.vocabulary else ""
        yield "tokenizer", f"{told.kind}{count}{_digest(told.sha256)}"
    if told.template_sha256 or not unread:
        yield "chat template", f"yes{_digest(told.template_sha256)}" if told.template_sha256 else "none"


def _digest(sha256: str | None) -> str:
    return f", sha256 {sha256[:SHORT_SHA256]}" if sha256 else ""


def _build_rows(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    if facts.onnx is not None:
        yield "opset", ", ".join(f"{domain} {version}" for domain, version in facts.onnx.opset.items()) or "unknown"
        yield (
            "operators",
            ", ".join(f"{len(names)} of {domain}" for domain, names in facts.onnx.operators.items()) or "none",
        )
        yield "providers", ", ".join(facts.onnx.providers) or "CPU"
    if (built := facts.tensorrt) is not None:
        yield "built by", f"TensorRT-LLM {built.version or 'unknown'}"
        yield "built for", built.built_for or "a GPU it does not name"
        yield (
            "parallel",
            f"tensor {built.tensor_parallel or 'unknown'} × pipeline {built.pipeline_parallel or 'unknown'}",
        )
        yield "limits", f"{built.max_seq_len or 'unknown'} tokens, {built.max_batch_size or 'unknown'} sequences"


def _files(facts: ModelFacts) -> Iterator[str]:
    largest = sorted(facts.files, key=lambda file: -file.bytes)
    rows = [(size(file.bytes), file.path) for file in largest[:MOST_FILES]]
    yield from table(rows)
    if (more := len(largest) - MOST_FILES) > 0:
        yield f"and {more} more, {size(sum(file.bytes for file in largest[MOST_FILES:]))}"
