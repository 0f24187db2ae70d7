"""Files a user asks for: where they go by default, and writing them."""

from datetime import datetime
from pathlib import Path

from deploytui.errors import DeployError
from deploytui.export.formats import export_text
from deploytui.export.saved import save_session
from deploytui.profile.files import save_text
from deploytui.session.folder import SessionFolder, safe_name


def saved_default(profiles: Path, name: str, wall_s: float) -> Path:
    """Such as `profiles/qwen-chat-2026-03-01.toml`, with a number behind it where that exists."""
    stem = f"{safe_name(name).partition('~')[0]}-{datetime.fromtimestamp(wall_s):%Y-%m-%d}"
    for number in range(1, 1000):
        path = profiles / f"{stem}{f'-{number}' if number > 1 else ''}.toml"
        if not path.exists():
            return path
    return profiles / f"{stem}.toml"


def write_profile(folder: SessionFolder, path: Path) -> Path:
    """Save the session as a profile; DeployError when it can't be written."""
    _make_folder(path.parent)
    return save_session(folder, path, overwrite=True)


def write_result(source: SessionFolder | Path, path: Path) -> Path:
    """Write the result JSON; DeployError when it can't be written."""
    text = export_text(source, "json").decode("utf-8")
    _make_folder(path.parent)
    save_text(path, text)
    return path.absolute()


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeployError(f"The folder {path} can't be made.", why=str(error), fix="Choose another path.") from error
