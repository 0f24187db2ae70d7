"""Say why ONNX Runtime GenAI can't use CUDA here, in its own words; run by path, prints one line.

The library tells its reason only when a model is loaded, so a model is asked for that has a configuration and no graph:
its absence is complained about after CUDA has been found.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile

GRAPH = "absent.onnx"
CONFIG = {
    "model": {
        "type": "llama",
        "context_length": 8,
        "vocab_size": 8,
        "decoder": {
            "filename": GRAPH,
            "session_options": {"provider_options": [{"cuda": {}}]},
            **{"head_size": 8, "hidden_size": 8, "num_hidden_layers": 1},
            **{"num_attention_heads": 1, "num_key_value_heads": 1},
        },
    },
    "search": {"max_length": 8},
}


def why() -> str:
    """The reason; empty when only the graph was missing."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "genai_config.json"), "w", encoding="utf-8") as config:
            json.dump(CONFIG, config)
        try:
            importlib.import_module("onnxruntime_genai").Model(folder)
        except Exception as error:  # noqa: BLE001 - its words are what is asked for
            return "" if GRAPH in str(error) else str(error)
    return ""


if __name__ == "__main__":
    print(why())  # noqa: T201
