"""Serve one GGUF file with the llama_cpp package (llama-cpp-python); run by path.

    python serve_llama_cpp.py --model FILE --port 8080 --alias NAME --max-model-len 2048 --threads 2 --set n_batch=512

The package's own server counts no tokens; here each id that is sampled is counted. Each `--set` names a parameter of
its `Llama` class. One request at a time: the class holds one sequence.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import itertools
import json
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, List

if TYPE_CHECKING:
    import argparse

    from deploytui.host import serve_openai as door
else:
    import serve_openai as door

    door.leave_folder()

DISTRIBUTION = "llama_cpp_python"
ALL_LAYERS = 999
PLAIN_TYPES = ("f32", "f16", "bf16")


class LlamaBackend(door.Backend):
    """A GGUF file in llama_cpp.Llama."""

    name = "llamacpp"
    batching = "none: the Llama class holds one sequence; one request at a time, the others wait in line"
    slots = 1
    sampling = frozenset({"temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed"})

    def __init__(self, options: argparse.Namespace) -> None:
        self.library = importlib.import_module("llama_cpp")
        if options.device == "cuda" and not self.library.llama_supports_gpu_offload():
            raise door.OptionError("llama_cpp sees no GPU: it was built without CUDA, or there is none")
        self.reuses = not options.no_prefix_cache
        self.settings = parameters(self.library, options)
        self.llama = self.library.Llama(model_path=options.model, verbose=True, **self.settings)
        self.llama.verbose = False
        self.context_length = int(self.llama.n_ctx())
        vocabulary = self.library.llama_model_get_vocab(self.llama.model)
        self.size = int(self.llama.n_vocab())
        ends = self.library.llama_vocab_is_eog
        self.eos = frozenset(token for token in range(self.size) if ends(vocabulary, token))
        self.template = self.formatter()

    def formatter(self) -> Any:
        """What makes a prompt of messages; None where the file has no chat template."""
        template = self.llama.metadata.get("tokenizer.chat_template")
        if not template:
            return None
        formats = importlib.import_module("llama_cpp.llama_chat_format")
        first, last = (self.special(token) for token in (self.llama.token_bos(), self.llama.token_eos()))
        return formats.Jinja2ChatFormatter(template=template, eos_token=last, bos_token=first)

    def special(self, token: int) -> str:
        """The text that stands for a special token; empty where there is none."""
        return str(self.llama.detokenize([token], special=True).decode("utf-8", "replace")) if token >= 0 else ""

    def versions(self) -> Dict[str, str]:
        """The package, which brings its own llama.cpp."""
        return {"llama-cpp-python": importlib.metadata.version(DISTRIBUTION)}

    def props(self) -> Dict[str, Any]:
        """Threads, layers on the GPU, and what the build can do."""
        told = {name: value for name, value in self.settings.items() if isinstance(value, (bool, int, float, str))}
        build = self.library.llama_print_system_info().decode("utf-8", "replace")
        return {"threads": int(self.llama.n_threads), "system_info": build, "prefix_cache": self.reuses, **told}

    def encode(self, text: str) -> List[int]:
        """The ids of a text, with the first token that the model wants."""
        return list(self.llama.tokenize(text.encode(), add_bos=True, special=True))

    def encode_chat(self, messages: List[Dict[str, str]]) -> List[int]:
        """The ids of a conversation under the file's chat template."""
        if self.template is None:
            raise door.RefusalError(400, "the GGUF file has no chat template; ask for a completion")
        try:
            text = self.template(messages=messages).prompt
        except Exception as error:
            raise door.RefusalError(400, "the chat template refuses the messages: {}".format(error)) from error
        ids = self.encode(text)
        return ids[1:] if len(ids) > 1 and ids[0] == ids[1] == self.llama.token_bos() else ids

    def generate(
        self, ids: List[int], params: door.Params, cancelled: Callable[[], bool]
    ) -> Generator[door.Piece, None, None]:
        """Each token with its bytes, as it is sampled; after an end of answer it goes on where that is asked for."""
        if max(ids) >= self.size:
            raise door.RefusalError(400, "token id {} is outside of the vocabulary".format(max(ids)), param="prompt")
        if not self.reuses:
            self.llama.reset()
        self.llama.set_seed(self.library.LLAMA_DEFAULT_SEED if params.seed is None else params.seed % 2**32)
        tokens = self.llama.generate(ids, **sampling(params), logits_processor=self.processors(params))
        for token in itertools.islice(tokens, params.max_tokens):
            yield int(token), self.llama.detokenize([token])
            if token in self.eos and not params.ignore_eos:
                return

    def processors(self, params: door.Params) -> Any:
        """What makes an end of the answer impossible, where that is asked for; None otherwise."""
        if not params.ignore_eos:
            return None
        ends = sorted(self.eos)

        def without_end(_ids: Any, scores: Any) -> Any:
            scores[ends] = -float("inf")
            return scores

        return self.library.LogitsProcessorList([without_end])


def sampling(params: door.Params) -> Dict[str, Any]:
    """The request in the library's words; every one is given, since it has defaults of its own."""
    return {
        "temp": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k or 0,
        "min_p": params.min_p or 0.0,
        "repeat_penalty": params.repetition_penalty or 1.0,
    }


def parameters(library: Any, options: argparse.Namespace) -> Dict[str, Any]:
    """What `Llama` is made with."""
    made: Dict[str, Any] = {"n_ctx": options.max_model_len or 0}
    if options.threads:
        made["n_threads"] = made["n_threads_batch"] = options.threads
    layers = ALL_LAYERS if options.gpu_layers is None and options.device == "cuda" else options.gpu_layers
    if layers is not None:
        made["n_gpu_layers"] = layers
    if options.cache_type:
        made["type_k"] = made["type_v"] = cache_type(library, options.cache_type)
        # A quantised V cache exists only with flash attention.
        made["flash_attn"] = options.cache_type not in PLAIN_TYPES
    known = inspect.signature(library.Llama.__init__).parameters
    for setting in options.set:
        name, _, text = setting.partition("=")
        if name not in known or name in ("self", "model_path", "verbose", "kwargs"):
            raise door.OptionError("unknown parameter {!r} of Llama".format(name))
        made[name] = value_of(text)
    return made


def cache_type(library: Any, name: str) -> int:
    """The library's number of a type."""
    number = getattr(library, "GGML_TYPE_" + name.upper(), None)
    if number is None:
        raise door.OptionError("llama_cpp has no type {!r} for the KV cache".format(name))
    return int(number)


def value_of(text: str) -> Any:
    """A value as JSON, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> int:
    """Serve until a signal comes."""
    parser = door.parser("Serve a GGUF file with llama_cpp.")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=door.positive)
    parser.add_argument("--gpu-layers", type=int, help="default: all with --device cuda, else the library's")
    parser.add_argument("--cache-type", help="of the KV cache, such as q8_0")
    parser.add_argument("--no-prefix-cache", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return door.main(LlamaBackend, parser)


if __name__ == "__main__":
    sys.exit(main())
