"""Keep one engine process: start it, drain its output, and leave nothing of it behind.

Run by path, in a session of its own: `python -I -S keeper.py`. JSON lines, both ways.

In:   {"argv": [...], "env": {...}, "cwd": null, "log": path, "tail": path, "grace_s": 10.0}     the order, first
      {"do": "stop"}     SIGTERM, the grace, SIGKILL                 {"do": "kill"}     SIGKILL at once
      (with "secrets" in the order, a list of texts, the logs hold a sign in their place)
      end of file: whoever gave the order is dead; a stop with a short grace
Out:  {"event": "started", "pid": 1, "start_time": 2}                start time as in /proc, null where there is none
      {"event": "failed", "errno": 2, "message": "..."}              nothing was started
      {"event": "exited", "code": 1, "signal": null}                 the engine ended without being asked to
      {"event": "gone", "survivors": [], "code": 0, "signal": null, "forced": false}                    always the last
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from deploytui.host import keeper_procs as procs
    from deploytui.host.keeper_log import Log
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import keeper_procs as procs
    from keeper_log import Log

READ_BYTES = 1 << 16
READS_A_TURN = 64
PIPE_BYTES = 1 << 20
SHORT_GRACE_S = 2.0
KILL_S = 10.0
"""How long to go on killing what does not die, such as a process in an uninterruptible wait [s]."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, F_SETPIPE_SZ = 1, 36, 1031


def prctl() -> Callable[..., int] | None:
    """Linux's prctl; None elsewhere, and in an interpreter that was built without ctypes."""
    try:
        import ctypes
    except ImportError:
        return None
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def spawn(order: dict[str, Any], output: int) -> subprocess.Popen[bytes]:
    """Start the engine in a session of its own, to die with this process; OSError when it can't be started."""
    call, keeper = prctl(), os.getpid()

    def leash() -> None:
        if call is not None:
            call(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != keeper:
                os._exit(1)

    return subprocess.Popen(
        order["argv"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=order.get("cwd"),
        env=order["env"],
        start_new_session=True,
        preexec_fn=leash,  # noqa: PLW1509 there is one thread here
    )


def say(**event: Any) -> None:
    """Tell the runner; one that is dead does not matter."""
    try:
        os.write(1, json.dumps(event).encode() + b"\n")
    except OSError:
        return


class Keeper:
    """One engine, from its order to its last descendant."""

    def __init__(self) -> None:
        self.selector = selectors.PollSelector()
        self.input = b""
        self.log: Log | None = None
        self.pipe = -1
        self.process: subprocess.Popen[bytes] | None = None
        self.group, self.main_alive = 0, False
        self.code: int | None = None
        self.signal: int | None = None
        self.grace_s = 10.0
        self.asked = self.forced = False
        self.kill_at: float | None = None
        self.give_up_at: float | None = None
        self.pause_s = 0.01
        self.known: dict[int, procs.Seen] = {}

    def keep(self) -> None:
        """Serve until the engine and all that came from it are gone, or until there can be no engine."""
        while True:
            for key, _ in self.selector.select(self.patience()):
                key.data()
            left = self.reap() or self.group_lives()
            if self.process is None and self.asked:
                break
            if self.process is not None and not (left and self.act()):
                break
        self.drain()
        survivors = sorted(seen.pid for seen in self.targets() if seen.state not in "ZX")
        say(event="gone", survivors=survivors, code=self.code, signal=self.signal, forced=self.forced)

    def patience(self) -> float | None:
        """How long to wait for news [s]; None for ever."""
        if self.give_up_at is not None:
            self.pause_s = min(self.pause_s * 1.5, 0.25)
            return self.pause_s
        return None if self.kill_at is None else max(0.0, min(self.kill_at - time.monotonic(), 0.25))

    def hear(self) -> None:
        """Take what came on standard input."""
        try:
            data = os.read(0, READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(0)
            self.stop(SHORT_GRACE_S)
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            self.obey(line)

    def obey(self, line: bytes) -> None:
        """The order first, then what to do."""
        try:
            words = json.loads(line)
        except ValueError:
            words = None
        if not isinstance(words, dict):
            words = {}
        if self.log is None:
            self.start(words)
        elif words.get("do") == "stop":
            self.stop(self.grace_s)
        elif words.get("do") == "kill":
            self.stop(0.0)

    def start(self, order: dict[str, Any]) -> None:
        """Start the engine and its log; tells when that can't be."""
        try:
            self.log = Log(order["log"], order["tail"], order.get("secrets") or ())
            self.grace_s = float(order.get("grace_s", self.grace_s))
            self.pipe, output = os.pipe()
            os.set_blocking(self.pipe, False)
            self.selector.register(self.pipe, selectors.EVENT_READ, self.drain)
            widen(output)
            try:
                self.process = spawn(order, output)
            finally:
                os.close(output)
        except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
            self.asked = True
            say(event="failed", errno=getattr(error, "errno", None), message=f"{type(error).__name__}: {error}")
            return
        self.group, self.main_alive = self.process.pid, True
        seen = procs.look(self.group)
        say(event="started", pid=self.group, start_time=seen.start if seen else None)

    def drain(self) -> None:
        """Move what the engine wrote into its log."""
        for _ in range(READS_A_TURN):
            try:
                data = os.read(self.pipe, READ_BYTES) if self.pipe >= 0 else b""
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            if self.log is not None:
                self.log.add(data)

    def close(self) -> None:
        """Nobody holds the other end any more."""
        if self.pipe >= 0:
            self.selector.unregister(self.pipe)
            os.close(self.pipe)
            self.pipe = -1
            if self.log is not None:
                self.log.end()

    def reap(self) -> bool:
        """Collect the dead; False when no child is left, adopted ones included."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if self.process and pid == self.process.pid:
                self.ended(status)

    def ended(self, status: int) -> None:
        """The engine's main process is dead: what it left behind gets little time."""
        assert self.process is not None
        exit_code = os.waitstatus_to_exitcode(status)
        self.process.returncode, self.main_alive = exit_code, False
        self.code, self.signal = (exit_code, None) if exit_code >= 0 else (None, -exit_code)
        self.drain()
        if not self.asked:
            say(event="exited", code=self.code, signal=self.signal)
        self.stop(min(SHORT_GRACE_S, self.grace_s))

    def stop(self, grace_s: float) -> None:
        """Ask everyone to end, once, and shorten the time they have for it."""
        first, self.asked = not self.asked, True
        until = time.monotonic() + min(grace_s, self.grace_s)
        self.kill_at = until if self.kill_at is None else min(self.kill_at, until)
        if first and self.process and grace_s > 0:
            self.signal_all(signal.SIGTERM)
            self.signal_all(signal.SIGCONT)

    def act(self) -> bool:
        """Kill when the grace is over; False when it is of no use to go on."""
        now = time.monotonic()
        if self.kill_at is None or now < self.kill_at:
            return True
        if self.give_up_at is None:
            self.give_up_at = now + KILL_S
        self.forced = True
        self.signal_all(signal.SIGKILL)
        return now < self.give_up_at

    def signal_all(self, number: int) -> None:
        """Signal the engine's group at one stroke, then whoever left it."""
        whole = self.group_lives() and procs.send_group(self.group, number)
        for seen in self.targets():
            if not whole or seen.group != self.group:
                procs.send(seen, number)

    def group_lives(self) -> bool:
        """Whether the group's number is surely still the engine's, and somebody is in it."""
        return self.main_alive or (self.group > 0 and not procs.readable() and procs.send_group(self.group, 0))

    def targets(self) -> list[procs.Seen]:
        """Descendants now, and earlier ones that moved elsewhere, where this process could not adopt them."""
        if self.process is None:
            return []
        earlier = [now for old in self.known.values() if (now := procs.look(old.pid)) and now.start == old.start]
        self.known = {seen.pid: seen for seen in [*earlier, *procs.descendants()]}
        return list(self.known.values())


def widen(pipe: int) -> None:
    """Let the engine write ahead of us, where that can be had."""
    try:
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return


def be_told_of_signals(keeper: Keeper) -> None:
    """Turn signals into something to read; handlers, unlike ignored signals, are not inherited by the engine."""
    told, tell = os.pipe()
    os.set_blocking(told, False)
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def woken() -> None:
        if signal.SIGTERM in os.read(told, READ_BYTES):
            keeper.stop(keeper.grace_s)

    keeper.selector.register(told, selectors.EVENT_READ, woken)


def main() -> None:
    """Keep the engine that standard input orders, whatever goes wrong here."""
    call = prctl()
    if call is not None:
        call(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    keeper = Keeper()
    be_told_of_signals(keeper)
    keeper.selector.register(0, selectors.EVENT_READ, keeper.hear)
    try:
        keeper.keep()
    except BaseException:
        keeper.stop(0.0)
        keeper.keep()
        raise


if __name__ == "__main__":
    main()
