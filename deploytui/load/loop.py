"""The event loop of a load worker: asyncio's own, with a short way for the sockets that answers come in on.

A socket that is only ever read is handed to its reader as soon as the poll says that bytes came: no handle, no context,
no queue in between. Everything else is plain asyncio. Where there is no epoll, `watch` falls back on `add_reader`.
"""

import asyncio
import math
import select
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deploytui.load.backlog import Backlog, Reader, Received
from deploytui.load.kernel_clock import ANCILLARY_BYTES

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

SLEPT_NS, EACH_NS = 50_000, 1_000
"""A poll that took longer than this, and this for each socket that it tells of, waited: what it brings came only at its
end [ns]."""
LINGER_S = 500e-6
"""How long a busy loop lets reads gather before it polls again [s]: the kernel has stamped them already, and a poll for
each of them costs more than the read. Far below any decode step, so that no two tokens of a stream meet."""
WINDOW_NS = 10_000_000
BUSY_READS = 100
"""Reads in a window from which the loop is busy: 10,000 a second."""
MANY = 200
"""Reads a poll; with more there is nothing to be gained by waiting."""
MOST_AT_ONCE = 4096
"""Sockets that one poll tells of; those it leaves out would be taken for newer than they are by the next one."""

FEW_BYTES, READ_BYTES = 1 << 10, 64 << 10
"""Most that one read takes: little, until something fills it, since all reads of a poll shall fit the caches."""

LARGE_AT_ONCE = 16
"""Large reads that are made before they are looked at: more of them leave the caches meanwhile."""

_now_ns = time.monotonic_ns


class HotSelector(selectors.BaseSelector):
    """An epoll selector that reads watched sockets itself and tells asyncio of the others."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._readers: list[Reader | None] = []
        self._reads: list[Callable[[int, int], Received]] = []
        """By descriptor: lists, since with each read of a thousand the memory of a dictionary is fetched anew."""
        self._watched = 0
        self._room = FEW_BYTES
        self.backlog = Backlog()
        self.settle: Callable[[], None] = _nothing
        """What is to be done when all was read, before any of it is looked at."""
        self._polled_ns = time.monotonic_ns()
        self._busy = False
        self._few = True
        self._window_ns, self._window_reads = self._polled_ns, 0
        self.lingers = True
        """Whether it may wait before a poll: only while the kernel stamps all that comes."""

    def watch(self, fd: int, reader: Reader) -> None:
        """Read whenever there is something, until `unwatch`."""
        self._epoll.register(fd, select.EPOLLIN)
        if fd >= len(self._readers):
            more = fd + 1 - len(self._readers)
            self._readers += [None] * more
            self._reads += [_no_read] * more
        self._readers[fd], self._reads[fd] = reader, reader.recvmsg
        self._watched += 1

    def unwatch(self, fd: int) -> None:
        """No more reads; to be said before the socket is closed, may be said again."""
        if 0 <= fd < len(self._readers) and self._readers[fd] is not None:
            self._readers[fd], self._reads[fd] = None, _no_read
            self._watched -= 1
            self._epoll.unregister(fd)

    def register(self, fileobj: "FileDescriptorLike", events: int, data: object = None) -> selectors.SelectorKey:
        """As asyncio asks; what is watched can't be registered, too: epoll knows a descriptor once."""
        fd = _number(fileobj)
        if fd in self._keys:
            raise KeyError(f"{fileobj!r} (FD {fd}) is already registered")
        self._epoll.register(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """As asyncio asks; a descriptor that is closed already has left the poll by itself."""
        key = self._keys.pop(_number(fileobj))
        try:
            self._epoll.unregister(key.fd)
        except OSError:
            return key
        return key

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: object = None) -> selectors.SelectorKey:
        """As asyncio asks."""
        fd = _number(fileobj)
        old = self._keys[fd]
        if old.events != events:
            self._epoll.modify(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, read what is watched, and give asyncio what is its own."""
        earlier_ns = self._polled_ns
        if self.backlog:
            timeout = 0
        if self._busy and self._few and self.lingers and (timeout is None or timeout > LINGER_S):
            time.sleep(LINGER_S)
        begun_ns = _now_ns()
        ready = self._wait(timeout)
        self._polled_ns = now_ns = _now_ns()
        since_ns = now_ns if has_slept(now_ns - begun_ns, len(ready)) else earlier_ns
        others: list[tuple[selectors.SelectorKey, int]] = []
        at_once = LARGE_AT_ONCE if self._room > FEW_BYTES else MOST_AT_ONCE
        for first in range(0, len(ready) or 1, at_once):  # once without news, too: earlier reads may wait
            others += self._read(ready[first : first + at_once], since_ns)
        self._count(len(ready), now_ns)
        return others

    def _read(self, ready: list[tuple[int, int]], since_ns: int) -> list[tuple[selectors.SelectorKey, int]]:
        """Read what is watched, and look at it where there is time; the rest is for asyncio."""
        readers, reads, room, others = self._readers, self._reads, self._room, []
        received: list[tuple[Reader, Received, int]] = []
        broken: list[tuple[Reader, OSError]] = []
        for fd, event in ready:
            reader = readers[fd] if fd < len(readers) else None
            if reader is None:
                if (key := self._keys.get(fd)) is not None:
                    others.append((key, _events(event) & key.events))
                continue
            try:
                received.append((reader, reads[fd](room, ANCILLARY_BYTES), _now_ns()))
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as error:
                broken.append((reader, error))
        if received:
            self.settle()
            self._note_sizes(received, ready)
        self.backlog.look_at(received, since_ns, self._watched)
        if broken:
            self.backlog.catch_up()
        for reader, why in broken:
            reader.broke(why)
        return others

    def _note_sizes(self, received: list[tuple[Reader, Received, int]], ready: list[tuple[int, int]]) -> None:
        """Choose the room of the next reads; ask no more of a stream that ended: its end may wait to be looked at."""
        sizes = [len(what[0]) for _, what, _ in received]
        self._room = READ_BYTES if max(sizes) >= FEW_BYTES else FEW_BYTES
        if not min(sizes):
            ended = {id(reader) for reader, what, _ in received if not what[0]}
            for fd, _ in ready:
                if fd < len(self._readers) and id(self._readers[fd]) in ended:
                    self.unwatch(fd)

    def _count(self, reads: int, now_ns: int) -> None:
        self._few = reads < MANY
        self._window_reads += reads
        if now_ns - self._window_ns > WINDOW_NS:
            self._busy = self._window_reads * WINDOW_NS > BUSY_READS * (now_ns - self._window_ns)
            self._window_ns, self._window_reads = now_ns, 0

    def _wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """Whole milliseconds as epoll counts them; what is shorter is waited for exactly, by a call that can."""
        try:
            if timeout is None or timeout >= 1e-3:
                return self._epoll.poll(None if timeout is None else math.floor(timeout * 1e3) * 1e-3, MOST_AT_ONCE)
            if timeout > 0:
                select.select([self._epoll], [], [], timeout)
            return self._epoll.poll(0, MOST_AT_ONCE)
        except InterruptedError:
            return []

    def close(self) -> None:
        """Let go of the poll; the sockets stay as they are."""
        self._epoll.close()
        self._keys.clear()
        self._readers.clear()
        self._reads.clear()
        self.backlog.forget()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """What asyncio registered, by descriptor."""
        return self._keys

    def get_key(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """The key of what asyncio registered; raises KeyError."""
        return self._keys[_number(fileobj)]


class HotLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on a `HotSelector`."""

    def __init__(self) -> None:
        self.hot = HotSelector()
        super().__init__(self.hot)


def new_loop() -> asyncio.AbstractEventLoop:
    """The quickest loop that this platform has."""
    return HotLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


def watch(sock: socket.socket, reader: Reader) -> None:
    """Have the running loop read whenever there is something."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, HotLoop):
        loop.hot.watch(sock.fileno(), reader)
    else:
        loop.add_reader(sock, read_once, reader)


def read_once(reader: Reader) -> bool:
    """Read and look at it, as a plain loop does; whether something came."""
    try:
        received = reader.recvmsg(READ_BYTES, ANCILLARY_BYTES)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError as error:
        reader.broke(error)
        return False
    reader.look_at(received, _now_ns(), None)
    return bool(received[0])


def unwatch(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    """End it; once it ended nothing more happens."""
    if isinstance(loop, HotLoop):
        loop.hot.unwatch(sock.fileno())
    else:
        loop.remove_reader(sock)


def settling(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    """Have this done between reads and looking at them."""
    if isinstance(loop, HotLoop):
        loop.hot.settle = settle


def hurry(loop: asyncio.AbstractEventLoop) -> None:
    """Have the loop poll without ever waiting first: this process stamps what comes in."""
    if isinstance(loop, HotLoop):
        loop.hot.lingers = False


def has_slept(took_ns: int, ready: int) -> bool:
    """Whether a poll that took so long and told of so many sockets had to wait for them."""
    return took_ns > SLEPT_NS + EACH_NS * ready


def catch_up() -> None:
    """Have all looked at that the running loop has read."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, HotLoop):
        loop.hot.backlog.catch_up()


def longest_backlog_ms(loop: asyncio.AbstractEventLoop) -> float:
    """The longest time between a read and the look at it [ms]; 0 where all was looked at right away."""
    return loop.hot.backlog.longest_ns / 1e6 if isinstance(loop, HotLoop) else 0.0


def _nothing() -> None:
    pass


def _no_read(_: int, __: int) -> Received:
    raise BlockingIOError


def _number(fileobj: "FileDescriptorLike") -> int:
    fd = fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
    if fd < 0:
        raise ValueError(f"{fileobj!r} has no descriptor")
    return fd


def _mask(events: int) -> int:
    reading = select.EPOLLIN if events & selectors.EVENT_READ else 0
    return reading | (select.EPOLLOUT if events & selectors.EVENT_WRITE else 0)


def _events(event: int) -> int:
    """An error or hang-up is for both to find."""
    readable = selectors.EVENT_READ if event & ~select.EPOLLOUT else 0
    return readable | (selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0)
