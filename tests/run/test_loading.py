"""When an engine is taken for ready, and when not."""

from typing import Any

import anyio
import pytest

from deploytui.engine.adapter import Adapter
from deploytui.record.facts import Failure
from deploytui.run.doors import door, get_answer, ready_status
from deploytui.run.failing import CandidateFailed, EngineDied
from deploytui.run.keeping import Kept
from deploytui.run.listener import Listener
from deploytui.run.loading import Loaded, Start, load
from tests.load.server import Asked, Script, Step, serving

MODELS = b'{"data": [{"id": "m"}]}'
DONE = b'{"choices": [{"text": "a"}]}'


class Served(Adapter):
    """An engine with a health path."""

    name = title = "served"


def answer(body: bytes, status: int = 200) -> list[Step]:
    return [b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)]


def script(**answers: list[Step]) -> Script:
    """Answers by the last part of the path, which is `missing` else."""

    def said(asked: Asked) -> list[Step]:
        known = {"health": answer(b""), "models": answer(MODELS), "completions": answer(DONE)}
        return {**known, **answers}.get(asked.target.partition("?")[0].rpartition("/")[2], answer(b"", 404))

    return said


def alive() -> Kept:
    kept = Kept(None)  # type: ignore[arg-type]
    kept.started.set()
    return kept


def waited(said: Script, timeout_s: float = 10.0, is_dead: bool = False, **fields: Any) -> Loaded:
    """What comes of waiting for that server."""

    async def wait(url: str) -> Loaded:
        kept = alive()
        if is_dead:
            kept.exited.set()
        known: dict[str, Any] = {"note": lambda: None, "kept": kept, "wanted": "m", "engine": Served()}
        start = Start(
            **{**known, **fields},
            endpoint="completions",
            timeout_s=timeout_s,
            died=lambda: Failure(kind="crashed", what="It died."),
        )
        async with door(url, {}) as calls:
            return await load(calls, start)

    with serving(said) as server:
        return anyio.run(wait, server.url)


def refused(said: Script, **fields: Any) -> Failure:
    with pytest.raises(CandidateFailed) as caught:
        waited(said, **fields)
    return caught.value.failure


def test_an_engine_that_lists_its_model_while_it_still_loads_is_waited_for() -> None:
    answers = iter([answer(b"", 503), answer(b"", 503)])

    def said(asked: Asked) -> list[Step]:
        return next(answers, answer(DONE)) if asked.target.endswith("completions") else list(script()(asked))

    assert waited(said).served_model == "m"
    assert next(answers, None) is None


def test_a_healthy_server_that_lists_the_model_and_answers_is_ready() -> None:
    assert waited(script()).served_model == "m"


def test_a_server_that_belongs_to_somebody_else_is_never_measured() -> None:
    failure = refused(script(), intruder=lambda: Listener(4711, "nginx"))
    assert failure.kind == "port_in_use"
    assert "process 4711 (nginx)" in failure.what


def test_a_child_that_died_of_the_other_server_says_so_itself() -> None:
    with pytest.raises(EngineDied):
        waited(script(), is_dead=True, intruder=lambda: Listener(4711, "nginx"))


def test_a_readiness_path_of_the_candidates_own_is_asked() -> None:
    said = script(health=answer(b"", 404), alive=answer(b""))
    assert waited(said, ready_path="/alive").served_model == "m"
    failure = refused(script(alive=answer(b"", 503)), ready_path="/alive", timeout_s=0.5)
    assert failure.kind == "timeout"


def test_a_readiness_url_of_the_candidates_own_is_asked() -> None:
    with serving(script(ok=answer(b""))) as elsewhere:
        assert waited(script(health=answer(b"", 404)), ready_path=f"{elsewhere.url}/ok?deep=1").served_model == "m"
        assert [asked.target for asked in elsewhere.asked] == ["/ok?deep=1"]


def test_the_key_is_not_sent_to_another_address() -> None:
    async def asking(url: str) -> None:
        async with door("http://127.0.0.1:9", {"Authorization": "Bearer secret"}) as calls:
            assert await ready_status(calls, {"Authorization": "Bearer secret"}, url) == 200

    with serving(script(ok=answer(b""))) as elsewhere:
        anyio.run(asking, f"{elsewhere.url}/ok")
        assert "authorization" not in elsewhere.asked[0].headers


def test_a_server_without_a_list_is_taken_by_the_name_it_was_given() -> None:
    without = script(models=answer(b"", 404), alive=answer(b""))
    assert waited(without, ready_path="/alive").served_model == "m"
    assert refused(without, timeout_s=0.5).kind == "timeout"


def test_waiting_ends_when_there_is_no_more_hope() -> None:
    def hopeless() -> None:
        raise CandidateFailed(Failure(kind="timeout", what="It stands still."))

    assert refused(script(health=answer(b"", 503)), note=hopeless).what == "It stands still."


def test_tgis_own_endpoint_is_tried_with_its_own_words() -> None:
    seen: list[object] = []

    def said(asked: Asked) -> list[Step]:
        seen.append(asked.body)
        return list(script(generate=answer(b'{"generated_text": "a"}'))(asked))

    assert waited(said, api="tgi").served_model == "m"
    assert seen[-1] == {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (answer(b'{"a": 1}'), {"a": 1}),
        (answer(b"engine_requests 1\n"), "engine_requests 1\n"),
        (answer(b"\xff"), "\ufffd"),
        (answer(b"{}", 500), None),
    ],
)
def test_what_an_engine_tells_is_json_or_text(steps: list[Step], told: object) -> None:
    async def asking(url: str) -> object:
        async with door(url, {}) as calls:
            return await get_answer(calls, "/tell")

    with serving(script(tell=steps)) as server:
        assert anyio.run(asking, server.url) == told
