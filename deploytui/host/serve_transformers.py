"""Serve a causal language model with Transformers and torch; run by path in the interpreter that has them.

    python serve_transformers.py --model FOLDER --port 8080 --alias NAME --device cuda --dtype bfloat16

A `.gguf` file is loaded too: its weights are dequantised to `--dtype`. `--device cuda` never falls back: without CUDA
torch's own words end the process. Weights are read from safetensors alone unless `--allow-pickle`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, List, Set

if TYPE_CHECKING:
    from deploytui.host import serve_openai as door
    from deploytui.host import serve_torch as on_torch
else:
    import serve_openai as door
    import serve_torch as on_torch

    door.leave_folder()

LOOK_S = 0.1
"""How often a generation that gives no token is asked whether it is still wanted [s]."""

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")


class Transformers(door.Backend):
    """A model loaded by Transformers, generating by its own `generate`."""

    name = "transformers"
    sampling = frozenset(SAMPLING)

    def __init__(self, options: argparse.Namespace) -> None:
        on_torch.use_threads(options.threads)
        on_torch.claim_device(options.device)
        self.model, self.tokenizer = loaded(options)
        self.options = options
        self.eos = frozenset(ends(self.model, self.tokenizer))
        self.context_length = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        neutral(self.model, self.eos)

    def versions(self) -> Dict[str, str]:
        """Transformers first."""
        return on_torch.versions("transformers", "torch", "accelerate", "tokenizers", "gguf")

    def props(self) -> Dict[str, Any]:
        """How the model lies and computes."""
        return {
            **on_torch.props(self.model),
            "gguf": "weights dequantised to {}".format(self.model.dtype) if is_gguf(self.options.model) else None,
            # Each request is computed from its beginning, and its prompt in one step.
            "prefix_cache": False,
            "chunked_prefill": False,
            "trust_remote_code": self.options.trust_remote_code,
            "allow_pickle": self.options.allow_pickle,
        }

    def memory(self) -> Dict[str, Any]:
        """What torch has allocated and reserved on its GPUs."""
        return on_torch.memory()

    def encode(self, text: str) -> List[int]:
        """A plain prompt, with the tokenizer's own beginning."""
        return list(self.tokenizer(text).input_ids)

    def encode_chat(self, messages: List[Dict[str, str]]) -> List[int]:
        """The conversation under the chat template."""
        if not self.tokenizer.chat_template:
            raise door.RefusalError(400, "the model has no chat template; ask /v1/completions")
        from jinja2.exceptions import TemplateError

        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise door.RefusalError(400, "the chat template refuses the messages: {}".format(error)) from error
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def generate(
        self, ids: List[int], params: door.Params, cancelled: Callable[[], bool]
    ) -> Generator[door.Piece, None, None]:
        """Tokens as `generate` hands them to its streamer, which is when they are sampled."""
        vocabulary = self.model.get_input_embeddings().num_embeddings
        if max(ids) >= vocabulary:
            message = "token id {} is outside of the vocabulary of {}".format(max(ids), vocabulary)
            raise door.RefusalError(400, message, param="prompt")
        text = door.Detokenizer(self.decode, ids)
        run = Run(self.model, ids, params)
        try:
            for token in run.tokens(cancelled):
                yield token, "" if token in self.eos else text.piece(token)
            yield None, text.rest()
        finally:
            run.leave()

    def decode(self, ids: List[int]) -> str:
        """Their text, without special tokens."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


class Run:
    """One call of `generate`, in a thread of its own; it is streamer and stopping criterion at once."""

    def __init__(self, model: Any, ids: List[int], params: door.Params) -> None:
        self.model, self.ids, self.params = model, ids, params
        self.given: SimpleQueue[Any] = SimpleQueue()
        self.unwanted = threading.Event()
        self.prompt_seen = False
        self.thread = threading.Thread(target=self._compute, daemon=True)
        self.thread.start()

    def tokens(self, cancelled: Callable[[], bool]) -> Generator[int, None, None]:
        """Each token's id; raises what the computation raised."""
        while True:
            try:
                given = self.given.get(timeout=LOOK_S)
            except Empty:
                if cancelled():
                    return
                continue
            if given is None:
                return
            if isinstance(given, BaseException):
                raise given
            yield given

    def leave(self) -> None:
        """Stop it after the token it computes now, and wait for that."""
        self.unwanted.set()
        self.thread.join()

    def put(self, value: Any) -> None:
        """As a streamer: first the prompt, then a token each time."""
        if self.prompt_seen:
            self.given.put(int(value.reshape(-1)[0]))
        self.prompt_seen = True

    def end(self) -> None:
        """As a streamer: nothing is held back."""

    def __call__(self, input_ids: Any, scores: Any, **more: Any) -> Any:
        """As a stopping criterion: whether nobody wants more."""
        import torch

        return torch.full((input_ids.shape[0],), self.unwanted.is_set(), device=input_ids.device, dtype=torch.bool)

    def _compute(self) -> None:
        try:
            self._generate()
            self.given.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the tokens are waited for
            self.given.put(error)

    def _generate(self) -> None:
        import torch
        from transformers import StoppingCriteriaList

        if self.params.seed is not None:
            torch.manual_seed(self.params.seed)
        prompt = torch.tensor([self.ids], device=self.model.device)
        with torch.inference_mode():
            self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                generation_config=configured(self.model, self.params),
                streamer=self,
                stopping_criteria=StoppingCriteriaList([self]),
            )


def configured(model: Any, params: door.Params) -> Any:
    """The request in Transformers' words; what it does not ask for stays neutral."""
    import copy

    config = copy.deepcopy(model.generation_config)
    config.max_new_tokens = params.max_tokens
    # Masks the ends of an answer until there are so many tokens, so that each of them has text.
    config.min_new_tokens = params.max_tokens if params.ignore_eos else None
    config.do_sample = params.temperature > 0
    if params.repetition_penalty is not None:
        config.repetition_penalty = params.repetition_penalty
    if config.do_sample:
        config.temperature, config.top_p, config.top_k = params.temperature, params.top_p, params.top_k or 0
        config.min_p = params.min_p
    return config


def neutral(model: Any, eos: Any) -> None:
    """Forget the sampling that the model's authors recommend: every engine is asked for the same."""
    from transformers import GenerationConfig

    old = model.generation_config
    pad = old.pad_token_id if old.pad_token_id is not None else next(iter(sorted(eos)), None)
    model.generation_config = GenerationConfig(
        bos_token_id=old.bos_token_id, eos_token_id=sorted(eos) or None, pad_token_id=pad
    )


def ends(model: Any, tokenizer: Any) -> Set[int]:
    """The ids that end an answer, by the model's generation config and the tokenizer."""
    told = model.generation_config.eos_token_id
    listed = told if isinstance(told, list) else [told]
    return {int(one) for one in (*listed, tokenizer.eos_token_id) if one is not None}


def is_gguf(model: str) -> bool:
    """Whether it is a GGUF file."""
    return model.endswith(".gguf")


def loaded(options: argparse.Namespace) -> Any:
    """The model and its tokenizer; whatever Transformers raises when that does not work out."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, shared = options.model, {"trust_remote_code": options.trust_remote_code}
    if is_gguf(options.model):
        folder, shared["gguf_file"] = os.path.split(os.path.abspath(options.model))
    tokenizer = AutoTokenizer.from_pretrained(folder, **shared)
    if not options.allow_pickle and not is_gguf(options.model):
        shared["use_safetensors"] = True
    if options.attn_implementation:
        shared["attn_implementation"] = options.attn_implementation
    placed = on_torch.placement(options.device, options.device_map)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=options.dtype, **placed, **shared).eval()
    return on_torch.on_device(model, options.device), tokenizer


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = door.parser("Serve a causal language model with Transformers.")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--device-map", help="auto, balanced, balanced_low_0 or sequential: over all visible GPUs")
    options.add_argument("--dtype", default="auto", help="auto, float32, bfloat16, float16")
    options.add_argument("--threads", type=door.positive)
    options.add_argument("--attn-implementation", help="eager, sdpa, flash_attention_2 …; default: Transformers'")
    options.add_argument("--trust-remote-code", action="store_true")
    options.add_argument("--allow-pickle", action="store_true")
    return options


if __name__ == "__main__":
    sys.exit(door.main(Transformers, parser()))
