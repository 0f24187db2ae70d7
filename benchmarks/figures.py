"""Figures of several rounds: the middle one, and how far they lie apart."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Figures:
    """What each round measured, by name."""

    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    remarks: list[str] = field(default_factory=list)
    """What a reader must know beside the figures."""

    def add(self, name: str, value: float | None) -> None:
        """Keep a round's value; None was not measured."""
        if value is not None:
            self.values[name].append(value)

    def median(self, name: str) -> float | None:
        """The middle value; None when there is none."""
        return median(self.values[name]) if self.values.get(name) else None

    def ends(self, name: str) -> tuple[float, float] | None:
        """Smallest and largest."""
        return (min(self.values[name]), max(self.values[name])) if self.values.get(name) else None
