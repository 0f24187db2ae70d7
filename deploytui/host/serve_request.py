"""What a request for completion asks for, in OpenAI's words; what can't be followed is refused, never passed over."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from deploytui.host import serve_backend as contract
else:
    import serve_backend as contract

MAX_STOPS = 16

OWN = {
    *("model", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens", "stop"),
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "ignore_eos"),
}
HARMLESS = {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "cache_prompt"}
"""Fields that can't change what is generated here."""

NEUTRAL: Dict[str, Tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "suffix": ("",),
    "min_tokens": (0,),
    "typical_p": (1,),
    "skip_special_tokens": (True,),
    "add_generation_prompt": (True,),
    "chat_template_kwargs": ({},),
}
"""Fields nobody here can follow, with the values that ask for nothing."""

NOTHING: Dict[str, Any] = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "seed": None}
"""Values of sampling fields that ask for nothing."""


class Ask(NamedTuple):
    """A request that was understood, but for the length of its prompt."""

    chat: bool
    model: str
    prompt: Any
    """Text or ids, or the messages of a chat."""
    max_tokens: Optional[int]
    """None: as many as the context holds."""
    params: contract.Params
    """With a `max_tokens` that is not yet final."""
    stops: Tuple[str, ...]
    stream: bool
    include_usage: bool


def refusal(message: str, **fields: Any) -> contract.RefusalError:
    """A request that is wrong in itself."""
    return contract.RefusalError(400, message, **fields)


def body_of(data: bytes) -> Dict[str, Any]:
    """The JSON object of a request; RefusalError when it is none."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise refusal("the body is not JSON: {}".format(error)) from error
    if not isinstance(body, dict):
        raise refusal("the body is not a JSON object")
    return {name: value for name, value in body.items() if value is not None}


def understood(body: Dict[str, Any], chat: bool, followed: Any) -> Ask:
    """The request; `followed` are the sampling fields that the backend can follow."""
    refuse_foreign(body)
    stream = flag(body, "stream")
    options = body.get("stream_options", {})
    if not isinstance(options, dict) or set(options) - {"include_usage", "continuous_usage_stats"}:
        raise refusal("stream_options is not understood: {}".format(shown(options)))
    return Ask(
        chat=chat,
        model=text(body, "model"),
        prompt=messages_of(body) if chat else prompt_of(body),
        max_tokens=limit(body),
        params=sampling(body, followed),
        stops=stops_of(body),
        stream=stream,
        include_usage=bool(options.get("include_usage")),
    )


def shown(value: Any) -> str:
    """A value in a message, not too long."""
    return json.dumps(value)[:80]


def refuse_foreign(body: Dict[str, Any]) -> None:
    """RefusalError for the first field that would change the answer and can't be followed."""
    for name, value in body.items():
        if name in OWN or name in HARMLESS:
            continue
        if not any(same(value, neutral) for neutral in NEUTRAL.get(name, ())):
            raise refusal("{} = {} is not supported by this server".format(name, shown(value)), param=name)


def same(value: Any, neutral: Any) -> bool:
    """Whether they are equal and both are booleans or neither is: True is no 1 here."""
    return bool(value == neutral) and isinstance(value, bool) == isinstance(neutral, bool)


def flag(body: Dict[str, Any], name: str) -> bool:
    """A yes or no, no by default."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise refusal("{} is true or false, not {}".format(name, shown(value)), param=name)
    return value


def text(body: Dict[str, Any], name: str) -> str:
    """A text that has to be there."""
    value = body.get(name)
    if not isinstance(value, str):
        raise refusal("{} is missing or no text".format(name), param=name)
    return value


def number(body: Dict[str, Any], name: str, low: float, high: Optional[float] = None) -> Optional[float]:
    """A number within its limits; None when it is absent."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refusal("{} is no number: {}".format(name, shown(value)), param=name)
    if not math.isfinite(value) or value < low or (high is not None and value > high):
        bounds = "at least {}".format(low) if high is None else "within {} and {}".format(low, high)
        raise refusal("{} is {} and has to be {}".format(name, value, bounds), param=name)
    return value


def whole(body: Dict[str, Any], name: str, low: int) -> Optional[int]:
    """A whole number; None when it is absent."""
    value = number(body, name, low)
    if value is not None and value != int(value):
        raise refusal("{} is no whole number: {}".format(name, value), param=name)
    return None if value is None else int(value)


def limit(body: Dict[str, Any]) -> Optional[int]:
    """The most tokens of the answer; the newer of the two names wins."""
    newer = whole(body, "max_completion_tokens", 1)
    return newer if newer is not None else whole(body, "max_tokens", 1)


def sampling(body: Dict[str, Any], followed: Any) -> contract.Params:
    """The sampling parameters; RefusalError for one that is set and that the backend can't follow."""
    temperature = number(body, "temperature", 0, 100)
    top_p = number(body, "top_p", 0, 1)
    penalty = number(body, "repetition_penalty", 0, 100)
    params = contract.Params(
        max_tokens=1,
        temperature=1.0 if temperature is None else float(temperature),
        top_p=1.0 if top_p is None else float(top_p),
        top_k=_top_k(body),
        min_p=number(body, "min_p", 0, 1),
        repetition_penalty=penalty,
        seed=whole(body, "seed", -(2**63)),
        ignore_eos=flag(body, "ignore_eos"),
    )
    if penalty == 0:
        raise refusal("repetition_penalty is 0 and has to be above it", param="repetition_penalty")
    for name, nothing in NOTHING.items():
        value = getattr(params, name)
        if value is not None and value != nothing and name not in followed:
            raise refusal("{} = {} is not supported by this engine".format(name, value), param=name)
    return params


def _top_k(body: Dict[str, Any]) -> Optional[int]:
    """How many tokens are chosen from; both 0 and -1 stand for all."""
    value = whole(body, "top_k", -1)
    return 0 if value == -1 else value


def stops_of(body: Dict[str, Any]) -> Tuple[str, ...]:
    """The texts that end an answer."""
    stop = body.get("stop", [])
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops) or len(stops) > MAX_STOPS:
        raise refusal("stop is a text or a list of up to {} texts, none empty".format(MAX_STOPS), param="stop")
    return tuple(stops)


def prompt_of(body: Dict[str, Any]) -> Any:
    """Text or ids; a list of one text is that text."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, str) or (isinstance(prompt, list) and prompt and all(is_id(one) for one in prompt)):
        return prompt
    raise refusal("prompt is one text or one list of token ids", param="prompt")


def is_id(value: Any) -> bool:
    """Whether it can be a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def messages_of(body: Dict[str, Any]) -> List[Dict[str, str]]:
    """The conversation as plain roles and texts."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refusal("messages is missing, empty or no list", param="messages")
    return [message_of(message) for message in messages]


def message_of(message: Any) -> Dict[str, str]:
    """One message; RefusalError where it holds more than text."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise refusal("a message is an object with role and content", param="messages")
    more = sorted(name for name in message if name not in ("role", "content") and message[name])
    if more:
        raise refusal("messages with {} are not supported by this server".format(", ".join(more)), param="messages")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(text_part(part) for part in content)
    if not isinstance(content, str):
        raise refusal("the content of a message is text", param="messages")
    return {"role": message["role"], "content": content}


def text_part(part: Any) -> str:
    """The text of a part of a message; RefusalError for an image or a sound."""
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise refusal("a message part of type {} is not supported: text only".format(shown(kind)), param="messages")
