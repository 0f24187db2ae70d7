"""What a secret is called, and which values are one: in an environment, in a profile, in anything shown or written."""

import re
from collections.abc import Iterable, Iterator, Mapping

SHORTEST = 8
"""Values shorter than this hide nothing, and would hide half of a text [characters]."""
HIDDEN = "…"

_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEYS?|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY)(_|$)",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(^|[\s\"'])(?:--?)?"
    r"([\w-]*(?:api[-_]?keys?|secret|password|passwd|credentials?|(?:hf|hub|auth|access|bearer|admin)[-_]token))"
    r"(?:=|\s+)[\"']?([^\s\"']+)",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"(^|[\s\"'])([A-Z][A-Z0-9_]*)=[\"']?([^\s\"']+)")


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds a secret, such as HF_TOKEN or OPENAI_API_KEY."""
    return _NAME.search(name) is not None


def hides(value: str) -> bool:
    """Whether a value behind such a name is one: a path, a number, a short word or a variable's name is none.

    What is no Unicode is none either: no request could hold it.
    """
    plain = value.isdigit() or value.startswith(("/", "~/", "./", "$", "{"))
    return len(value) >= SHORTEST and not plain and not any("\ud800" <= sign <= "\udfff" for sign in value)


def secret_values(environment: Mapping[str, str], named: Iterable[str] = ()) -> tuple[str, ...]:
    """The secrets in an environment, the longest first; `named` are variables that hold one whatever their name."""
    names = set(named)
    values = {value.strip() for name, value in environment.items() if name in names or is_secret_name(name)}
    return tuple(sorted((value for value in values if hides(value)), key=lambda value: (-len(value), value)))


def secrets_told(words: Iterable[str]) -> Iterator[str]:
    """The names behind which a secret stands in the words of a command: `--api-key X`, `HF_TOKEN=X`."""
    text = "\n".join(words)
    for _, name, value in _OPTION.findall(text):
        if hides(value) and not value.startswith("-"):
            yield name.lstrip("-")
    yield from (name for _, name, value in _VARIABLE.findall(text) if is_secret_name(name) and hides(value))


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
