"""The chunk stamps sidecar."""

import io
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.stamps import CLOCKS, MAGIC, BadStamps, RequestStamps, pack_stamps, unpack_stamps

TIMES = st.integers(-(2**63), 2**63 - 1)
ENTRIES = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.sampled_from(CLOCKS), TIMES, st.lists(TIMES, max_size=5)), max_size=5
)


def packed(entries: list[tuple[int, str, int, list[int]]]) -> bytes:
    return MAGIC + b"".join(pack_stamps(id_, clock, sent, array("q", times)) for id_, clock, sent, times in entries)


@given(entries=ENTRIES)
def test_stamps_come_back_as_they_were(entries: list[tuple[int, str, int, list[int]]]) -> None:
    found = unpack_stamps(packed(entries))
    assert [(*entry[:3], list(entry.stamps)) for entry in found] == entries


def test_the_layout_is_as_documented() -> None:
    content = pack_stamps(258, "kernel", 3, array("q", [1, -1]))
    header = [2, 1, 0, 0, 2, 0, 0, 0, 1, *[0] * 7, 3, *[0] * 7]
    assert content == bytes([*header, 1, *[0] * 7, *[255] * 8])
    assert len(header) == 24


def test_a_file_is_read_entry_by_entry() -> None:
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    one = 24 + 8 * 1000
    file = Counted(packed([(k, "user", k, [k] * 1000) for k in range(50)]))
    entries = unpack_stamps(file)
    assert next(entries) == RequestStamps(0, "user", 0, array("q", [0] * 1000))
    assert file.taken == len(MAGIC) + one
    assert len(list(entries)) == 49


@given(cut=st.integers(1, 24 + 16 - 1))
def test_an_entry_cut_off_at_the_end_is_left_out(cut: int) -> None:
    content = packed([(1, "user", 0, [1, 2]), (2, "mixed", 0, [3, 4])])
    assert [entry.id for entry in unpack_stamps(content[:-cut])] == [1]


@pytest.mark.parametrize("content", [b"something", b"", MAGIC[:5]])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(BadStamps):
        list(unpack_stamps(content))


def test_another_layout_is_named() -> None:
    with pytest.raises(BadStamps, match="DTSTAMP1"):
        list(unpack_stamps(b"DTSTAMP1" + bytes(16)))


def test_an_unknown_clock_is_named() -> None:
    content = bytearray(packed([(5, "user", 0, [])]))
    content[len(MAGIC) + 8] = 9
    with pytest.raises(BadStamps, match=r"request 5 .* clock 9"):
        list(unpack_stamps(bytes(content)))


def test_a_header_that_claims_more_than_there_can_be_is_refused_before_it_takes_memory() -> None:
    content = packed([(5, "user", 0, [])])[: len(MAGIC) + 4] + b"\xff\xff\xff\xff" + bytes(16)
    with pytest.raises(BadStamps, match="4294967295"):
        list(unpack_stamps(content))
