"""A server that repeats the key it was sent."""

from collections.abc import Iterator
from pathlib import Path

from tests.load.server import Asked, Step, serving
from tests.load.workers import loading

KEY = "sk-marker-of-a-key"


def test_a_key_that_a_server_repeats_is_in_no_record(tmp_path: Path) -> None:
    def script(asked: Asked) -> Iterator[Step]:
        body = ('{"error": {"message": "no entry with ' + asked.headers["authorization"] + '"}}').encode()
        yield b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        yield body

    headers = {"Authorization": f"Bearer {KEY}"}
    with serving(script) as server, loading(tmp_path, server, 3, headers=headers) as load:
        load.said()
        records = load.records()
    assert {record.error for record in records} == {"no entry with Bearer …"}
    assert KEY not in (tmp_path / "requests.w0.jsonl").read_text("utf-8")
