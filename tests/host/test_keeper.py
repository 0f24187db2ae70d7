"""A keeper starts an engine, drains it, stops it, and leaves nothing of it behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.host.keepers import ENV, HOST, KEEPER, MOCK, keeper, python
from tests.host.living import alive, all_die, children, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are judged by /proc")

IGNORES_TERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(3600)"
FAMILY = (*MOCK, "--deaf", "--grandchild", "--daemon")


def family(lines: list[str]) -> list[int]:
    return [int(line.split()[1]) for line in lines]


def test_a_polite_engine_is_stopped_nicely(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(MOCK)
        pid = kept.hear("started")["pid"]
        kept.logged("listening on")
        kept.tell({"do": "stop"})
        assert kept.hear("gone") == {"event": "gone", "survivors": [], "code": 0, "signal": None, "forced": False}
        assert kept.process.wait(5) == 0
        assert not alive(pid)
        assert "shutting down" in kept.text


def test_the_start_time_tells_the_engine_from_a_later_process(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(python(IGNORES_TERM))
        started = kept.hear("started")
        words = Path(f"/proc/{started['pid']}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        assert started["start_time"] == int(words[19])
        kept.tell({"do": "kill"})
        kept.hear("gone")


def test_a_deaf_engine_is_killed_with_all_its_descendants(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(FAMILY, grace_s=0.2)
        pid = kept.hear("started")["pid"]
        kept.logged("listening on")
        pids = [pid, *family(kept.logged(r"grandchild \d+|daemon \d+"))]
        assert len(pids) == 3
        assert all(map(alive, pids))
        kept.tell({"do": "stop"})
        gone = kept.hear("gone")
        assert not any(map(alive, pids))
        assert (gone["survivors"], gone["signal"], gone["forced"]) == ([], signal.SIGKILL, True)


def test_kill_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(FAMILY, grace_s=600)
        kept.hear("started")
        kept.logged("listening on")
        kept.tell({"do": "stop"})
        kept.tell({"do": "kill"})
        assert kept.hear("gone")["survivors"] == []


def test_an_engine_that_ends_by_itself_is_reported_with_its_code_and_last_words(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("sh", "-c", "echo last words; exit 3"))
        kept.hear("started")
        assert kept.hear("exited") == {"event": "exited", "code": 3, "signal": None}
        assert kept.text == "last words\n"
        assert kept.hear("gone")["code"] == 3


def test_a_crash_is_reported_with_its_signal(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("sh", "-c", "kill -SEGV $$"))
        kept.hear("started")
        assert kept.hear("exited") == {"event": "exited", "code": None, "signal": signal.SIGSEGV}
        assert kept.hear("gone")["survivors"] == []


def test_what_a_crashed_engine_left_behind_is_cleaned_up(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("sh", "-c", "setsid sleep 3600 & echo worker $!; sleep 3600 & echo worker $!; exit 1"), grace_s=60)
        kept.hear("started")
        assert kept.hear("exited")["code"] == 1
        pids = family(kept.logged(r"worker \d+"))
        assert len(pids) == 2
        kept.hear("gone")
        assert not any(map(alive, pids))


def test_an_engine_that_is_not_there_is_told_with_its_name(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("/nowhere/vllm", "serve"))
        failed = kept.hear("failed")
        assert failed["errno"] == 2
        assert "/nowhere/vllm" in failed["message"]
        assert kept.hear("gone")["survivors"] == []
        assert kept.process.wait(5) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("no object", "KeyError"),
        ({"log": "/tmp/x.log", "tail": "/tmp/y.log", "env": {}}, "argv"),
        ({"log": "/tmp/x.log", "tail": "/tmp/y.log", "env": {}, "argv": ["true"], "cwd": "/nowhere"}, "/nowhere"),
    ],
)
def test_an_order_that_cannot_be_followed_is_told(tmp_path: Path, words: object, told: str) -> None:
    with keeper(tmp_path) as kept:
        kept.tell(words)
        assert told in kept.hear("failed")["message"]
        assert kept.process.wait(5) == 0


def test_a_keeper_without_an_order_ends_with_its_leash(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.cut_leash()
        assert kept.hear("gone")["code"] is None
        assert kept.process.wait(5) == 0


def test_the_engine_gets_the_environment_and_folder_of_the_order_and_nothing_else(tmp_path: Path) -> None:
    code = "import os, sys; print(sorted(os.environ.items()), os.getcwd(), os.read(0, 1), sys.stdin.isatty())"
    with keeper(tmp_path) as kept:
        kept.order(python(code), env={"A": "ü", "LC_ALL": "C.UTF-8"}, cwd=str(tmp_path))
        kept.hear("started")
        assert kept.hear("exited")["code"] == 0
        assert kept.text == f"[('A', 'ü'), ('LC_ALL', 'C.UTF-8')] {tmp_path} b'' False\n"


def test_the_engine_hears_signals_that_its_keeper_does_not_mind(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(("grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"))
        kept.hear("started")
        kept.hear("exited")
        masks = [int(word, 16) for word in re.findall(r"[0-9a-f]{16}", kept.text)]
        minded = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
        assert len(masks) == 2
        assert not any(mask >> (number - 1) & 1 for mask in masks for number in minded)


def test_an_interrupt_or_hangup_does_not_end_a_keeper(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(MOCK)
        kept.hear("started")
        kept.logged("listening on")
        kept.process.send_signal(signal.SIGINT)
        kept.process.send_signal(signal.SIGHUP)
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["code"] == 0


def test_a_terminated_keeper_stops_its_engine_first(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(MOCK)
        kept.hear("started")
        kept.logged("listening on")
        kept.process.terminate()
        assert kept.hear("gone") == {"event": "gone", "survivors": [], "code": 0, "signal": None, "forced": False}


def test_a_stopped_engine_can_still_end_nicely(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(MOCK, grace_s=20)
        pid = kept.hear("started")["pid"]
        kept.logged("listening on")
        os.kill(pid, signal.SIGSTOP)
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["code"] == 0


def test_descendants_that_go_on_forking_are_caught(tmp_path: Path) -> None:
    forker = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork(): time.sleep(3600)\n"
        "os.setsid()\n"
        "print('forking', os.getpid())\n"
        "while True:\n"
        "    if not os.fork(): os.setsid(); time.sleep(3600)\n"
        "    time.sleep(0.01)\n"
    )
    with keeper(tmp_path) as kept:
        kept.order(python(forker), grace_s=0.1)
        kept.hear("started")
        (pid,) = family(kept.logged(r"forking \d+"))
        until(lambda: len(children(pid)) > 5)
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["survivors"] == []
        assert not alive(pid)


def test_a_cut_leash_leaves_nothing_after_a_short_grace(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(FAMILY, grace_s=600)
        pid = kept.hear("started")["pid"]
        kept.logged("listening on")
        pids = [pid, *family(kept.logged(r"grandchild \d+|daemon \d+"))]
        kept.cut_leash()
        assert kept.hear("gone")["survivors"] == []
        assert not any(map(alive, pids))


RUNNER = """
import json, subprocess, sys
order = json.loads(sys.argv[2])
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
keeper = subprocess.Popen(json.loads(sys.argv[1]), **pipes, start_new_session=True)
keeper.stdin.write(json.dumps(order).encode() + b"\\n")
keeper.stdin.flush()
print(keeper.pid, json.loads(keeper.stdout.readline())["pid"], flush=True)
keeper.wait()
"""


def test_kill_9_of_the_runner_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    order = {"argv": FAMILY, "env": ENV, "cwd": None, "log": str(log), "tail": str(log) + ".tail", "grace_s": 0.1}
    command = (sys.executable, "-c", RUNNER, json.dumps(KEEPER), json.dumps(order))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        pids = [int(word) for word in runner.stdout.readline().split()]
        until(lambda: log.exists() and "listening on" in log.read_text(encoding="utf-8"))
        pids += family(re.findall(r"grandchild \d+|daemon \d+", log.read_text(encoding="utf-8")))
        assert len(pids) == 4
        assert all(map(alive, pids))
        runner.kill()
    assert all_die(pids)


def test_nobody_listening_does_not_keep_a_keeper_from_cleaning_up(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(FAMILY, grace_s=0.1)
        pids = [kept.hear("started")["pid"]]
        kept.logged("listening on")
        pids += family(kept.logged(r"grandchild \d+|daemon \d+"))
        assert kept.process.stdout is not None
        kept.process.stdout.close()
        os.kill(pids[0], signal.SIGKILL)
        assert all_die(pids)
        assert kept.process.wait(10) == 0


def test_kill_9_of_the_keeper_takes_the_engine_with_it(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(python(IGNORES_TERM))
        pid = kept.hear("started")["pid"]
        kept.logged("up")
        kept.process.kill()
        assert all_die([pid])


def test_without_proc_the_engines_group_is_still_stopped(tmp_path: Path) -> None:
    blind = (
        f"import sys; sys.path.insert(0, {str(HOST)!r}); import keeper; keeper.procs.PROC = '/nowhere'; keeper.main()"
    )
    with keeper(tmp_path, (sys.executable, "-I", "-S", "-c", blind)) as kept:
        kept.order(("sh", "-c", "trap '' TERM; sleep 3600 & echo worker $!; wait; sleep 3600"), grace_s=0.2)
        started = kept.hear("started")
        assert started["start_time"] is None
        pids = [started["pid"], *family(kept.logged(r"worker \d+"))]
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["forced"]
        assert not any(map(alive, pids))


def test_an_idle_keeper_costs_no_processor_time(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.order(python(IGNORES_TERM))
        kept.hear("started")
        kept.logged("up")
        path = Path(f"/proc/{kept.process.pid}/stat")
        until(lambda: path.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "S")
        before, begun = path.read_text(encoding="utf-8").split()[13:15], time.monotonic()
        until(lambda: time.monotonic() - begun > 0.3)
        assert path.read_text(encoding="utf-8").split()[13:15] == before
        kept.tell({"do": "kill"})
        kept.hear("gone")
