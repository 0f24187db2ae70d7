"""What travels between feed, screens and app."""

from dataclasses import dataclass
from pathlib import Path

from textual.message import Message

from deploytui.session.folder import SessionFolder
from deploytui.tui.headline import Standing


@dataclass
class SnapshotReady(Message):
    """A newer view of the session; a waiting older one is worthless."""

    standing: Standing

    def can_replace(self, message: Message) -> bool:
        """Whether a waiting message may be dropped for this one."""
        return isinstance(message, SnapshotReady)


@dataclass
class OpenSession(Message):
    """A session shall be shown."""

    folder: SessionFolder


@dataclass
class OpenProfile(Message):
    """A profile shall be shown: the results in it, or else its plan."""

    path: Path


@dataclass
class SessionOver(Message):
    """The session that was watched has ended, with the exit status of its runner."""

    exit_status: int
    leave: bool
    """Whether that was waited for to leave."""
