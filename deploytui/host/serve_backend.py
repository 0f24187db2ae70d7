"""What a library has to do to be served over HTTP: the contract of a backend, and what a request asks of it.

A host script sits beside this file, is run by path and looks like

    import serve_openai as door                     # the script's folder is on sys.path when it is run by path
    door.leave_folder()                             # ... and no longer: nothing here stands for another module

    class Mine(door.Backend):
        def __init__(self, options): ...            # loads; an exception ends the process with status 1 and its text

    if __name__ == "__main__":
        parser = door.parser("Serve ... with ...")  # --model --port --alias --max-model-len --max-waiting
        parser.add_argument("--threads", type=int)
        sys.exit(door.main(Mine, parser))

The door binds the port, answers 503 while `Mine(options)` loads, then serves. It does everything that is HTTP or
OpenAI: the queue, stop strings, counts, finish reasons, context length, errors. A backend turns tokens into tokens.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Generator, List, NamedTuple, Optional, Sequence, Tuple, Union

Piece = Tuple[Optional[int], Union[str, bytes]]
"""One generated token: its id, and the text that it completes; id None for text that is no token's, at the end."""

BROKEN = "\ufffd"
CONTEXT = 6
LONGEST_CHARACTER = 5

MEMORY = ("allocated_bytes", "reserved_bytes", "peak_allocated_bytes", "peak_reserved_bytes")


class Params(NamedTuple):
    """How one request wants to be generated."""

    max_tokens: int
    """At least 1; prompt and answer together fit the context."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: Optional[int] = None
    """None and 0: all tokens."""
    min_p: Optional[float] = None
    repetition_penalty: Optional[float] = None
    seed: Optional[int] = None
    ignore_eos: bool = False


class RefusalError(Exception):
    """A request that can't be answered: an HTTP status, a sentence, and further fields for the error object."""

    def __init__(self, status: int, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.status, self.fields = status, fields


class Backend:
    """A loaded model; subclasses load in `__init__(options)` and override what is different."""

    name = ""
    """As in a profile, such as `transformers`."""
    batching = "none: one request at a time, the others wait in line"
    """How requests share the engine, in words for the record; the truth, as a reader would understand it."""
    slots = 1
    """Requests generated at once: `generate` runs in as many threads at a time, never more."""
    context_length: Optional[int] = None
    """Tokens of prompt and answer that the model can take; None when nobody knows."""
    eos: FrozenSet[int] = frozenset()
    """Ids that end an answer."""
    sampling: FrozenSet[str] = frozenset({"temperature", "top_p", "top_k", "seed"})
    """Fields of Params that `generate` follows; a request with another one set to what would matter is refused."""

    def versions(self) -> Dict[str, str]:
        """Distribution to version; the first is the engine's own."""
        return {}

    def props(self) -> Dict[str, Any]:
        """What else is worth knowing of how it runs: `dtype`, `device`, `threads`, `device_map` …; JSON values."""
        return {}

    def memory(self) -> Dict[str, Any]:
        """The framework's own figures: the fields of MEMORY, each None where unknown; further ones are passed on."""
        return dict.fromkeys(MEMORY)

    def encode(self, text: str) -> List[int]:
        """The ids of a plain prompt, with what the tokenizer puts before it (BOS)."""
        raise NotImplementedError

    def encode_chat(self, messages: List[Dict[str, str]]) -> List[int]:
        """The ids of a conversation under the model's own chat template, ready for the assistant's answer.

        A template that refuses the roles raises RefusalError(400, ...).
        """
        raise NotImplementedError

    def generate(self, ids: List[int], params: Params, cancelled: Callable[[], bool]) -> Generator[Piece, None, None]:
        """Every sampled token as soon as it is there, the one that ends the answer included.

        - Ends after a token of `eos`, and after `max_tokens` tokens. The door closes it earlier when a stop
          string came or the client went: clean up in `finally`.
        - With `ignore_eos` the tokens of `eos` are made impossible where the library can do that (each token then has
          text); where it can't, it goes on after them.
        - The text of a token is `str` that never has to be taken back (empty while a character is incomplete, the
          whole character with its last token; `Detokenizer` does that), or the raw `bytes`, which the door decodes.
          Special tokens have no text.
        - Asks `cancelled()` where it computes long without giving a token.
        - Whatever it raises becomes an error event (HTTP 500 before the first token), and the next request is served.
        """
        raise NotImplementedError


class Detokenizer:
    """Ids to text pieces, for tokenizers that only decode whole sequences; `decode(ids)` gives their text.

    `before` are the last ids of the prompt: a space in front of the first word is decoded only behind something.
    """

    def __init__(self, decode: Callable[[List[int]], str], before: Sequence[int] = ()) -> None:
        self.decode = decode
        self.known = list(before)[-CONTEXT:]
        self.shown = decode(self.known) if self.known else ""
        self.open: List[int] = []

    def piece(self, token: int) -> str:
        """The text this token completes; empty while it is in the middle of a character."""
        self.open.append(token)
        text = self.decode(self.known + self.open)
        # A character has at most four bytes; what is still broken after that is broken for good.
        if text.endswith(BROKEN) and len(self.open) < LONGEST_CHARACTER:
            return ""
        return self._taken(text)

    def rest(self) -> str:
        """The text of an unfinished character at the end; empty when there is none."""
        return self._taken(self.decode(self.known + self.open)) if self.open else ""

    def _taken(self, text: str) -> str:
        new = text[len(self.shown) :]
        self.known = (self.known + self.open)[-CONTEXT:]
        self.shown, self.open = self.decode(self.known), []
        return new
