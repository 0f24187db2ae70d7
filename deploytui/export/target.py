"""Where a result goes; light, so that it can be looked at before anything else is imported."""

from pathlib import Path

from deploytui.errors import UsageError

STDOUT = "-"


def check_target(target: Path, source: Path) -> None:
    """Refuse now what could not be written later, or would be written over what it is made from; UsageError."""
    try:
        if target.exists() and source.exists() and target.samefile(source):
            raise UsageError(f"{target} is the profile itself.", fix="Name another file for the result.")
        if target.exists() and not target.is_file() and not target.is_dir():
            return  # a pipe or device: to open and close it would be an end of file for its reader
        _open_once(target)
    except OSError as error:
        raise UsageError(f"{target} can't be written.", why=str(error), fix="Name another file.") from error


def _open_once(target: Path) -> None:
    is_new = not target.exists()
    with target.open("ab"):
        pass
    if is_new:
        target.unlink()
