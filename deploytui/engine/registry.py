"""Engines by name. Listing them imports none; choosing one imports that one."""

from importlib.metadata import EntryPoint, entry_points
from typing import cast

from deploytui.engine.protocol import Engine
from deploytui.errors import ProfileError
from deploytui.profile.nearest import did_you_mean

GROUP = "deploytui.engines"

BUILT_IN: dict[str, str] = {
    "llamacpp": "deploytui.engine.llamacpp:LlamaCpp",
    "openai": "deploytui.engine.openai:OpenAI",
    "mock": "deploytui.engine.mock:Mock",
    "vllm": "deploytui.engine.pending:vllm",
    "sglang": "deploytui.engine.pending:sglang",
    "tensorrt-llm": "deploytui.engine.pending:tensorrt_llm",
    "transformers": "deploytui.engine.pending:transformers",
    "tgi": "deploytui.engine.pending:tgi",
    "onnxruntime-genai": "deploytui.engine.pending:onnxruntime_genai",
}
"""Name → a callable without arguments that gives the engine; here too, so that a source tree works uninstalled."""


def engine_names() -> tuple[str, ...]:
    """All engine names, ours first, then those that other packages register."""
    others = {point.name for point in entry_points(group=GROUP)} - BUILT_IN.keys()
    return (*BUILT_IN, *sorted(others))


def load_engine(name: str) -> Engine:
    """The engine of that name; ProfileError naming the nearest when there is none, or when it can't be imported."""
    point = _point(name)
    try:
        return cast(Engine, point.load()())
    except (ImportError, AttributeError) as error:
        raise ProfileError(
            f"The adapter of engine {name!r} can't be loaded from {point.value}.",
            why=str(error),
            fix="Install the package that registers it again.",
        ) from error


def _point(name: str) -> EntryPoint:
    if name in BUILT_IN:
        return EntryPoint(name, BUILT_IN[name], GROUP)
    for point in entry_points(group=GROUP, name=name):
        return point
    raise unknown_engine(name)


def unknown_engine(name: str) -> ProfileError:
    """The error for a name that no engine has, with the nearest there is."""
    return ProfileError(f"There is no engine {name!r}.", fix=did_you_mean(name, engine_names()))
