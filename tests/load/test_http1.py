"""The response reader: framing, caps, what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.http1 import HEAD_CAP, LINE_CAP, ResponseReader
from tests.load.replay import cut

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(*reads: bytes, eof: bool = False) -> tuple[ResponseReader, bytes]:
    reader = ResponseReader()
    body = b"".join([reader.feed(data) for data in reads])
    if eof:
        reader.eof()
    return reader, body


def test_a_body_of_given_length_ends_with_it_and_keeps_the_connection() -> None:
    reader, body = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert body == b"hello"
    assert reader.over
    assert reader.reusable
    assert reader.head is not None
    assert reader.head.status == 200


def test_a_chunked_body_comes_without_its_framing() -> None:
    reader, body = read(CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
    assert body == b"hello world"
    assert reader.reusable


def test_chunk_extensions_and_trailers_are_passed_over() -> None:
    reader, body = read(CHUNKED + b'5;name="a;b"\r\nhello\r\n0;last\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n')
    assert body == b"hello"
    assert reader.over
    assert not reader.surplus


def test_interim_heads_are_passed_over() -> None:
    reader, body = read(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    assert body == b"ok"
    assert reader.head is not None
    assert reader.head.headers == {"content-length": "2"}


def test_a_body_without_framing_lasts_until_the_connection_ends() -> None:
    reader, body = read(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert body == b"hello"
    assert not reader.over
    assert reader.eof() is False
    assert not reader.reusable


@pytest.mark.parametrize(
    "content", [b"5\r\nhel", b"5\r\nhello\r\n", b"5\r\nhello\r\n0\r\n", b"5\r\nhello\r\n0\r\nX: 1\r\n"]
)
def test_a_chunked_body_cut_anywhere_before_its_end_is_cut_short(content: bytes) -> None:
    reader, _ = read(CHUNKED + content)
    assert reader.eof() is True
    assert not reader.reusable


def test_a_body_shorter_than_its_length_is_cut_short() -> None:
    reader, _ = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
    assert reader.eof() is True


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive, CLOSE\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_only_where_the_peer_keeps_it(head: bytes, reusable: bool) -> None:
    reader, body = read(head)
    assert reader.over
    assert body == b""
    assert reader.reusable is reusable


def test_bytes_behind_the_end_make_a_connection_unfit_for_another_request() -> None:
    reader, body = read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert body == b"ok"
    assert reader.surplus
    assert not reader.reusable


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP/1.1 status line"),
        (b"HTTP/2 200\r\n\r\n", "no HTTP/1.1 status line"),
        (b"HTTP/1.1 200 OK\r\nno header at all\r\n\r\n", "is no header"),
        (b"HTTP/1.1 200 OK\r\n folded first\r\n\r\n", "folded"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "no length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "no length"),
        (CHUNKED + b"xyz\r\n", "no chunk size"),
        (CHUNKED + b"-5\r\n", "no chunk size"),
        (CHUNKED + b"+5\r\nhello\r\n", "no chunk size"),
        (CHUNKED + b"5\r\nhello!\r\n", "where a chunk should end"),
        (CHUNKED + b"0" * (LINE_CAP + 1), "longer than"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * LINE_CAP + b"\r\n", "longer than"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: yyyyyyyy\r\n" * (HEAD_CAP // 12), "head is longer"),
        (CHUNKED + b"0\r\n" + b"X: yyyyyyyy\r\n" * (HEAD_CAP // 12), "trailers are longer"),
    ],
)
def test_what_is_not_http_is_refused_in_words(content: bytes, words: str) -> None:
    reader, _ = read(content)
    assert reader.bad is not None
    assert words in reader.bad
    assert not reader.reusable


def test_the_same_content_length_twice_is_one_length() -> None:
    reader, body = read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")
    assert body == b"ok"
    assert reader.over


def test_what_stands_before_a_fault_is_still_given() -> None:
    reader, body = read(CHUNKED + b"5\r\nhello\r\nnonsense\r\n")
    assert body == b"hello"
    assert reader.bad is not None


def test_headers_are_found_whatever_their_case_and_folding() -> None:
    reader, _ = read(b"HTTP/1.1 200 OK\nCONTENT-type:Text/Event-Stream; charset=utf-8\nX-A: 1\n 2\nX-a: 3\n\n")
    assert reader.head is not None
    assert reader.head.media_type == "text/event-stream"
    assert reader.head.headers["x-a"] == "1 2, 3"


@given(chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=8), data=st.data())
def test_every_packing_of_a_chunked_body_gives_the_same_bytes(chunks: list[bytes], data: st.DataObject) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    content = CHUNKED + framed + b"0\r\n\r\n"
    reader, body = read(*cut(content, data.draw(st.lists(st.integers(1, len(content) - 1)))))
    assert body == b"".join(chunks)
    assert reader.over
    assert reader.reusable


def test_a_head_that_came_before_is_read_alike_and_what_stands_behind_it_is_not_lost() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Again: %d\r\n\r\n"
    for number in (1, 1, 2, 1):
        reader = ResponseReader()
        assert reader.feed(head % number) == b""
        assert reader.feed(b"ab") == b"ab"
        assert reader.over
        assert reader.reusable
        assert reader.head is not None
        assert reader.head.headers["x-again"] == str(number)
    together = ResponseReader()
    assert together.feed(head % 1 + b"cd") == b"cd"
    interim = ResponseReader()
    assert interim.feed(b"HTTP/1.1 100 Continue\r\n\r\n" + head % 1) == b""
    assert interim.feed(head % 1) == (head % 1)[:2]
    assert interim.surplus


HEADS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: x5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED,
    ]
)


@given(head=HEADS | st.binary(max_size=30).map(lambda junk: b"HTTP/1.1 200 OK\r\n" + junk + b"\r\n\r\n"))
def test_a_head_says_the_same_each_time_it_comes(head: bytes) -> None:
    """A server repeats itself, and what is remembered of it must not read otherwise than the bytes."""
    said = []
    for _ in range(3):
        reader, body = read(head)
        said.append((body, reader.bad, reader.over, reader.reusable, reader.head))
    assert said[0] == said[1] == said[2]


@given(size=st.integers(0, 12), packed=st.booleans())
def test_the_end_of_a_chunked_body_reads_the_same_in_a_read_of_its_own(size: int, packed: bool) -> None:
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size) if size else b""
    reads = [CHUNKED + chunk + b"0\r\n\r\n"] if packed else [CHUNKED, chunk, b"0\r\n\r\n"]
    reader, body = read(*reads)
    assert body == b"x" * size
    assert reader.reusable
    reader.feed(b"more")
    assert not reader.reusable


def test_what_looks_like_the_last_chunk_inside_a_chunk_is_data() -> None:
    reader, body = read(CHUNKED, b"5\r\n", b"0\r\n\r\n", b"\r\n", b"0\r\n\r\n")
    assert body == b"0\r\n\r\n"
    assert reader.reusable
