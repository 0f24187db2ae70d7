import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.gguf import GgufHeader, header_of, read_gguf


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, data: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + data


NAMES = pair("tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"))
NUMBERS = pair("scores", 9, struct.pack("<IQ", 6, 3) + bytes(12))
NESTED = pair("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 1) + bytes(4))
PAIRS = (
    pair("general.architecture", 8, text("llama")),
    NAMES,
    NUMBERS,
    NESTED,
    pair("llama.context_length", 4, struct.pack("<I", 8192)),
    pair("general.file_type", 4, struct.pack("<I", 15)),
)


def gguf(*pairs: bytes, version: int = 3, tensors: int = 272, count: int | None = None) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs) if count is None else count)
    return head + b"".join(pairs)


def told(data: bytes) -> GgufHeader:
    return header_of(io.BytesIO(data))


def test_a_header_tells_architecture_context_and_quantisation() -> None:
    assert told(gguf(*PAIRS)) == GgufHeader(
        version=3, architecture="llama", context_length=8192, quantization="Q4_K_M", tensor_count=272
    )


def test_the_order_of_the_keys_does_not_matter() -> None:
    assert told(gguf(*reversed(PAIRS))) == told(gguf(*PAIRS))


def test_a_large_vocabulary_behind_the_facts_is_not_read() -> None:
    facts = (PAIRS[0], PAIRS[4], PAIRS[5])
    cut = gguf(*facts, NAMES[:20], count=4)
    assert told(cut).fault is None


def test_a_header_without_a_file_type_keeps_the_rest() -> None:
    header = told(gguf(*PAIRS[:5]))
    assert header.architecture == "llama"
    assert header.quantization is None
    assert header.fault is None


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "the file is empty"),
        (b"GG", "the file starts with b'GG'"),
        (b"????" + bytes(100), "not b'GGUF'"),
        (gguf(*PAIRS, version=99), "version 99"),
        (gguf(*PAIRS)[:60], "ends inside its header"),
        (gguf(count=1 << 40), "claims 1099511627776 key-value pairs"),
        (gguf(struct.pack("<Q", 1 << 60), count=1), "a text of"),
        (gguf(pair("odd", 77, b"")), "unknown type 77"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 77, 1))), "unknown type 77"),
    ],
)
def test_a_malformed_file_is_a_fault_in_words(data: bytes, fault: str) -> None:
    assert fault in (told(data).fault or "")


def test_what_was_read_before_a_fault_is_kept() -> None:
    header = told(gguf(PAIRS[0], pair("odd", 77, b"")))
    assert header.architecture == "llama"
    assert header.tensor_count == 272
    assert header.fault is not None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    told(data)
    told(gguf(count=3) + data)


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert "No such file" in (read_gguf(tmp_path / "nothing.gguf").fault or "")
