"""What an event is about: the place of a step in the plan."""

from msgspec import Struct


class StepKey(Struct, frozen=True, omit_defaults=True):
    """A place in the plan: one repeat, or one quality task, of one launch of a candidate at one point of a sweep."""

    candidate: str
    launch: int = 0
    point: int = 0
    repeat: int | None = None
    task: str | None = None

    @property
    def label(self) -> str:
        """The key as text, short and unique within a session; also safe in a file name when the candidate is."""
        tail = f"t-{self.task}" if self.repeat is None else f"r{self.repeat}"
        return f"{self.candidate}.l{self.launch}.p{self.point}.{tail}"
