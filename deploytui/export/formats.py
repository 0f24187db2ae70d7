"""The formats results can be exported in, by name."""

from collections.abc import Callable
from pathlib import Path

from deploytui.errors import UsageError
from deploytui.export.reopen import saved_unreadable, state_from_saved
from deploytui.export.result import json_bytes, result, session_parts
from deploytui.export.saved import saved_text
from deploytui.export.streams import STREAMS
from deploytui.export.table import summary_text
from deploytui.profile.files import read_profile
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.schema import Profile
from deploytui.record.state import SessionState
from deploytui.session.folder import SessionFolder

Writer = Callable[[Profile, SessionState, int], bytes]
"""Profile, state and the number of unreadable journal lines to the bytes of a file."""

FORMATS: dict[str, Writer] = {
    "json": lambda profile, state, unreadable: json_bytes(result(profile, state, unreadable_lines=unreadable)),
    "toml": lambda profile, state, unreadable: saved_text(profile, state, unreadable).encode("utf-8"),
    "text": lambda profile, state, unreadable: summary_text(profile, state, unreadable_lines=unreadable).encode(),
}


def export_text(source: SessionFolder | Path, format_name: str, *, newer: SessionState | None = None) -> bytes:
    """The results of a session, or of a saved profile, in a format of `FORMATS`; `newer` is the state of the session
    where its runner knows more than its journal could take.

    UsageError names the nearest format; ProfileError when a profile holds no results, SessionError when the folder
    can't be read.
    """
    write = FORMATS.get(format_name)
    if write is None:
        raise UsageError(f"There is no format {format_name!r}.", fix=did_you_mean(format_name, [*FORMATS, *STREAMS]))
    profile, state, unreadable = _parts(source)
    return write(profile, newer or state, unreadable)


def _parts(source: SessionFolder | Path) -> tuple[Profile, SessionState, int]:
    if isinstance(source, SessionFolder):
        return session_parts(source)
    if source.is_dir():
        return session_parts(SessionFolder(source))
    profile = read_profile(source)
    return profile, state_from_saved(profile), saved_unreadable(profile)
