"""Who may generate now: slots handed out in the order of asking, to those who still want one."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import Callable, Deque, Dict, Iterator

LOOK_S = 0.05
"""How often someone who waits is asked whether he is still there [s]."""


class GoneError(Exception):
    """The client left."""


class FullError(Exception):
    """More wait already than may."""


class Queue:
    """`slots` at a time, `most_waiting` in line behind them."""

    def __init__(self, slots: int, most_waiting: int) -> None:
        self.slots, self.most_waiting = slots, most_waiting
        self.running = 0
        self.line: Deque[threading.Event] = deque()
        self.lock = threading.Lock()
        self.totals: Dict[str, int] = {"prompt": 0, "generation": 0}

    @contextmanager
    def slot(self, gone: Callable[[], bool]) -> Iterator[None]:
        """A slot for the block; FullError without a place in line, GoneError when the client left it."""
        turn = self._ask()
        try:
            while not turn.wait(LOOK_S):
                if gone():
                    raise GoneError
            yield
        finally:
            self._leave(turn)

    def _ask(self) -> threading.Event:
        turn = threading.Event()
        with self.lock:
            if self.running < self.slots and not self.line:
                self.running += 1
                turn.set()
            elif len(self.line) >= self.most_waiting:
                raise FullError
            else:
                self.line.append(turn)
        return turn

    def _leave(self, turn: threading.Event) -> None:
        with self.lock:
            if not turn.is_set():
                self.line.remove(turn)
            elif self.line:
                self.line.popleft().set()
            else:
                self.running -= 1

    def count(self, kind: str, tokens: int) -> None:
        """Add to the totals that /metrics shows."""
        with self.lock:
            self.totals[kind] += tokens

    def metrics(self) -> str:
        """Prometheus text."""
        with self.lock:
            rows = (
                ("requests_running", "gauge", self.running),
                ("requests_waiting", "gauge", len(self.line)),
                ("prompt_tokens_total", "counter", self.totals["prompt"]),
                ("generation_tokens_total", "counter", self.totals["generation"]),
            )
        lines = ("# TYPE deploytui_host:{0} {1}\ndeploytui_host:{0} {2}\n".format(*row) for row in rows)
        return "".join(lines)
