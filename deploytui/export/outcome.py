"""The end of a run for whoever waits for it: the table on standard error, the result where it was asked for."""

import os
from pathlib import Path

import msgspec

from deploytui.errors import DeployError
from deploytui.export.formats import export_text
from deploytui.export.plain import harmless
from deploytui.export.target import STDOUT
from deploytui.profile.files import save_bytes
from deploytui.record.state import SessionState
from deploytui.session.folder import SessionFolder
from deploytui.session.secrets import masked_json, secret_values
from deploytui.session.speech import hidden, say, say_bytes, tell


def put(content: bytes, where: str, *, text: bool = False) -> None:
    """Write a result without secrets; text goes to standard output in the signs that has, to a file as it is."""
    content = _without_secrets(content) if text else harmless(_without_secrets(content))
    if where != STDOUT:
        save_bytes(Path(where), content)
    elif text:
        say(content.decode().rstrip("\n"))
    else:
        say_bytes(content)


def _without_secrets(content: bytes) -> bytes:
    """What holds one is laid out anew where it is JSON; anything else is text."""
    try:
        shown = masked_json(content, secret_values(os.environ))
    except msgspec.DecodeError:
        return hidden(content.decode("utf-8", "replace")).encode()
    return content if shown is content else msgspec.json.format(shown, indent=2) + b"\n"


def report_outcome(folder: SessionFolder, unwritten: SessionState | None, json_file: str | None) -> bool:
    """Show how a session ended and write its result; whether that could be done.

    `unwritten` is the state of a session whose journal could not take all of it.
    """
    tell(export_text(folder, "text", newer=unwritten).decode().rstrip("\n"))
    if unwritten is not None:
        tell(f"The journal in {folder.path} lacks a part of this: keep what is shown here, or the result of --json.")
    try:
        if json_file is not None:
            put(export_text(folder, "json", newer=unwritten), json_file)
    except BrokenPipeError:
        return False
    except DeployError as error:
        tell(f"deploytui: {error.text()}")
        return False
    return True
