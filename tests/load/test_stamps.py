"""The chunk stamps sidecar."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.stamps import MAGIC, BadStamps, pack_stamps, unpack_stamps

ENTRIES = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)))


@given(entries=ENTRIES)
def test_stamps_come_back_as_they_were(entries: list[tuple[int, list[int]]]) -> None:
    content = MAGIC + b"".join(pack_stamps(number, array("q", stamps)) for number, stamps in entries)
    assert [(number, list(stamps)) for number, stamps in unpack_stamps(content)] == entries


def test_the_layout_is_as_documented() -> None:
    assert pack_stamps(258, array("q", [1, -1])) == bytes([2, 1, 0, 0, 2, 0, 0, 0, 1, *[0] * 7, *[255] * 8])


def test_an_entry_cut_off_at_the_end_is_left_out() -> None:
    content = MAGIC + pack_stamps(1, array("q", [1, 2])) + pack_stamps(2, array("q", [3, 4]))
    for cut in range(1, 24):
        assert [number for number, _ in unpack_stamps(content[:-cut])] == [1]


def test_other_bytes_are_refused() -> None:
    with pytest.raises(BadStamps):
        list(unpack_stamps(b"something"))
