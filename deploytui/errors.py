"""What can go wrong in a way a user can act on."""


class DeployError(Exception):
    """Something a user can act on; any other exception is a bug.

    `what` is a sentence with the name in it, `why` the foreign party's own words, `fix` one thing to do.
    """

    exit_code = 1

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.fix = what, why, fix

    def text(self) -> str:
        """The parts that are not empty, a line each."""
        return "\n".join(part for part in (self.what, self.why, self.fix) if part)


class UsageError(DeployError):
    """The command line does not fit."""

    exit_code = 2


class ProfileError(DeployError):
    """A profile can't be read, or asks for something that does not exist."""

    exit_code = 2


class SessionError(DeployError):
    """A session folder can't be read, written or locked."""


class EngineError(DeployError):
    """An engine can't be found, launched or reached; `kind` is the failure kind of the record."""

    def __init__(self, what: str, *, kind: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.kind = kind


class DownloadError(DeployError):
    """A model could not be fetched."""
