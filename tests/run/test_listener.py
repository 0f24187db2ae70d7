"""Whose a listening port is."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploytui.run.listener import Listener, address_beyond, foreign_listener
from deploytui.run.placing import free_port, is_free

SERVER = """
import os, socket, sys
door = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
if sys.argv[2] == "child" and os.fork():
    door.close()
print(door.getsockname()[1] if door.fileno() >= 0 else "", end="\\n" if door.fileno() >= 0 else "", flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(host: str = "127.0.0.1", how: str = "self") -> Iterator[tuple[int, int]]:
    """Port and pid of a process that listens, itself or by a child."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, host, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
        process.communicate()


def test_the_launched_process_listens() -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        with listening(host) as (port, pid):
            assert foreign_listener(port, pid) is None
            assert foreign_listener(port, os.getpid()) is None


def test_a_child_of_the_launched_process_listens() -> None:
    with listening(how="child") as (port, pid):
        assert foreign_listener(port, pid) is None


def test_another_process_is_named() -> None:
    with listening() as (port, pid), listening() as (_, launched):
        found = foreign_listener(port, launched)
        assert found is not None
        assert found.pid == pid
        assert found.label.startswith(f"process {pid} (python")


def test_nobody_listens_or_nobody_lives() -> None:
    assert foreign_listener(free_port(), os.getpid()) is None
    with listening() as (port, _):
        assert foreign_listener(port, 2**22 + 1) is None


def test_a_listener_nobody_can_see_is_called_that() -> None:
    assert Listener().label == "a process that can't be seen from here"


@pytest.mark.parametrize(
    ("host", "beyond"), [("127.0.0.1", None), ("127.0.0.5", None), ("::1", None), ("0.0.0.0", "0.0.0.0"), ("::", "::")]
)
def test_who_listens_where_others_reach_it_is_found(host: str, beyond: str | None) -> None:
    with listening(host) as (port, pid):
        assert address_beyond(port, pid) == beyond
        assert address_beyond(port, None) == beyond


def test_another_process_on_the_same_port_does_not_count() -> None:
    with listening("0.0.0.0") as (port, _), listening() as (_, other):
        assert address_beyond(port, other) is None


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    assert is_free(port)
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
