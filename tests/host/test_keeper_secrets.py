"""Secrets in an engine's output, however the reads cut them."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deploytui.host.keeper_log import HIDDEN, Log, Mask

SECRETS = ("swordfish", "sword-and-fish")


def fed(pieces: list[bytes]) -> bytes:
    mask = Mask(SECRETS)
    return b"".join(mask.feed(piece) for piece in pieces) + mask.rest()


@given(
    words=st.lists(st.sampled_from([b"swordfish", b"sword-and-fish", b"sword", b"fi", b" ", b"x\n"]), max_size=12),
    places=st.lists(st.integers(0, 120), max_size=8),
)
def test_no_cut_lets_a_secret_through(words: list[bytes], places: list[int]) -> None:
    data = b"".join(words)
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    out = fed([data[start:end] for start, end in pairwise(edges)])
    assert not any(secret.encode() in out for secret in SECRETS)
    assert out == fed([data])


def test_what_is_no_secret_is_written_as_it_came() -> None:
    assert fed([b"plain ", b"sw", b"im"]) == b"plain swim"
    assert Mask(()).feed(b"sword") == b"sword"


def test_a_log_holds_a_sign_in_its_place_and_loses_no_end(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "head"), str(tmp_path / "tail"), SECRETS)
    for piece in (b"key sword", b"fish; ends with sword"):
        log.add(piece)
    log.end()
    assert (tmp_path / "head").read_bytes() == b"key " + HIDDEN + b"; ends with sword"
