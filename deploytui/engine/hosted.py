"""What engines share that are libraries behind our own HTTP host: the key, the metrics, and what it tells of itself."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.protocol import MetricNames
from deploytui.record.facts import EngineFacts

KEY = "DEPLOYTUI_API_KEY"
"""Where the host looks for the API key; no process list shows an environment."""

PROPS = "/props"
MEMORY = "/memory"

METRICS = MetricNames(
    running="deploytui_host:requests_running",
    waiting="deploytui_host:requests_waiting",
    prompt_tokens="deploytui_host:prompt_tokens_total",
    output_tokens="deploytui_host:generation_tokens_total",
)

RENAMED = {"context_length": "max_model_len", "slots": "max_num_seqs"}
ELSEWHERE = frozenset({"engine", "version"})
"""Told in /props, and kept at other places of the record."""


def from_props(facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
    """The facts with what the host tells of itself: context, slots, batching in words, device, threads, versions."""
    props = answers.get(PROPS)
    if not isinstance(props, dict):
        return facts
    told = {RENAMED.get(name, name): value for name, value in props.items() if name not in ELSEWHERE}
    version, device = props.get("version"), props.get("device")
    return replace(
        facts,
        settings={**facts.settings, **{name: value for name, value in told.items() if value is not None}},
        version=facts.version or (version if isinstance(version, str) else None),
        device=facts.device or (device if isinstance(device, str) else None),
    )
