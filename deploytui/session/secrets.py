"""Secrets come from the environment; whatever is shown or written holds a dot in their place."""

from typing import Any

import msgspec

from deploytui.profile.secret_names import HIDDEN, is_secret_name, masked, secret_values
from deploytui.record.events import AnyEvent, decoder, encode

__all__ = ["HIDDEN", "is_secret_name", "masked", "masked_event", "masked_json", "secret_values"]


def masked_event(event: AnyEvent, secrets: tuple[str, ...]) -> AnyEvent:
    """The event without the secrets; the very same where it holds none."""
    if not secrets:
        return event
    line = encode(event)
    shown = masked_json(line, secrets)
    if shown is line:
        return event
    try:
        return decoder.decode(shown)
    except msgspec.ValidationError:  # a secret that is one of our own words hides nothing there
        return event


def masked_json(content: bytes, secrets: tuple[str, ...]) -> bytes:
    """JSON whose texts are without the secrets; its keys stay, and it is the very same where it holds none."""
    if not any(_in_json(secret) in content for secret in secrets):
        return content
    plain = msgspec.json.decode(content)
    shown = _masked(plain, secrets)
    return content if shown == plain else msgspec.json.encode(shown)


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    match value:
        case str():
            return masked(value, secrets)
        case list():
            return [_masked(item, secrets) for item in value]
        case dict():
            return {key: _masked(item, secrets) for key, item in value.items()}
        case _:
            return value


def _in_json(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]
