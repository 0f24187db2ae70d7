"""Which folder the relative paths of a profile start from."""

from contextlib import suppress
from pathlib import Path

from deploytui.errors import SessionError
from deploytui.profile.places import base_dir_of
from deploytui.profile.schema import Profile
from deploytui.session.folder import SessionFolder, is_session
from deploytui.session.tail import load_state


def origin(profile: Profile, path: Path) -> Path:
    """The profile's own folder; for the copy in a session's folder the one it was copied from, as its journal tells."""
    folder = SessionFolder(path.absolute().parent)
    if path.name == folder.profile.name and is_session(folder.path):
        with suppress(SessionError):
            started = load_state(folder.journal)[0].first_started
            if started is not None and Path(started.base_dir).is_dir():
                return Path(started.base_dir)
    return base_dir_of(profile, path)
