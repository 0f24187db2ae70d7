"""Engines by name. Listing them imports none; choosing one imports that one."""

import importlib
from collections.abc import Callable
from typing import Any, cast

from deploytui.engine.protocol import Engine
from deploytui.errors import ProfileError
from deploytui.profile.nearest import did_you_mean

GROUP = "deploytui.engines"

BUILT_IN: dict[str, str] = {
    "llamacpp": "deploytui.engine.llamacpp:LlamaCpp",
    "openai": "deploytui.engine.openai:OpenAI",
    "mock": "deploytui.engine.mock:Mock",
    "vllm": "deploytui.engine.vllm:Vllm",
    "sglang": "deploytui.engine.sglang:Sglang",
    "tensorrt-llm": "deploytui.engine.tensorrt_llm:TensorRtLlm",
    "transformers": "deploytui.engine.transformers:Transformers",
    "tgi": "deploytui.engine.tgi:Tgi",
    "onnxruntime-genai": "deploytui.engine.onnxruntime_genai:OnnxRuntimeGenAI",
    "command": "deploytui.engine.command:Command",
}
"""Name → a callable without arguments that gives the engine; here too, so that a source tree works uninstalled."""


def engine_names() -> tuple[str, ...]:
    """All engine names, ours first, then those that other packages register."""
    from importlib.metadata import entry_points

    others = {point.name for point in entry_points(group=GROUP)} - BUILT_IN.keys()
    return (*BUILT_IN, *sorted(others))


def load_engine(name: str) -> Engine:
    """The engine of that name; ProfileError naming the nearest when there is none, or when it can't be imported."""
    place = BUILT_IN.get(name) or _registered(name)
    try:
        return cast(Engine, _found(place)())
    except (ImportError, AttributeError) as error:
        raise ProfileError(
            f"The adapter of engine {name!r} can't be loaded from {place}.",
            why=str(error),
            fix="Install the package that registers it again.",
        ) from error


def _registered(name: str) -> str:
    """Where another package says its engine is."""
    from importlib.metadata import entry_points  # late: it reads every installed package

    for point in entry_points(group=GROUP, name=name):
        return point.value
    raise unknown_engine(name)


def _found(place: str) -> Callable[[], Any]:
    module, _, attribute = place.partition(":")
    made: Callable[[], Any] = getattr(importlib.import_module(module.strip()), attribute.strip())
    return made


def unknown_engine(name: str) -> ProfileError:
    """The error for a name that no engine has, with the nearest there is."""
    return ProfileError(f"There is no engine {name!r}.", fix=did_you_mean(name, engine_names()))
