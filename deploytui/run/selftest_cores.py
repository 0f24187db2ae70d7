"""Cores and files of the self-test: the server and the load shall not take them from each other."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

SPARE_FILES = 128
"""Descriptors that a process needs beside its connections."""


class Cores(NamedTuple):
    """Who runs where; None where nobody is pinned."""

    server: int | None
    load: frozenset[int] | None
    number: int
    """How many this process may use."""


def shared_out() -> Cores:
    """The first core for the server and the others for the load; nobody is pinned with one core or without means."""
    if not hasattr(os, "sched_getaffinity"):
        return Cores(None, None, os.cpu_count() or 1)
    first, *others = sorted(os.sched_getaffinity(0))
    return Cores(first, frozenset(others), 1 + len(others)) if others else Cores(None, None, 1)


@contextmanager
def on(cores: frozenset[int] | None) -> Iterator[None]:
    """Stay on these cores meanwhile; a process that is started then stays there all its life."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def files_lacking(streams: int) -> str:
    """Why so many streams can't be opened here; empty when they can, since soft limits are raised."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = streams + SPARE_FILES
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return ""
    return f"it needs {needed:,} open files and this user may have {hard:,} (ulimit -Hn)"
