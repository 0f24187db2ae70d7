"""The folder of a session: where it is, what lies in it, how a new one is made and an old one found."""

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path

import platformdirs
from msgspec import Struct

from deploytui.errors import SessionError
from deploytui.profile.places import user_path

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 40


class SessionFolder(Struct, frozen=True):
    """A session's folder; its properties name what may lie in it, whether it does or not."""

    path: Path

    @property
    def id(self) -> str:
        """The session's id."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """The events."""
        return self.path / "journal.jsonl"

    @property
    def profile(self) -> Path:
        """The profile exactly as asked."""
        return self.path / "profile.toml"

    @property
    def runner_log(self) -> Path:
        """What a detached runner says."""
        return self.path / "runner.log"

    @property
    def lock_file(self) -> Path:
        """Locked by the runner while it lives."""
        return self.path / "lock"

    @property
    def socket_note(self) -> Path:
        """Holds the path of the control socket."""
        return self.path / "control"

    def candidate_dir(self, name: str) -> Path:
        """Where a candidate's logs and records go; two names never share one."""
        return self.path / "candidates" / safe_name(name)


def safe_name(text: str) -> str:
    """`text` as a file name: itself when it is plain, else readable parts of it with a hash of the whole."""
    if _PLAIN.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{_slug(text)}~{digest}"


def state_dir(override: Path | None = None) -> Path:
    """The folder of all sessions."""
    if override is not None:
        return user_path(override).absolute()
    return platformdirs.user_state_path("deploytui", appauthor=False) / "sessions"


def new_session(state: Path, name: str, now: datetime) -> SessionFolder:
    """A new, empty folder; SessionError when it can't be made or written."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = _made(state, f"{now:%Y%m%d-%H%M%S}-{_slug(name)}")
        _prove_writable(path)
    except OSError as error:
        raise _unwritable(state, error) from error
    return SessionFolder(path)


def find_session(text: str, state: Path) -> SessionFolder:
    """The session meant by an id, the unique beginning of one, or a path; SessionError names the nearest."""
    named = user_path(text)
    if named.name == "journal.jsonl" and is_session(named.parent):
        named = named.parent
    if is_session(named):
        return SessionFolder(named.absolute())
    ids = session_ids(state)
    if text in ids:
        return SessionFolder(state / text)
    begun = [known for known in ids if text and known.startswith(text)]
    check_readable(state)
    if len(begun) == 1:
        return SessionFolder(state / begun[0])
    raise _several(text, begun) if begun else _nothing(text, ids, state)


def session_ids(state: Path) -> list[str]:
    """The ids of all sessions in the state folder, newest first; empty when there is no such folder."""
    try:
        entries = [entry.name for entry in os.scandir(state) if entry.is_dir()]
    except OSError:
        return []
    return sorted((name for name in entries if is_session(state / name)), reverse=True)


def check_readable(state: Path) -> None:
    """Raise SessionError when sessions may lie in the state folder and can't be listed; none yet is no error."""
    try:
        os.scandir(state).close()
    except FileNotFoundError:
        return
    except OSError as error:
        fix = "Name the folder of the sessions with --state-dir, or check who may read it."
        raise SessionError(f"The state folder {state} can't be read.", why=str(error), fix=fix) from error


def is_session(path: Path) -> bool:
    """Whether a folder holds a session, also one whose first event is not written yet."""
    folder = SessionFolder(path)
    try:
        return folder.journal.is_file() or (folder.lock_file.is_file() and folder.profile.is_file())
    except OSError:
        return False


def _slug(text: str) -> str:
    return _ODD.sub("_", text).strip("_-")[:_NAME_LENGTH] or "x"


def _made(state: Path, begin: str) -> Path:
    """A folder nobody else has; two starts within one second get two."""
    for _ in range(100):
        path = state / f"{begin}-{secrets.token_hex(2)}"
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{begin} exists a hundred times")


def _prove_writable(path: Path) -> None:
    """Raise OSError now, not after an hour of measuring, when a file can't be written here."""
    probe = path / ".probe"
    try:
        with probe.open("wb") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
        probe.unlink()
    except OSError:
        probe.unlink(missing_ok=True)
        path.rmdir()
        raise


def _unwritable(state: Path, error: OSError) -> SessionError:
    return SessionError(
        f"The state folder {state} can't be written.",
        why=str(error),
        fix="Name another folder with --state-dir, or set XDG_STATE_HOME.",
    )


def _several(text: str, ids: Sequence[str]) -> SessionError:
    return SessionError(
        f"{text!r} begins the ids of {len(ids)} sessions.",
        why="They are " + ", ".join(ids[:5]) + (" and more." if len(ids) > 5 else "."),
        fix="Give more of the id.",
    )


def _nothing(text: str, ids: Sequence[str], state: Path) -> SessionError:
    near = get_close_matches(text, ids, n=1, cutoff=0.3)
    return SessionError(
        f"There is no session {text!r} in {state}.",
        fix=f"The nearest is {near[0]}." if near else "`deploytui sessions` lists them; --state-dir looks elsewhere.",
    )
