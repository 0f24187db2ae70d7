"""What is said to whoever started a command: results on standard output, words on standard error."""

import os
import sys
from contextlib import suppress
from typing import TextIO

from deploytui.errors import DeployError
from deploytui.profile.secret_names import masked, secret_values

ASCII = str.maketrans(
    {"✔": "+", "✘": "x", "·": "-", "–": "-", "—": "-", "×": "x", "≤": "<=", "≥": ">=", "…": "...", "±": "+-", "★": "*"}
    | {"→": "->", "“": '"', "”": '"', "’": "'"}
)


def say(text: str) -> None:
    """A result and a newline on standard output, without secrets; as `say_bytes` where that can't take it."""
    encoding = _known(sys.stdout.encoding or "ascii") if sys.stdout else "ascii"
    say_bytes(f"{fitting(shown(hidden(text)), encoding)}\n".encode(encoding))


def say_bytes(content: bytes) -> None:
    """A result on standard output; DeployError when it can't be written, BrokenPipeError when its reader is gone."""
    out = sys.stdout
    if out is None:
        raise DeployError("Standard output is closed.", fix="Leave it open, or name a file.")
    try:
        out.flush()
        rest = memoryview(content)
        while rest:  # with PYTHONUNBUFFERED a write may be a part, at a full disk or when the reader goes
            rest = rest[out.buffer.write(rest) :]
        out.flush()
    except OSError as error:
        _let_go(out)
        if isinstance(error, BrokenPipeError):
            raise
        raise DeployError("Standard output can't be written.", why=str(error), fix="Name a file elsewhere.") from error


def tell(text: str) -> None:
    """Words and a newline on standard error, without secrets; that nobody reads them there is no reason to stop."""
    err = sys.stderr
    if err is None:
        return
    try:
        err.write(f"{fitting(shown(hidden(text)), err.encoding)}\n")
        err.flush()
    except OSError:
        _let_go(err)


def hidden(text: str) -> str:
    """The text without the secrets of this process's environment."""
    return masked(text, secret_values(os.environ))


def shown(text: str) -> str:
    """The text with every sign spelled out that a terminal might obey; its lines stay lines."""
    return "".join(sign if sign == "\n" or sign.isprintable() else _spelled(sign) for sign in text)


def _spelled(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def fitting(text: str, encoding: str | None) -> str:
    """The text with plain signs in place of those the encoding lacks."""
    name = _known(encoding or "ascii")
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return text.translate(ASCII).encode(name, "backslashreplace").decode(name)
    return text


def _known(encoding: str) -> str:
    try:
        "".encode(encoding)
    except LookupError:
        return "ascii"
    return encoding


def _let_go(stream: TextIO) -> None:
    """What is left in a broken stream goes nowhere: the interpreter writes it out once more at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
