"""A stand-in for docker and its daemon: containers are processes of the daemon, which outlive the client.

`standin_docker.py daemon FOLDER` serves; as `docker` it is the client, with the daemon's folder in STANDIN_FOLDER. Each
client's argv is a line of FOLDER/argv.jsonl. A container that was told to be stubborn (FOLDER/stubborn) is not ended
by its client; FOLDER/unremovable lets `rm` fail, and with FOLDER/unreachable only `run` reaches the daemon.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

TAKES_VALUE = {"--name", "--label", "--network", "--ipc", "--gpus", "--device", "--mount", "--env", "--entrypoint"}
TAKES_VALUE |= {"--security-opt", "--shm-size"}
running: dict[str, "subprocess.Popen[bytes]"] = {}


def main() -> int:
    if sys.argv[1] == "daemon":
        return serve(Path(sys.argv[2]))
    folder = Path(os.environ["STANDIN_FOLDER"])
    with (folder / "argv.jsonl").open("a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    match sys.argv[1:]:
        case ["run", *words]:
            return run(folder, words)
        case _ if (folder / "unreachable").exists():
            sys.stderr.write("Cannot connect to the Docker daemon. Is the docker daemon running?\n")
            return 1
        case ["rm", "--force", name]:
            return 1 if (folder / "unremovable").exists() else int(ask(folder, {"do": "rm", "name": name}))
        case ["container", "inspect", "--format", _, name]:
            pid = ask(folder, {"do": "pid", "name": name})
            say(pid)
            if not int(pid):
                sys.stderr.write(f"Error: No such container: {name}\n")
            return 0 if int(pid) else 1
        case ["image", "inspect", "--format", form, image]:
            if (folder / "absent").exists():
                return complain(f"Error response from daemon: No such image: {image}")
            say(f'sha256:1234 ["{image.partition(":")[0]}@sha256:abcd"]' if "{{" in form else form)
            return 0
        case ["pull", image]:
            return pull(folder, image)
    return 125


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


def pull(folder: Path, image: str) -> int:
    """FOLDER/barred refuses, FOLDER/stuck never ends."""
    if (folder / "barred").exists():
        return complain(f"Error response from daemon: pull access denied for {image}, may require 'docker login'")
    say(f"1: Pulling from {image}")
    for layer in ("a2318d6c47ec", "095d327c79ae"):
        say(f"{layer}: Pulling fs layer")
    say("a2318d6c47ec: Download complete")
    while (folder / "stuck").exists():
        signal.pause()
    say("a2318d6c47ec: Pull complete")
    say("095d327c79ae: Already exists")
    say(f"Status: Downloaded newer image for {image}")
    (folder / "absent").unlink()
    return 0


def ask(folder: Path, words: dict[str, Any], handles: tuple[int, ...] = ()) -> str:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(folder / "socket"))
        socket.send_fds(line, [json.dumps(words).encode()], list(handles))
        return line.recv(1000).decode()


def run(folder: Path, words: list[str]) -> int:
    options, rest = {}, list(words)
    env = {"PATH": os.environ["PATH"]}
    while rest[0].startswith("-"):
        word = rest.pop(0)
        if word in TAKES_VALUE:
            options[word] = rest.pop(0)
        if word == "--env" and options[word] in os.environ:
            env[options[word]] = os.environ[options[word]]
    argv = [options["--entrypoint"], *rest[1:]]
    name = options["--name"]
    if not (folder / "stubborn").exists():
        signal.signal(signal.SIGTERM, lambda *_: ask(folder, {"do": "term", "name": name}))
    return int(ask(folder, {"do": "run", "name": name, "argv": argv, "env": env}, (1, 2)))


def serve(folder: Path) -> int:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "socket"))
        door.listen(20)
        say("ready")
        while True:
            line, _ = door.accept()
            threading.Thread(target=obey, args=(line,), daemon=True).start()


def obey(line: socket.socket) -> None:
    data, handles, _, _ = socket.recv_fds(line, 1 << 16, 4)
    words = json.loads(data)
    with line:
        answer = done(words, handles)
        try:
            line.sendall(answer.encode())
        except OSError:
            return


def done(words: dict[str, Any], handles: list[int]) -> str:
    name = str(words["name"])
    process = running.get(name)
    match words["do"]:
        case "run":
            return str(contain(name, words, handles))
        case "pid":
            return str(process.pid if process else 0)
        case "term" if process:
            process.terminate()
        case "rm" if process:
            process.kill()
            process.wait()
            running.pop(name, None)
    return "0" if process else "1"


def contain(name: str, words: dict[str, Any], handles: list[int]) -> int:
    # As with a real daemon, nobody finds its processes by the mark in their environment.
    env = {key: value for key, value in words["env"].items() if key != "DEPLOYTUI_SESSION"}
    process = subprocess.Popen(
        words["argv"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=handles[0],
        stderr=handles[1],
        start_new_session=True,
    )
    for handle in handles:
        os.close(handle)
    running[name] = process
    code = process.wait()
    running.pop(name, None)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
