"""Tell, as one JSON object, which Transformers and torch this interpreter has, and what they can use; run by path.

    python probe_transformers.py --model FOLDER

With a local model: whether this Transformers knows its type, read from `config.json`.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from deploytui.host import probe
else:
    import probe

    probe.without_own_folder()

PACKAGES = ("torch", "accelerate", "safetensors", "tokenizers", "gguf")


def look(model: Optional[str]) -> Dict[str, Any]:
    """The answer; what an import raises is its error."""
    answer: Dict[str, Any] = {"found": False, "version": None, "error": "", "detail": probe.place()}
    version = probe.distribution_version("transformers")
    if version is None or probe.module_origin("transformers") is None:
        return answer
    packages = {name: probe.distribution_version(name) for name in PACKAGES}
    answer.update(found=True, version=version)
    answer["detail"]["packages"] = {name: found for name, found in packages.items() if found}
    try:
        answer["detail"]["cuda"] = cuda()
        if model:
            answer["detail"]["model_type"] = known_type(model)
    except Exception as error:  # noqa: BLE001 - an engine may raise anything while it is imported
        answer["error"] = "{}: {}".format(type(error).__name__, error)
    return answer


def cuda() -> Dict[str, Any]:
    """Whether torch can use a GPU, how many, and its own words where it can't."""
    import torch

    found: Dict[str, Any] = {"built_for": torch.version.cuda, "devices": torch.cuda.device_count(), "error": ""}
    try:
        torch.zeros(1, device="cuda")
    except Exception as error:  # noqa: BLE001 - the words are the answer
        found["error"] = "{}: {}".format(type(error).__name__, error)
    return found


def known_type(model: str) -> Optional[Dict[str, Any]]:
    """The type that a model's folder names, and whether Transformers has it; None where none is named."""
    try:
        with open(os.path.join(model, "config.json"), encoding="utf-8") as lines:
            config = json.load(lines)
    except (OSError, ValueError):
        return None
    name = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(name, str):
        return None
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return {"name": name, "known": name in CONFIG_MAPPING, "own_code": "auto_map" in config}


def main() -> None:
    """Print the answer."""
    parser = argparse.ArgumentParser(description="Tell what Transformers and torch are here.")
    parser.add_argument("--model")
    model = parser.parse_args().model
    lines = probe.claim_stdout()
    lines.write(json.dumps(look(model), default=str) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
