"""Build a TensorRT-LLM engine for this GPU; run by path in the interpreter that has TensorRT-LLM.

    python build_tensorrt_llm.py --model FOLDER --out FOLDER [--dtype bfloat16] [--max_batch_size 16] [more]

A TensorRT-LLM checkpoint, told by `architecture` and `mapping` in its config.json, goes to `trtllm-build` as it is;
a Hugging Face checkpoint is converted by the package's own LLM class. Tokenizer files are put beside the engine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from typing import Any

KEPT = ("token", "vocab", "merges", "special", "added", "chat_template", "generation_config", "spiece")
"""How the files begin that the server reads beside the engine."""


def is_converted(folder: str) -> bool:
    """Whether a folder holds a checkpoint in TensorRT-LLM's own layout; ValueError or OSError when nobody can tell."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    return "architecture" in config and "mapping" in config


def build_argv(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """The argv that makes an engine of a converted checkpoint."""
    beside = os.path.join(os.path.dirname(sys.executable), "trtllm-build")
    argv = [beside if os.path.exists(beside) else "trtllm-build"]
    argv += ["--checkpoint_dir", options.model, "--output_dir", options.out]
    for name in ("max_batch_size", "max_seq_len"):
        value = getattr(options, name)
        if value is not None:
            argv += ["--" + name, str(value)]
    return argv + rest


def build_from_hub(options: argparse.Namespace) -> None:
    """Convert and build with the package's own class, which takes Hugging Face checkpoints."""
    package: Any = importlib.import_module("tensorrt_llm")
    engine: Any = importlib.import_module("tensorrt_llm._tensorrt_engine")
    limits = {name: getattr(options, name) for name in ("max_batch_size", "max_seq_len")}
    config = package.BuildConfig(**{name: value for name, value in limits.items() if value is not None})
    made: Any = engine.LLM(
        model=options.model,
        dtype=options.dtype or "auto",
        tensor_parallel_size=options.tp_size,
        pipeline_parallel_size=options.pp_size,
        trust_remote_code=options.trust_remote_code,
        build_config=config,
    )
    made.save(options.out)


def keep_tokenizer(model: str, out: str) -> None:
    """Put the tokenizer's files beside the engine, where they are not there yet."""
    for name in sorted(os.listdir(model)):
        target = os.path.join(out, name)
        if name.startswith(KEPT) and not os.path.exists(target):
            shutil.copyfile(os.path.join(model, name), target)


def parsed(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the others, which go to trtllm-build."""
    parser = argparse.ArgumentParser(description="Build a TensorRT-LLM engine.", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--dtype")
    parser.add_argument("--trust-remote-code", action="store_true")
    for name in ("--max_batch_size", "--max_seq_len"):
        parser.add_argument(name, type=int)
    for name in ("--tp_size", "--pp_size"):
        parser.add_argument(name, type=int, default=1)
    return parser.parse_known_args(argv)


def main() -> int:
    """Build; the status of what built it."""
    options, rest = parsed(sys.argv[1:])
    os.makedirs(options.out, exist_ok=True)
    if is_converted(options.model):
        status = subprocess.run(build_argv(options, rest), stdin=subprocess.DEVNULL, check=False).returncode
        if status:
            return status
    elif rest:
        sys.stderr.write("{} is for trtllm-build, and {} is no TensorRT-LLM checkpoint.\n".format(rest, options.model))
        return 2
    else:
        build_from_hub(options)
    keep_tokenizer(options.model, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
