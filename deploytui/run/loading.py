"""From a started process to a server that has answered: health, model list, one tiny completion."""

import time
from collections.abc import Callable

import anyio
from msgspec import Struct

from deploytui.engine.protocol import Engine
from deploytui.errors import EngineError
from deploytui.record.facts import Failure
from deploytui.run.doors import NO_ENTRY, Door, ask_one, one_token_body, reached, served_models, status
from deploytui.run.failing import CandidateFailed, EngineDied
from deploytui.run.keeping import Kept

POLL_S = 0.1


class Loaded(Struct, frozen=True, kw_only=True):
    """A server that has answered."""

    served_model: str
    launch_s: float | None = None
    """From the order to the started process [s]; None where nothing was launched."""
    load_s: float
    """From the started process to health and model list [s]."""
    first_token_s: float
    """The first tiny completion as a whole [s]."""


async def load(
    door: Door,
    engine: Engine,
    kept: Kept | None,
    *,
    wanted: str,
    endpoint: str,
    timeout_s: float,
    died: Callable[[], Failure],
    note: Callable[[], None],
) -> Loaded:
    """Wait until the engine serves `wanted` (empty: whatever it lists alone), within `timeout_s`.

    A server that answers while our child is dead is somebody else's, so the child's life is asked for first.
    """
    began = time.monotonic()
    with anyio.move_on_after(timeout_s) as limit:
        model = await _listed(door, engine, kept, wanted, died, note)
        listed = time.monotonic()
        path, body = one_token_body(endpoint, model, "Hello")
        try:
            await ask_one(door, path, body, timeout_s)
        except EngineError:
            _check_alive(kept, died)
            raise
        _check_alive(kept, died)
        return Loaded(served_model=model, load_s=listed - began, first_token_s=time.monotonic() - listed)
    assert limit.cancelled_caught
    raise CandidateFailed(
        Failure(
            kind="timeout",
            what=f"{engine.title} was not ready within {timeout_s:g} s.",
            fix="Raise `timeouts.load`, or look into the engine's log for what it waits for.",
        )
    )


async def _listed(
    door: Door,
    engine: Engine,
    kept: Kept | None,
    wanted: str,
    died: Callable[[], Failure],
    note: Callable[[], None],
) -> str:
    """The served model's id, once the engine is healthy and lists it."""
    while True:
        _check_alive(kept, died)
        if engine.health_path is None or await status(door, engine.health_path) == 200:
            models = await served_models(door)
            if models is not None:
                return _chosen(wanted, models)
            if kept is None and await _goes_without_list(door, wanted):
                return wanted
        note()
        await anyio.sleep(POLL_S)


def _chosen(wanted: str, models: tuple[str, ...]) -> str:
    if wanted in models or (not wanted and len(models) == 1):
        return wanted or models[0]
    raise CandidateFailed(_wrong_model(wanted, models))


async def _goes_without_list(door: Door, wanted: str) -> bool:
    """Whether an endpoint that runs already serves no list at all, and is asked for a model by name.

    False where it may come to list its models later; what waiting does not mend is raised.
    """
    found, url = await reached(door, "v1/models"), door.base_url
    match found:
        case str():
            raise CandidateFailed(_nobody(url, found))
        case 401 | 403:
            raise CandidateFailed(_no_entry(url, found))
        case 200:
            raise CandidateFailed(_no_list(url, "What it answers to /v1/models is no list of models."))
        case 404 | 405 | 501 if not wanted:
            raise CandidateFailed(_no_list(url, f"It answers HTTP {found} to /v1/models."))
        case _:
            return found in (404, 405, 501)


def _check_alive(kept: Kept | None, died: Callable[[], Failure]) -> None:
    if kept is not None and kept.exited.is_set():
        raise EngineDied(died)


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
