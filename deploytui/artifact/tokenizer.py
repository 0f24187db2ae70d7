"""The tokenizer and chat template beside a model's weights."""

import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from deploytui.artifact.facts import TokenizerFacts
from deploytui.artifact.protobuf import ProtobufError, Walk
from deploytui.artifact.reading import FaultError, damaged, read_bytes, read_json
from deploytui.artifact.weights import file_size
from deploytui.record.facts import Failure

LONGEST_KEPT_TEMPLATE = 64 << 10

Reader = Callable[[Path, bytes], tuple[str | None, int | None]]
"""File and content → kind and vocabulary."""


def text_sha256(text: str) -> str:
    """The checksum of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def kept_template(template: str | None) -> str | None:
    """The template's text, if it is short enough to be kept."""
    return template if template and len(template) <= LONGEST_KEPT_TEMPLATE else None


def read_tokenizer(folder: Path) -> tuple[TokenizerFacts, tuple[Failure, ...]]:
    """What lies in a model's folder, and what is wrong with it."""
    faults: list[Failure] = []
    kind, vocabulary, digest = _tokenizer(folder, faults)
    template = _template(folder, faults)
    facts = TokenizerFacts(
        kind=kind,
        vocabulary=vocabulary,
        sha256=digest,
        template_sha256=text_sha256(template) if template else None,
        template=kept_template(template),
    )
    return facts, tuple(faults)


def _tokenizer(folder: Path, faults: list[Failure]) -> tuple[str | None, int | None, str | None]:
    for name, reader in READERS:
        path = folder / name
        if file_size(path) is None and not path.is_symlink():
            continue
        try:
            content = read_bytes(path)
            kind, vocabulary = reader(path, content)
            return kind, vocabulary, hashlib.sha256(content).hexdigest()
        except FaultError as error:
            faults.append(error.failure)
            return None, None, None
    return None, None, None


class _Model(Struct, frozen=True):
    type: Any = None
    vocab: Any = None
    merges: Raw = Raw()


class _TokenizerFile(Struct, frozen=True):
    model: _Model = _Model()
    added_tokens: Any = None


class _TekkenFile(Struct, frozen=True):
    config: dict[str, Any] = {}


_tokenizer_file = msgspec.json.Decoder(_TokenizerFile)
_tekken_file = msgspec.json.Decoder(_TekkenFile)
_vocabulary = msgspec.json.Decoder(dict[str, Any])


T = TypeVar("T")


def _decoded(decoder: msgspec.json.Decoder[T], path: Path, content: bytes) -> T:
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(path, str(error)) from error


def _tokenizer_json(path: Path, content: bytes) -> tuple[str | None, int | None]:
    found = _decoded(_tokenizer_file, path, content)
    kind, vocabulary = found.model.type, found.model.vocab
    named = kind if isinstance(kind, str) else _untold_kind(found.model)
    added = _added(found.added_tokens)
    if isinstance(vocabulary, dict):
        return named, len(vocabulary) + len(added - vocabulary.keys())
    if isinstance(vocabulary, list):
        names = {row[0] for row in vocabulary if isinstance(row, list) and row and isinstance(row[0], str)}
        return named, len(vocabulary) + len(added - names)
    return named, None


def _untold_kind(model: _Model) -> str:
    """Files of old name no type: with merges it is BPE."""
    return "BPE" if bytes(model.merges) else "Unigram" if isinstance(model.vocab, list) else "WordPiece"


def _added(tokens: Any) -> set[str]:
    rows = tokens if isinstance(tokens, list) else ()
    return {row["content"] for row in rows if isinstance(row, dict) and isinstance(row.get("content"), str)}


def _sentencepiece(path: Path, content: bytes) -> tuple[str | None, int | None]:
    walk = Walk(io.BytesIO(content), len(content))
    try:
        return "sentencepiece", sum(field.number == 1 for field in walk.fields(0, len(content)))
    except ProtobufError as error:
        raise damaged(path, str(error)) from error


def _vocab_json(path: Path, content: bytes) -> tuple[str | None, int | None]:
    return "BPE", len(_decoded(_vocabulary, path, content))


def _tekken(path: Path, content: bytes) -> tuple[str | None, int | None]:
    size = _decoded(_tekken_file, path, content).config.get("default_vocab_size")
    return "tekken", size if isinstance(size, int) else None


def _lines(kind: str) -> Reader:
    return lambda _, content: (kind, sum(1 for line in content.splitlines() if line))


READERS: tuple[tuple[str, Reader], ...] = (
    ("tokenizer.json", _tokenizer_json),
    ("tekken.json", _tekken),
    ("tokenizer.model", _sentencepiece),
    ("vocab.json", _vocab_json),
    ("vocab.txt", _lines("WordPiece")),
    ("tiktoken.model", _lines("tiktoken")),
    ("qwen.tiktoken", _lines("tiktoken")),
)
"""The first of these that is there is the tokenizer."""


def _template(folder: Path, faults: list[Failure]) -> str | None:
    """The chat template: in a file of its own, else in the tokenizer's configuration, else in the processor's."""
    try:
        own = folder / "chat_template.jinja"
        if file_size(own) is not None:
            return read_bytes(own, 4 << 20).decode("utf-8", errors="replace")
        for name in ("tokenizer_config.json", "chat_template.json"):
            path = folder / name
            if file_size(path) is not None and (told := template_in(read_json(path))):
                return told
    except FaultError as error:
        faults.append(error.failure)
    return None


def template_in(settings: Mapping[str, Any]) -> str | None:
    """The chat template in a tokenizer's configuration; of several the one named `default`."""
    match settings.get("chat_template"):
        case str(template):
            return template
        case [*rows]:
            named = {
                row["name"]: row["template"]
                for row in rows
                if isinstance(row, dict) and isinstance(row.get("name"), str) and isinstance(row.get("template"), str)
            }
            return named.get("default") or next(iter(named.values()), None)
        case _:
            return None
