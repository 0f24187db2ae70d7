"""Serve a model folder of ONNX Runtime GenAI (one with genai_config.json); run by path.

    python serve_onnx.py --model FOLDER --port 8080 --alias NAME --device cpu --threads 2 --max-num-seqs 4

A folder that was built for the library's batching engine (`engine.dynamic_batching` in its configuration) is served by
that engine. Any other folder gets one generator for each request; generators take turns token by token, so that
`--threads` is what the whole server computes with.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Generator, List, Optional

if TYPE_CHECKING:
    import argparse

    from deploytui.host import serve_onnx_batch as batch
    from deploytui.host import serve_openai as door
else:
    import serve_onnx_batch as batch
    import serve_openai as door

    door.leave_folder()

CONFIG = "genai_config.json"
DISTRIBUTIONS = ("onnxruntime-genai", "onnxruntime-genai-cuda", "onnxruntime", "onnxruntime-gpu")
LARGEST_SEED = 2**31
MODES = ("auto", "turns", "engine")


class Turns:
    """A lock given in the order of asking: a plain one would be kept by the request that has it, token by token."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.given = self.asked = 0

    def __enter__(self) -> None:
        with self.changed:
            mine, self.asked = self.asked, self.asked + 1
            self.changed.wait_for(lambda: self.given == mine)

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.given += 1
            self.changed.notify_all()


def search_options(prompt_tokens: int, params: door.Params) -> Dict[str, Any]:
    """The request in the library's words; every one is given, since the folder has defaults of its own."""
    longest = prompt_tokens + params.max_tokens
    return {
        "max_length": longest,
        # Below this length the tokens that end an answer are masked.
        "min_length": longest if params.ignore_eos else 0,
        "num_beams": 1,
        "do_sample": params.temperature > 0,
        "temperature": params.temperature or 1.0,
        "top_p": params.top_p,
        "top_k": params.top_k or 0,
        "repetition_penalty": params.repetition_penalty or 1.0,
        "random_seed": -1 if params.seed is None else params.seed % LARGEST_SEED,
    }


class OnnxBackend(door.Backend):
    """A folder of ONNX Runtime GenAI."""

    name = "onnxruntime-genai"
    sampling = frozenset({"temperature", "top_p", "top_k", "repetition_penalty", "seed"})

    def __init__(self, options: argparse.Namespace) -> None:
        self.og = importlib.import_module("onnxruntime_genai")
        if hasattr(self.og, "disable_telemetry_events"):
            self.og.disable_telemetry_events()
        told = folder_config(options.model)
        config = configured(self.og, options, told)
        self.model = self.og.Model(config)
        self.device = str(self.model.device_type).lower()
        if options.device and self.device != options.device:
            raise door.OptionError(
                "device {} was asked for, and the model is on {}".format(options.device, self.device)
            )
        self.tokenizer = self.og.Tokenizer(self.model)
        self.threads: Optional[int] = options.threads
        self.context_length = told["model"].get("context_length")
        self.vocabulary = int(told["model"].get("vocab_size") or LARGEST_SEED)
        self.eos = frozenset(int(token) for token in self.tokenizer.eos_token_ids)
        self.silent = self.eos | special_ids(options.model)
        self.batches = options.batching == "engine" or (options.batching == "auto" and has_engine(told))
        self.turns = Turns()
        self.engine = batch.Batches(self.og, self.model, min(self.eos)) if self.batches else None
        self.slots = slots_of(options, self.engine)
        self.batching = self.words(has_engine(told))
        if self.engine is not None and not has_engine(told):
            self.sampling = self.sampling - {"seed"}

    def words(self, dynamic: bool) -> str:
        """How requests share the model."""
        if self.engine is not None:
            kind = "continuous batching" if dynamic else "static batches (a new request waits until the batch is done)"
            return "{} by the library's engine, up to {} at once".format(kind, self.slots)
        if self.slots == 1:
            return "none: one request at a time, the others wait in line"
        return "none: one generator a request, up to {} at once, which take turns token by token".format(self.slots)

    def versions(self) -> Dict[str, str]:
        """The library and the runtime below it."""
        found = {name: version_of(name) for name in DISTRIBUTIONS}
        return {name: version for name, version in found.items() if version is not None}

    def props(self) -> Dict[str, Any]:
        """Device, threads and kind of model; a generator of its own has nothing left of another request."""
        cached = None if self.batches else False
        return {
            "device": self.device,
            "threads": self.threads,
            "model_type": self.model.type,
            "prefix_cache": cached,
        }

    def encode(self, text: str) -> List[int]:
        """The ids of a text."""
        return [int(token) for token in self.tokenizer.encode(text)]

    def encode_chat(self, messages: List[Dict[str, str]]) -> List[int]:
        """The ids of a conversation under the folder's own chat template."""
        try:
            text = self.tokenizer.apply_chat_template(json.dumps(messages), add_generation_prompt=True)
        except Exception as error:
            raise door.RefusalError(400, "the chat template refuses the messages: {}".format(error)) from error
        ids = self.encode(text)
        # A template that writes the first token itself, and a tokenizer that puts one before every text.
        return ids[1:] if len(ids) > 1 and ids[0] == ids[1] == self.tokenizer.bos_token_id else ids

    def generate(
        self, ids: List[int], params: door.Params, cancelled: Callable[[], bool]
    ) -> Generator[door.Piece, None, None]:
        """Each token with its text, as it is sampled."""
        if max(ids) >= self.vocabulary:
            raise door.RefusalError(400, "token id {} is outside of the vocabulary".format(max(ids)), param="prompt")
        stream = self.tokenizer.create_stream()
        tokens = self.engine.tokens(ids, params) if self.engine is not None else self.tokens(ids, params)
        count = 0
        try:
            for token in tokens:
                count += 1
                yield token, "" if token in self.silent else stream.decode(token)
                if token in self.eos:
                    break
        finally:
            tokens.close()
        if params.ignore_eos and count < params.max_tokens:
            message = "the model ended after {} of {} tokens, although ignore_eos was asked for"
            raise RuntimeError(message.format(count, params.max_tokens))

    def tokens(self, ids: List[int], params: door.Params) -> Generator[int, None, None]:
        """Sampled ids of a generator of its own; each step, the prompt's too, is a turn."""
        search = self.og.GeneratorParams(self.model)
        search.set_search_options(**search_options(len(ids), params))
        with self.turns:
            generator = self.og.Generator(self.model, search)
            generator.append_tokens(ids)
        while True:
            with self.turns:
                if generator.is_done():
                    return
                generator.generate_next_token()
                token = int(generator.get_next_tokens()[0])
            yield token


def has_engine(told: Dict[str, Any]) -> bool:
    """Whether the folder was built for the batching engine."""
    return "dynamic_batching" in told.get("engine", {})


def slots_of(options: argparse.Namespace, engine: Optional[batch.Batches]) -> int:
    """Requests at once."""
    asked = int(options.max_num_seqs)
    return asked if engine is None else min(asked, engine.largest)


def folder_config(folder: str) -> Dict[str, Any]:
    """The folder's configuration; the library says itself what is wrong with one that can't be read."""
    try:
        with open(os.path.join(folder, CONFIG), encoding="utf-8") as lines:
            told = json.load(lines)
    except (OSError, ValueError):
        return {"model": {}}
    return told if isinstance(told, dict) and isinstance(told.get("model"), dict) else {"model": {}}


def configured(og: Any, options: argparse.Namespace, told: Dict[str, Any]) -> Any:
    """The library's configuration with the provider, threads and overlays that were asked for."""
    config = og.Config(options.model)
    session = told["model"].get("decoder", {}).get("session_options", {})
    providers = [name.lower() for entry in session.get("provider_options") or [] for name in entry]
    if options.device == "cpu" or (options.device and options.device not in providers):
        config.clear_providers()
    if options.device == "cuda" and "cuda" not in providers:
        config.append_provider("cuda")
    if options.threads:
        config.overlay(json.dumps(decoder_session({"intra_op_num_threads": options.threads})))
    kind = "dynamic_batching" if has_engine(told) else "static_batching"
    if options.batching != "turns" and options.max_num_seqs > 1:
        config.overlay(json.dumps({"engine": {kind: {"max_batch_size": options.max_num_seqs}}}))
    for overlay in options.overlay:
        config.overlay(overlay)
    return config


def decoder_session(values: Dict[str, Any]) -> Dict[str, Any]:
    """An overlay of the decoder's session options."""
    return {"model": {"decoder": {"session_options": values}}}


def special_ids(folder: str) -> FrozenSet[int]:
    """Ids that stand for no text; empty where the tokenizer's file does not tell."""
    try:
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as lines:
            added = json.load(lines).get("added_tokens") or []
    except (OSError, ValueError):
        return frozenset()
    return frozenset(token["id"] for token in added if token.get("special"))


def version_of(name: str) -> Optional[str]:
    """The version of a distribution; None when it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Serve until a signal comes."""
    parser = door.parser("Serve a model folder of ONNX Runtime GenAI.")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: as the folder says")
    parser.add_argument("--threads", type=door.positive, help="of the whole server; default: the runtime's")
    parser.add_argument("--max-num-seqs", type=door.positive, default=1, help="requests at once")
    parser.add_argument("--batching", choices=MODES, default="auto")
    parser.add_argument("--overlay", action="append", default=[], metavar="JSON", help="laid over genai_config.json")
    return door.main(OnnxBackend, parser)


if __name__ == "__main__":
    sys.exit(main())
