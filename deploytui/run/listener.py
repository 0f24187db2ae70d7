"""Who listens on a port: the engine that was launched, or somebody else whose answers must not be taken for its own."""

import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from msgspec import Struct

from deploytui.check.node import process_title
from deploytui.telemetry.tree import parents, tree

LISTENS = "0A"
"""The state of a listening socket in the kernel's tables."""


class Listener(Struct, frozen=True):
    """A process that listens; parts that can't be seen are None."""

    pid: int | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """Such as `process 4711 (nginx)`."""
        if self.pid is None:
            return "a process that can't be seen from here"
        return f"process {self.pid} ({self.name})" if self.name else f"process {self.pid}"


def foreign_listener(port: int, root: int) -> Listener | None:
    """Who listens on a loopback or general `port` outside of the process tree of `root`.

    None when somebody of the tree does, and where it can't be known.
    """
    if sys.platform != "linux":
        return None
    sockets = set(_listening(port))
    members = tree(root, parents())
    if not sockets or not members:
        return None
    held = [_sockets(pid) for pid in members]
    if any(found is None or found & sockets for found in held):
        return None
    return _holder(sockets, members)


def listeners(port: int) -> tuple[int, ...]:
    """Processes that listen on a loopback or general `port`; empty where none can be seen."""
    sockets = set(_listening(port)) if sys.platform == "linux" else set()
    return tuple(pid for pid in parents() if (_sockets(pid) or frozenset()) & sockets) if sockets else ()


def address_beyond(port: int, root: int | None) -> str | None:
    """The address by which other machines reach the server on `port`, such as `0.0.0.0`; None where they don't.

    Looked at are the sockets of the process tree of `root`; all of this node's where that is None or hidden.
    """
    if sys.platform != "linux":
        return None
    sockets = _listening(port)
    held = [_sockets(pid) for pid in tree(root, parents())] if root is not None else [None]
    ours = None if any(found is None for found in held) else frozenset[str]().union(*(found or () for found in held))
    beyond = (at for inode, at in sockets.items() if (ours is None or inode in ours) and not is_loopback(at))
    return next((str(at) for at in beyond), None)


def is_loopback(at: IPv4Address | IPv6Address) -> bool:
    """Whether only this machine gets there."""
    mapped = at.ipv4_mapped if isinstance(at, IPv6Address) else None
    return (mapped or at).is_loopback


def _listening(port: int) -> dict[str, IPv4Address | IPv6Address]:
    """Inodes of the sockets that listen on a port, in this network namespace, and where they do."""
    return {inode: at for inode, (at, listens) in listening().items() if listens == port}


def listening() -> dict[str, tuple[IPv4Address | IPv6Address, int]]:
    """Address and port of every socket that listens, by its inode, in this network namespace."""
    return dict(_listeners())


def _listeners() -> Iterator[tuple[str, tuple[IPv4Address | IPv6Address, int]]]:
    for name in ("tcp", "tcp6"):
        for line in _lines(Path("/proc/net") / name)[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == LISTENS:
                at, _, port = words[1].rpartition(":")
                yield words[9], (_address(at), int(port, 16))


def _address(kernels: str) -> IPv4Address | IPv6Address:
    """An address out of the kernel's tables, which write each 32 bits of it as this machine's number."""
    words = [int(kernels[place : place + 8], 16).to_bytes(4, sys.byteorder) for place in range(0, len(kernels), 8)]
    return ip_address(b"".join(words))


def _sockets(pid: int) -> frozenset[str] | None:
    """Inodes of the sockets a process has open; None when it does not let us look."""
    try:
        handles = list(Path(f"/proc/{pid}/fd").iterdir())
        targets = [_target(handle) for handle in handles]
    except FileNotFoundError:  # it ended meanwhile
        return frozenset()
    except OSError:
        return None
    return frozenset(target[8:-1] for target in targets if target.startswith("socket:["))


def _target(handle: Path) -> str:
    """What an open file is; empty when it was closed meanwhile."""
    try:
        return str(handle.readlink())
    except FileNotFoundError:
        return ""


def _holder(sockets: set[str], members: tuple[int, ...]) -> Listener:
    for pid in parents():
        if pid not in members and (_sockets(pid) or frozenset()) & sockets:
            return Listener(pid, process_title(pid))
    return Listener()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
