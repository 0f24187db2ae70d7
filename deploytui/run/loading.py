"""From a started process to a server that has answered: health, model list, one tiny completion."""

import time
from collections.abc import Callable

import anyio
from msgspec import Struct

from deploytui.engine.protocol import Engine
from deploytui.errors import EngineError
from deploytui.record.facts import Failure
from deploytui.run.doors import (
    NO_ENTRY,
    Door,
    NotReadyError,
    ask_one,
    one_token_body,
    reached,
    ready_status,
    served_models,
)
from deploytui.run.failing import CandidateFailed, EngineDied
from deploytui.run.keeping import Kept
from deploytui.run.listener import Listener

POLL_S = 0.1
NO_SUCH_PATH = (404, 405, 501)


class Loaded(Struct, frozen=True, kw_only=True):
    """A server that has answered."""

    served_model: str
    launch_s: float | None = None
    """From the order to the started process [s]; None where nothing was launched."""
    load_s: float
    """From the started process to health and model list [s]."""
    first_token_s: float
    """The first tiny completion as a whole [s]."""


class Start(Struct, frozen=True, kw_only=True):
    """An engine that is waited for."""

    engine: Engine
    kept: Kept | None
    """None for an endpoint that runs already."""
    wanted: str
    """The model's name; empty takes whatever is listed alone."""
    endpoint: str
    timeout_s: float
    died: Callable[[], Failure]
    note: Callable[[], None]
    """Called again and again while it is waited for; may raise when there is no more hope."""
    ready_path: str | None = None
    """Path or URL that answers 200 when it can serve; None leaves it to the engine."""
    headers: dict[str, str] = {}
    api: str = "openai"
    intruder: Callable[[], Listener | None] = lambda: None
    """Who answers at the port and is not our child; None where it is, or nobody can tell."""
    beyond: Callable[[], str | None] = lambda: None
    """The address at which other machines reach it; None where they don't, or nobody can tell."""


async def load(door: Door, start: Start) -> Loaded:
    """Wait until the engine serves the wanted model, within the time limit.

    A server that answers while our child is dead, or is not of our child's processes, is somebody else's.
    """
    began = time.monotonic()
    with anyio.move_on_after(start.timeout_s) as limit:
        while True:
            model = await _listed(door, start)
            listed = time.monotonic()
            if await _has_answered(door, start, model):
                return Loaded(served_model=model, load_s=listed - began, first_token_s=time.monotonic() - listed)
            start.note()
            await anyio.sleep(POLL_S)
    assert limit.cancelled_caught
    raise CandidateFailed(
        Failure(
            kind="timeout",
            what=f"{_named(start)} was not ready within {start.timeout_s:g} s.",
            fix="Raise `timeouts.load`, or look into the engine's log for what it waits for.",
        )
    )


def _named(start: Start) -> str:
    """The engine in a sentence; one without an adapter has no name of its own."""
    return "The command's server" if start.engine.name == "command" else start.engine.title


async def _has_answered(door: Door, start: Start, model: str) -> bool:
    """Whether one tiny completion was answered; False from an engine of ours that says it is not ready yet."""
    path, body = one_token_body(start.endpoint, model, "Hello", start.api)
    try:
        await ask_one(door, path, body, start.timeout_s)
    except NotReadyError:
        _check_alive(start)
        if start.kept is None:
            raise
        return False
    except EngineError:
        _check_alive(start)
        raise
    _check_alive(start)
    return True


async def _listed(door: Door, start: Start) -> str:
    """The served model's id, once the engine is healthy and lists it."""
    while True:
        _check_alive(start)
        if await _is_healthy(door, start):
            models = await served_models(door)
            if models is not None:
                _check_ours(door, start)
                return _chosen(start.wanted, models)
            if (start.kept is None or start.ready_path) and await _goes_without_list(door, start):
                _check_ours(door, start)
                return start.wanted
        start.note()
        await anyio.sleep(POLL_S)


async def _is_healthy(door: Door, start: Start) -> bool:
    path = start.ready_path or start.engine.health_path
    return path is None or await ready_status(door, start.headers, path) == 200


def _check_ours(door: Door, start: Start) -> None:
    if (intruder := start.intruder()) is None:
        _check_loopback(start)
        return
    _check_alive(start)
    raise CandidateFailed(
        Failure(
            kind="port_in_use",
            what=f"{door.base_url} is answered by {intruder.label}, not by the engine that was launched.",
            fix="Run it again, another port is taken each time; end that process if it is yours.",
        )
    )


def _check_loopback(start: Start) -> None:
    if (address := start.beyond()) is None:
        return
    raise CandidateFailed(
        Failure(
            kind="not_allowed",
            what=f"{start.engine.title} listens on {address}, where other machines reach it.",
            fix="Bind it to 127.0.0.1, which {host} stands for in command, and leave other addresses out of args.",
        )
    )


def _chosen(wanted: str, models: tuple[str, ...]) -> str:
    if wanted in models or (not wanted and len(models) == 1):
        return wanted or models[0]
    raise CandidateFailed(_wrong_model(wanted, models))


async def _goes_without_list(door: Door, start: Start) -> bool:
    """Whether a server has no list of models at all, and is asked for a model by name.

    False where it may come to list its models later; what waiting does not mend is raised, for an endpoint that
    runs already.
    """
    found, url = await reached(door, "v1/models"), door.base_url
    if start.kept is not None:
        return found in NO_SUCH_PATH and bool(start.wanted)
    match found:
        case str():
            raise CandidateFailed(_nobody(url, found))
        case 401 | 403:
            raise CandidateFailed(_no_entry(url, found))
        case 200:
            raise CandidateFailed(_no_list(url, "What it answers to /v1/models is no list of models."))
        case _ if found in NO_SUCH_PATH and not start.wanted:
            raise CandidateFailed(_no_list(url, f"It answers HTTP {found} to /v1/models."))
        case _:
            return found in NO_SUCH_PATH


def _check_alive(start: Start) -> None:
    if start.kept is not None and start.kept.exited.is_set():
        raise EngineDied(start.died)


def _wrong_model(wanted: str, models: tuple[str, ...]) -> Failure:
    asked = f"“{wanted}”" if wanted else "no particular model"
    return Failure(
        kind="wrong_model",
        what=f"The server lists {', '.join(models) or 'no model'}; asked for was {asked}.",
        fix="Set `served_model` to one of the listed names.",
    )


def _nobody(url: str, why: str) -> Failure:
    return Failure(
        kind="timeout", what=f"Nobody answers at {url}.", why=why, fix="Start the server, or correct `base_url`."
    )


def _no_entry(url: str, code: int) -> Failure:
    return Failure(kind="request_rejected", what=f"{url} lets nobody in without its key (HTTP {code}).", fix=NO_ENTRY)


def _no_list(url: str, why: str) -> Failure:
    fix = "Check `base_url`; where it is right, name the model with `served_model`."
    return Failure(kind="wrong_model", what=f"{url} does not say which models it serves.", why=why, fix=fix)
