"""What a word on a command line names: a file or a session."""

import shlex
from collections.abc import Callable
from pathlib import Path

from deploytui.errors import UsageError
from deploytui.profile.files import read_text
from deploytui.session.folder import SessionFolder, find_session


def may_be_opened(word: str) -> bool:
    """Whether a word can mean a file or a session; the ids of sessions begin with a date."""
    return word[:1].isdigit() or any(sign in word for sign in "./\\~") or holds(Path.exists, word)


def named(word: str, state: Path) -> Path | SessionFolder:
    """The file or the session that is meant; ProfileError or SessionError when there is neither."""
    if holds(Path.is_file, word) and Path(word).name != "journal.jsonl":
        return Path(word)
    if word.endswith(".toml") and not holds(Path.exists, word):
        read_text(word)
    return find_session(word, state)


def holds(asked: Callable[[Path], bool], text: str) -> bool:
    """Whether a path is what is asked; a text that can't be a path is not."""
    try:
        return asked(Path(text))
    except (OSError, ValueError):
        return False


def no_screen(profile: Path | None, session: SessionFolder | None) -> UsageError:
    """The error of a screen without a terminal, with the command that goes without for what was asked."""
    instead = f"deploytui run {shlex.quote(str(profile or 'PROFILE'))} --json result.json, or deploytui demo --headless"
    if session is not None:
        instead = f"deploytui export {shlex.quote(str(session.path))} --format text"
    return UsageError("The screen needs a terminal; there is none here.", fix=f"Without one: {instead}.")
