import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.gguf import GgufHeader, Listed, header_of, read_gguf
from tests.artifact.build import NAMES, PAIRS, gguf, number, pair, words

__all__ = ["PAIRS", "gguf"]


def told(data: bytes) -> GgufHeader:
    return header_of(io.BytesIO(data), len(data))


def test_a_header_tells_its_metadata_and_tensors() -> None:
    header = told(gguf(*PAIRS))
    assert (header.version, header.tensor_count, header.fault) == (3, 2, None)
    assert header.text("general.architecture") == "llama"
    assert header.number("llama.context_length") == 8192
    assert header.pairs["tokenizer.ggml.tokens"] == Listed(2)
    assert [(tensor.name, tensor.shape) for tensor in header.tensors] == [
        ("token_embd.weight", (32, 4)),
        ("output_norm.weight", (32,)),
    ]


def test_the_order_of_the_keys_does_not_matter() -> None:
    assert told(gguf(*reversed(PAIRS))).pairs == told(gguf(*PAIRS)).pairs


def test_a_short_list_of_numbers_is_kept_a_long_one_counted() -> None:
    short, long = (pair(key, 9, struct.pack("<IQ", 0, count) + bytes(count)) for key, count in (("s", 3), ("l", 900)))
    header = told(gguf(short, long))
    assert header.pairs == {"s": Listed(3, (0, 0, 0)), "l": Listed(900)}


def test_the_tokenizers_checksum_tells_tokenizers_apart_and_not_names() -> None:
    same = told(gguf(*PAIRS, words("general.name", "another")))
    other = told(gguf(*PAIRS, words("tokenizer.ggml.model", "gpt2")))
    assert told(gguf(*PAIRS)).tokenizer_sha256 == same.tokenizer_sha256 != other.tokenizer_sha256
    assert told(gguf(PAIRS[0])).tokenizer_sha256 is None


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "the file is empty"),
        (b"GG", "it begins 47 47, not with GGUF"),
        (b"????" + bytes(100), "not with GGUF"),
        (gguf(*PAIRS, version=99), "version 99"),
        (gguf(*PAIRS, version=3 << 24), "big-endian"),
        (gguf(*PAIRS)[:60], "ends inside its header"),
        (gguf(*PAIRS, body=False), "ends inside its header"),
        (gguf(count=1 << 40), "claims 1099511627776 key-value pairs"),
        (gguf(struct.pack("<Q", 1 << 60), count=1), "a text of"),
        (gguf(pair("odd", 77, b"")), "unknown type 77"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 77, 1))), "unknown type 77"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 8, 1 << 62)), body=False), "texts in an array"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 8, 9)), body=False), "ends inside its header"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 9, 1 << 20)), body=False), "unknown type 9"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 0, 1 << 62)), body=False), "an array claims"),
        (gguf(pair("odd", 9, struct.pack("<IQ", 9, 1) * 9)), "unknown type 9"),
        (gguf(*PAIRS, tensors=[("t", (1,) * 9, 0)]), "claims 9 dimensions"),
    ],
)
def test_a_malformed_file_is_a_fault_in_words(data: bytes, fault: str) -> None:
    assert fault in (told(data).fault or "")


def test_what_was_read_before_a_fault_is_kept() -> None:
    header = told(gguf(PAIRS[0], pair("odd", 77, b"")))
    assert header.text("general.architecture") == "llama"
    assert header.fault is not None


def test_a_file_cut_anywhere_in_its_header_is_told() -> None:
    whole = gguf(NAMES, number("n", 1))
    start = told(whole).data_start or 0
    assert [cut for cut in range(start - 31) if told(whole[:cut]).fault is None] == []
    assert told(whole[:start]).fault is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    told(data)
    told(gguf(count=3, body=False) + data)


@given(st.data())
def test_no_changed_byte_makes_it_raise(data: st.DataObject) -> None:
    whole = bytearray(gguf(*PAIRS))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    told(bytes(whole))


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert "Looked for" in (read_gguf(tmp_path / "nothing.gguf").fault or "")
