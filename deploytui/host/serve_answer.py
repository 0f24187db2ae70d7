"""From tokens to an answer: text up to a stop string, true counts, the finish reason, events in OpenAI's shape."""

from __future__ import annotations

import codecs
import json
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

if TYPE_CHECKING:
    from deploytui.host import serve_backend as contract
    from deploytui.host import serve_request as request
else:
    import serve_backend as contract
    import serve_request as request

DONE = b"data: [DONE]\n\n"


class Text:
    """Pieces become text that can be shown: whole characters, and nothing that a stop string may begin with."""

    def __init__(self, stops: Tuple[str, ...]) -> None:
        self.stops = stops
        self.stopped = False
        self.held = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, piece: Any, last: bool = False) -> str:
        """What can be shown now; after a stop string nothing."""
        if isinstance(piece, bytes) or last:
            raw = piece if isinstance(piece, bytes) else b""
            piece = ("" if isinstance(piece, bytes) else piece) + self.decoder.decode(raw, last)
        self.held += piece
        found = [at for at in (self.held.find(stop) for stop in self.stops) if at >= 0]
        if found:
            self.stopped = True
            return self._shown(min(found))
        return self._shown(len(self.held) if last else len(self.held) - self._doubtful())

    def _shown(self, end: int) -> str:
        text, self.held = self.held[:end], "" if self.stopped else self.held[end:]
        return text

    def _doubtful(self) -> int:
        """How many characters at the end may be the beginning of a stop string."""
        sizes = (size for stop in self.stops for size in range(1, len(stop)) if self.held.endswith(stop[:size]))
        return max(sizes, default=0)


class Course:
    """One generation as it goes: what was counted, and why it ended."""

    def __init__(self, prompt_tokens: int, ask: request.Ask, params: contract.Params) -> None:
        self.prompt_tokens, self.ask, self.params = prompt_tokens, ask, params
        self.tokens = 0
        self.finish: Optional[str] = None
        self.text = Text(ask.stops)

    def texts(self, pieces: Iterator[contract.Piece], eos: Any, counted: Callable[[], None]) -> Iterator[str]:
        """The text of each token that has some; ends where the answer ends."""
        for token, piece in pieces:
            if token is not None:
                if self.tokens >= self.params.max_tokens:
                    break
                self.tokens += 1
                counted()
            shown = self.text.add(piece)
            if self.text.stopped or (token in eos and not self.params.ignore_eos):
                yield from self._end("stop", shown)
                return
            if shown:
                yield shown
        yield from self._end("length" if self.tokens >= self.params.max_tokens else "stop", "")

    def _end(self, finish: str, shown: str) -> Iterator[str]:
        """What was held back, once it is certain."""
        self.finish = finish
        rest = shown if self.text.stopped else shown + self.text.add("", last=True)
        if rest:
            yield rest

    def usage(self) -> Dict[str, int]:
        """True counts of token ids."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }


class Frame:
    """The shape of an answer, as chat or completion, in events or whole."""

    def __init__(self, ask: request.Ask, model: str, request_id: str) -> None:
        self.chat = ask.chat
        kind = "chat.completion" if ask.chat else "text_completion"
        self.shared = {
            "id": ("chatcmpl-" if ask.chat else "cmpl-") + request_id,
            "object": kind + ".chunk" if ask.chat and ask.stream else kind,
            "created": int(time.time()),
            "model": model,
        }

    def event(self, choices: List[Dict[str, Any]], **fields: Any) -> bytes:
        """One event."""
        return event({**self.shared, "choices": choices, **fields})

    def role(self) -> bytes:
        """The event that opens a chat's answer; a completion has none."""
        return self._delta({"role": "assistant", "content": ""}, None) if self.chat else b""

    def piece(self, text: str) -> bytes:
        """One token's text."""
        return self._delta({"content": text}, None) if self.chat else self._text(text, None)

    def end(self, finish: Optional[str]) -> bytes:
        """The event that says why it ended."""
        return self._delta({}, finish) if self.chat else self._text("", finish)

    def _delta(self, delta: Dict[str, Any], finish: Optional[str]) -> bytes:
        return self.event([{"index": 0, "delta": delta, "finish_reason": finish}])

    def _text(self, text: str, finish: Optional[str]) -> bytes:
        return self.event([{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}])

    def whole(self, text: str, course: Course) -> Dict[str, Any]:
        """The answer in one piece."""
        said: Dict[str, Any] = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": course.finish}
        return {**self.shared, "choices": [choice], "usage": course.usage()}


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"


def error_of(status: int, message: str, **fields: Any) -> Dict[str, Any]:
    """An error in OpenAI's shape."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
    kinds.update({429: "overloaded_error", 503: "unavailable_error"})
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "code": status, **fields}}
