"""The mock engine: a process of ours that behaves as its arguments say. Its numbers are SIMULATED."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.adapter import Adapter, host_script, interpreter, loopback_url, misfit
from deploytui.engine.hosted import KEY
from deploytui.engine.protocol import Launch, MetricNames, Place
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

SIMPLE = (str, int, float, bool)


class Mock(Adapter):
    """A scriptable engine without weights."""

    name = "mock"
    title = "mock (SIMULATED)"
    simulated = True
    formats = frozenset({"mock"})
    readback_paths: tuple[str, ...] = ("/props", "/v1/models")
    metrics: MetricNames | None = MetricNames(
        running="mock:requests_running", waiting="mock:requests_waiting", kv_usage="mock:kv_cache_usage"
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Keys that would make it look like a real engine."""
        if candidate.base_url is not None or candidate.command is not None or candidate.python is not None:
            return misfit(
                "The mock engine is started by deploytui itself: base_url, command and python do not apply.",
                "Remove them; args tells the mock what to do.",
            )
        return None

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """Our interpreter, isolated from the user's packages, with the candidate's args; the API key by environment."""
        served = candidate.served_model or candidate.name
        start = (
            interpreter(candidate),
            "-I",
            host_script("mock_engine.py"),
            "--port",
            str(place.port),
            "--model",
            served,
        )
        key = {KEY: place.api_key} if place.api_key else {}
        return Launch(
            argv=(*start, *candidate.args),
            env={**key, **candidate.env},
            base_url=loopback_url(place.port),
            served_model=served,
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Whatever simple values it tells of itself; always simulated."""
        props = answers["/props"] if isinstance(answers.get("/props"), dict) else {}
        told = {key: value for key, value in props.items() if isinstance(value, SIMPLE)}
        version = facts.version or told.pop("version", None)
        return replace(facts, settings={**facts.settings, **told}, version=version, simulated=True)
