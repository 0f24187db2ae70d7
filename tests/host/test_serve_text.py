"""How the shared door makes text of tokens: nothing is lost, nothing is shown twice, nothing is taken back."""

import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.host.toys import HOST

if TYPE_CHECKING:
    from deploytui.host import serve_answer, serve_backend
else:
    sys.path.insert(0, str(HOST))
    import serve_answer
    import serve_backend

    sys.path.remove(str(HOST))

TEXTS = st.text(st.sampled_from("ab\né€👍 "), max_size=24)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Data in pieces of these sizes, the rest as the last one."""
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


def shown(pieces: list[bytes], stops: tuple[str, ...]) -> str:
    text = serve_answer.Text(stops)
    parts = []
    for piece in pieces:
        parts.append(text.add(piece))
        if text.stopped:
            return "".join(parts)
    return "".join((*parts, text.add(b"", last=True)))


@given(TEXTS, st.lists(st.integers(0, 5), max_size=12))
def test_bytes_cut_anywhere_become_the_same_text(said: str, sizes: list[int]) -> None:
    assert shown(cut(said.encode(), sizes), ()) == said


@given(TEXTS, st.lists(st.integers(0, 5), max_size=12), TEXTS.filter(bool))
def test_a_stop_text_ends_it_at_its_first_place_wherever_tokens_are_cut(said: str, sizes: list[int], stop: str) -> None:
    assert shown(cut(said.encode(), sizes), (stop,)) == said.partition(stop)[0]


@given(TEXTS, st.lists(st.integers(0, 5), max_size=12))
def test_what_may_become_a_stop_text_is_held_back_and_nothing_else(said: str, sizes: list[int]) -> None:
    text = serve_answer.Text(("ab",))
    for piece in cut(said.encode(), sizes):
        text.add(piece)
        assert text.held in ("", "a")


@given(TEXTS, TEXTS)
def test_a_tokenizer_that_decodes_whole_sequences_gives_each_character_once(before: str, said: str) -> None:
    detokenizer = serve_backend.Detokenizer(lambda ids: bytes(ids).decode("utf-8", "replace"), list(before.encode()))
    pieces = [detokenizer.piece(byte) for byte in said.encode()]
    assert "".join((*pieces, detokenizer.rest())) == said
    assert not any("\ufffd" in piece for piece in pieces)


@given(st.binary(max_size=40))
def test_bytes_that_are_no_text_are_shown_as_broken_within_a_few_tokens(data: bytes) -> None:
    detokenizer = serve_backend.Detokenizer(lambda ids: bytes(ids).decode("utf-8", "replace"))
    for byte in data:
        detokenizer.piece(byte)
        assert len(detokenizer.open) < serve_backend.LONGEST_CHARACTER
    detokenizer.rest()


def test_a_space_in_front_of_the_first_word_is_kept() -> None:
    words = {1: "Once", 2: " upon", 3: " a"}

    def decode(ids: list[int]) -> str:
        return "".join(words[one] for one in ids).lstrip(" ")

    detokenizer = serve_backend.Detokenizer(decode, [1])
    assert [detokenizer.piece(2), detokenizer.piece(3)] == [" upon", " a"]
