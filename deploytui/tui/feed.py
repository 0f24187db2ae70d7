"""From the journal to the screen: a few snapshots a second, none when nothing is new."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from deploytui.errors import DeployError
from deploytui.record.fold import fold_all
from deploytui.record.state import SessionState
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import holder
from deploytui.session.tail import JournalTail
from deploytui.tui.headline import Source, Standing
from deploytui.tui.threads import in_thread

POLL_S = 0.2
"""Between two looks at the journal, so at most five snapshots a second [s]."""
LOOKS_PER_PULSE = 10
"""How many looks lie between two questions whether the runner lives."""


@dataclass
class Feed:
    """Follows one session; `advance` reads files, so it belongs into a thread."""

    folder: SessionFolder
    state: SessionState = field(default_factory=SessionState)
    source: Source = "running"
    looks: int = 0

    def __post_init__(self) -> None:
        self.tail = JournalTail(self.folder.journal)

    def advance(self) -> Standing | None:
        """The session as it stands now; None when nothing is new."""
        fresh = False
        while events := self.tail.read():
            self.state = fold_all(events, self.state)
            fresh = True
        source = self._source()
        changed = fresh or source != self.source or self.looks == 0
        self.source = source
        self.looks += 1
        return self.standing() if changed else None

    def standing(self) -> Standing:
        """What is known."""
        return Standing(self.state, self.source, unreadable=self.tail.reader.unreadable)

    def _source(self) -> Source:
        """Who stands behind the journal; the runner's lock is looked at now and then only."""
        if self.state.ended is not None:
            return "ended"
        if self.looks % LOOKS_PER_PULSE:
            return self.source
        held = holder(self.folder)
        if held is None:
            return self._without_runner()
        return "other_host" if held.elsewhere else "running"

    def _without_runner(self) -> Source:
        """The runner may have ended between the last look at the journal and the one at its lock."""
        if events := self.tail.read():
            self.state = fold_all(events, self.state)
        return "ended" if self.state.ended is not None else "died"


async def follow(feed: Feed, show: Callable[[Standing], object]) -> None:
    """Give each newer view to `show` until cancelled; a journal that can't be read is told and tried again."""
    trouble = ""
    while True:
        try:
            standing = await in_thread(feed.advance)
        except DeployError as error:
            if error.text() != trouble:
                trouble = error.text()
                show(Standing(feed.state, feed.source, trouble=trouble))
        else:
            if standing is not None or trouble:
                show(standing or feed.standing())
            trouble = ""
        await asyncio.sleep(POLL_S)
