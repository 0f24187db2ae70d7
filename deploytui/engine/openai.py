"""An OpenAI-compatible endpoint that already runs: nothing is launched, nothing is stopped."""

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec.structs import replace

from deploytui.engine.adapter import Adapter, misfit
from deploytui.engine.protocol import Launch, Place
from deploytui.errors import ProfileError
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

TAILS = ("/chat/completions", "/completions", "/models", "/v1")
"""What people paste after the address of a server, outermost first."""


class OpenAI(Adapter):
    """A running endpoint."""

    name = "openai"
    title = "OpenAI endpoint"
    launches = False
    formats = frozenset({"safetensors", "gguf", "onnx", "tensorrt", "pytorch"})
    health_path = None
    readback_paths = ("/v1/models", "/version")

    def objection(self, candidate: Candidate) -> Failure | None:
        """A missing address or key, and keys that only a launched engine can follow."""
        return next(_objections(candidate), None)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """No argv, only the door; the served model is empty when it is to be chosen from the endpoint's list."""
        url = base_url(candidate.base_url or "")
        return Launch(argv=(), base_url=url, served_model=candidate.served_model or "")

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Its version and context where it tells; else what the profile declares stands elsewhere."""
        version = facts.version or _version_told(answers.get("/version"))
        return replace(facts, settings={**facts.settings, **_context_told(facts, answers)}, version=version)


def base_url(address: str) -> str:
    """The address without `/v1`, its calls and a slash at the end; ProfileError when it is no HTTP address."""
    text = address.strip()
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname or not _port_fits(parts):
        raise ProfileError(f"base_url = {address!r} is no HTTP address.", fix='Write such as "http://127.0.0.1:8000".')
    if parts.username is not None or parts.password is not None or parts.query:
        raise ProfileError("base_url holds a user, password or query.", fix="Put the key in a variable: api_key_env.")
    path = parts.path.rstrip("/")
    for tail in TAILS:
        path = path.removesuffix(tail).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _port_fits(parts: SplitResult) -> bool:
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def api_key(candidate: Candidate, environment: Mapping[str, str] = os.environ) -> str | None:
    """The key of the variable the candidate names; None when it names none or the variable is not set."""
    return environment.get(candidate.api_key_env) if candidate.api_key_env else None


def _objections(candidate: Candidate) -> Iterator[Failure]:
    if candidate.base_url is None:
        yield misfit("The candidate names no endpoint.", 'Set base_url, such as "http://127.0.0.1:8000".')
        return
    try:
        base_url(candidate.base_url)
    except ProfileError as error:
        yield misfit(error.what, error.fix)
    if candidate.api_key_env and api_key(candidate) is None:
        yield misfit(f"api_key_env names {candidate.api_key_env}, which is not set here.", "Set it in the environment.")
    for key in _launch_keys(candidate):
        yield misfit(f"{key} can't be applied to an endpoint that runs already.", f"Remove {key}, or declare it.")


def _launch_keys(candidate: Candidate) -> Iterator[str]:
    """Keys that are set and only a launched engine can follow."""
    nothing = Candidate(name=candidate.name, engine=candidate.engine)
    for key in ("command", "python", "container", "args", "env", "settings", "devices", "device", "engine_version"):
        if getattr(candidate, key) != getattr(nothing, key):
            yield key


def _version_told(answer: Any) -> str | None:
    match answer:
        case {"version": str(version)}:
            return version
        case _:
            return None


def _context_told(facts: EngineFacts, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The context [tokens] of the served model, which vLLM lists with its id."""
    match answers.get("/v1/models"):
        case {"data": [*rows]}:
            for row in rows:
                match row:
                    case {"id": served, "max_model_len": int(tokens)} if served == facts.served_model:
                        return {"max_model_len": tokens}
    return {}
