"""Which GPUs a server that runs already works on, found by its processes."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from deploytui.check.node import GpuNow, Node
from deploytui.run.listener import listeners
from deploytui.telemetry.tree import parents, tree

UNSEEN = (
    "device mapping assumed: no process of the server at {} is seen on a GPU from here, so that the figures of this "
    "node's GPUs may not be its own."
)


def gpus_of_server(base_url: str, node: Node) -> tuple[GpuNow, ...]:
    """The GPUs on which processes of the server at this address of our host are; empty when none is seen there.

    The one that listens may not be the one that computes: its descendants count, else those of its process group.
    """
    found = listeners(_port(base_url))
    known = parents()
    for members in (
        {pid for root in found for pid in tree(root, known)},
        {pid for pid in known if _group(pid) in {_group(root) for root in found} - {None}},
    ):
        if gpus := tuple(_used_by(members, node.gpus)):
            return gpus
    return ()


def _used_by(members: Iterable[int], gpus: tuple[GpuNow, ...]) -> Iterator[GpuNow]:
    """A process without a name is one of another namespace: its number means nothing here."""
    pids = set(members)
    for gpu in gpus:
        if any(process.pid in pids and process.name is not None for process in gpu.processes):
            yield gpu


def _port(base_url: str) -> int:
    parts = urlsplit(base_url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _group(pid: int) -> int | None:
    with suppress(OSError):
        return os.getpgid(pid)
    return None
