"""Where a profile's files are."""

import os
from pathlib import Path

from deploytui.profile.schema import Profile


def demo_path() -> Path:
    """The embedded example's profile; its relative paths start beside it."""
    return Path(__file__).with_name("demo.toml")


def user_path(text: str | Path) -> Path:
    """The path with a `~` at its beginning taken for a home; as it is written where nobody has such a home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def base_dir_of(profile: Profile, path: str | Path) -> Path:
    """The folder that relative paths of a profile start from: its own, or the one where a saved session was run.

    A saved session that was carried to another machine falls back to the file's own folder.
    """
    recorded = profile.session.get("base_dir") if isinstance(profile.session, dict) else None
    if isinstance(recorded, str) and Path(recorded).is_dir():
        return Path(recorded)
    return Path(os.path.realpath(path)).parent
