"""How a session is asked to stop, to skip, to wait: by signals and by words over the control socket."""

from dataclasses import dataclass, field

import anyio


@dataclass
class Halt:
    """What was asked so far; the runner's scopes hang on it."""

    session: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    hurry: anyio.Event = field(default_factory=anyio.Event)
    """Set when the user does not want to wait for a nice end."""
    interrupted: bool = False
    skipped: set[str] = field(default_factory=set)
    current: str | None = None
    scope: anyio.CancelScope | None = None
    """Of the candidate that runs."""
    go: anyio.Event = field(default_factory=anyio.Event)
    """Unset while paused."""

    def __post_init__(self) -> None:
        self.go.set()

    def stop(self) -> None:
        """End the session cleanly; asked again, at once."""
        if self.interrupted:
            self.hurry.set()
        self.interrupted = True
        self.go.set()
        self.session.cancel()

    def skip(self, candidate: str) -> None:
        """Leave out a candidate, also the one that runs."""
        self.skipped.add(candidate)
        if candidate == self.current and self.scope is not None:
            self.scope.cancel()

    def pause(self) -> None:
        """Begin no further step until `go_on`."""
        if self.go.is_set():
            self.go = anyio.Event()

    def go_on(self) -> None:
        """Go on with the next step."""
        self.go.set()
