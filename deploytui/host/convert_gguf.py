"""Make a safetensors folder from a GGUF file with Transformers: weights dequantised, tokenizer and template kept.

    python convert_gguf.py MODEL.gguf FOLDER --dtype bfloat16

The same file and versions give the same bytes. An architecture that Transformers can't read from GGUF is refused in
its own words, with exit status 1. The weights are as exact as the GGUF's: converting back does not undo quantisation.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

DTYPES = ("bfloat16", "float16", "float32")


def say(text: str) -> None:
    """A line of progress."""
    print("convert_gguf: {}".format(text), flush=True)  # noqa: T201


def without_own_folder() -> None:
    """Take this file's folder from the import path: a file beside it must not stand for an installed module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def is_gguf(path: str) -> bool:
    """Whether a file is there and begins as GGUF does; looked at before the imports, which take seconds."""
    try:
        with open(path, "rb") as model:
            return model.read(4) == b"GGUF"
    except OSError:
        return False


def convert(model: str, out: str, dtype: str) -> None:
    """Read, dequantise, write."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = os.path.split(os.path.abspath(model))
    say("reading the tokenizer of {}".format(name))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    say("dequantising weights to {}".format(dtype))
    # In float32 first: each weight is then rounded once.
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    whole = plain(read, getattr(torch, dtype))
    say("writing {} parameters".format(sum(weight.numel() for weight in whole.parameters())))
    whole.save_pretrained(out)
    tokenizer.save_pretrained(out)
    for entry in os.scandir(out):
        # safetensors makes its files for the owner alone; a container's user has to read them too.
        os.chmod(entry.path, os.stat(entry.path).st_mode | 0o444)
    say("done: {} bytes in {}".format(sum(entry.stat().st_size for entry in os.scandir(out)), out))


def plain(read: Any, dtype: Any) -> Any:
    """The same model without its GGUF origin, which Transformers refuses to save."""
    import torch
    from transformers import AutoModelForCausalLM

    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = dtype
    with torch.device("meta"):
        whole = AutoModelForCausalLM.from_config(config)
    whole.load_state_dict({name: weight.to(dtype) for name, weight in read.state_dict().items()}, assign=True)
    whole.tie_weights()
    whole.generation_config = read.generation_config
    return whole


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Make a safetensors folder from a GGUF file.")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("out", help="a folder; made where there is none")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    return parser.parse_args()


def main() -> int:
    """Convert; 1 when Transformers can't."""
    without_own_folder()
    said = parsed()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if not is_gguf(said.model):
        print("convert_gguf: error: {} is no GGUF file".format(said.model), file=sys.stderr)  # noqa: T201
        return 1
    convert(said.model, said.out, said.dtype)
    return 0


if __name__ == "__main__":
    sys.exit(main())
