"""An engine in a container: the argv of docker, podman or apptainer round its own.

The container shares the node's network, since engines listen on loopback alone and no port has to be mapped then; its
shared memory, which vLLM's and SGLang's workers talk through; and, read-only at the same paths, the model and our own
scripts. Values of the environment never stand in the argv: they are handed over by name.
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from deploytui.engine.protocol import Launch, Probe
from deploytui.profile.schema import Candidate, Container
from deploytui.record.facts import Failure

HOST_SCRIPTS = Path(__file__).parent.parent / "host"
LABEL = "deploytui.session"
PROBE_S = 120.0
"""How much longer a probe may take in a container, whose image may have to be unpacked [s]."""
PASSED_ON = ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_ENDPOINT")
"""Variables of ours that an engine needs in a container, too, where they are set."""


def container_name(session: str, candidate: str) -> str:
    """What a candidate's container is called, in the letters that runtimes allow."""
    safe = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "_.-") else "-" for letter in candidate
    )
    return f"deploytui-{session}-{safe}"


def runtime_failure(candidate: Candidate) -> Failure | None:
    """The failure of a candidate whose container runtime is not installed; None when it is, or none is asked for."""
    container = candidate.container
    if container is None or shutil.which(container.runtime):
        return None
    return Failure(
        kind="not_installed",
        what=f"{candidate.name} asks for a container by {container.runtime}, which is not installed here.",
        fix=f"Install {container.runtime}, name another one with container.runtime, or give python instead.",
    )


def has_name(container: Container) -> bool:
    """Whether its runtime keeps containers by name, apart from the process that started them."""
    return container.runtime != "apptainer"


def contained(
    launch: Launch,
    container: Container,
    *,
    name: str,
    session: str,
    model_path: str | None,
    gpu_uuids: tuple[str, ...],
    env_names: Iterable[str],
) -> Launch:
    """The launch inside a container that has this name; the engine's own argv starts with a program of the image."""
    shown_folders = (*launch.folders, *((model_path,) if model_path else ()))

    def inside(argv: tuple[str, ...]) -> tuple[str, ...]:
        return _argv(
            container, argv, name=name, session=session, folders=shown_folders, gpus=gpu_uuids, env_names=env_names
        )

    env_names = tuple(env_names)
    shown = launch.shown_argv or launch.argv
    return replace(launch, argv=inside(launch.argv), shown_argv=inside(shown))


def container_probe(probe: Probe, container: Container) -> Probe:
    """The probe inside a container of the same image, without a GPU: it looks for packages and versions."""
    if probe.argv[0] == container.runtime:
        return probe
    name = f"deploytui-probe-{secrets.token_hex(6)}"
    argv = _argv(container, probe.argv, name=name, session="probe", folders=(), gpus=(), env_names=probe.env)
    return replace(probe, argv=argv, timeout_s=probe.timeout_s + PROBE_S, cleanup=removal(container, name) or ())


def removal(container: Container, name: str) -> tuple[str, ...] | None:
    """The argv that ends and removes a container by name; None where it ends with its process."""
    return (container.runtime, "rm", "--force", name) if has_name(container) else None


def presence(container: Container, name: str) -> tuple[str, ...]:
    """The argv that prints the pid of a container's first process, 0 when it does not run; fails without one."""
    return (container.runtime, "container", "inspect", "--format", "{{.State.Pid}}", name)


def image_digests(container: Container) -> tuple[str, ...]:
    """The argv that prints an image's id and repository digests; fails when it is not here yet."""
    return (container.runtime, "image", "inspect", "--format", "{{.Id}} {{json .RepoDigests}}", container.image)


def image_probe(container: Container) -> Probe | None:
    """Whether an image is here; None where the runtime keeps none of its own."""
    if not has_name(container):
        return None
    told = ("image", "inspect", "--format", '{"found": true}', container.image)
    return Probe(argv=(container.runtime, *told), timeout_s=PROBE_S)


def pull(container: Container) -> tuple[str, ...]:
    """The argv that fetches an image."""
    return (container.runtime, "pull", container.image)


def _argv(
    container: Container,
    argv: tuple[str, ...],
    *,
    name: str,
    session: str,
    folders: tuple[str, ...],
    gpus: tuple[str, ...],
    env_names: Iterable[str],
) -> tuple[str, ...]:
    shown = list(mounts((*folders, *_own_scripts(argv))))
    if container.runtime == "apptainer":
        binds = (word for path in shown for word in ("--bind", _bound(path)))
        # Apptainer passes the environment on as it is, and ends with the process that started it.
        return ("apptainer", "exec", *(("--nv",) if gpus else ()), *binds, *container.args, container.image, *argv)
    return (
        *(container.runtime, "run", "--rm", "--name", name, "--label", f"{LABEL}={session}"),
        *("--network", "host", "--ipc", "host"),
        *_gpu_words(container, gpus),
        *(word for path in shown for word in ("--mount", _mounted(path))),
        *(word for variable in _passed(env_names) for word in ("--env", variable)),
        *container.args,
        *("--entrypoint", argv[0], container.image),
        *argv[1:],
    )


def _passed(names: Iterable[str]) -> list[str]:
    return sorted({*names, *(name for name in PASSED_ON if name in os.environ)})


def _gpu_words(container: Container, gpus: tuple[str, ...]) -> Iterator[str]:
    if not gpus:
        return
    if container.runtime == "docker":
        # Docker reads the value as a line of CSV, where only quotes keep the commas together.
        yield from ("--gpus", f'"device={",".join(gpus)}"')
        return
    for uuid in gpus:
        yield from ("--device", f"nvidia.com/gpu={uuid}")
    yield from ("--security-opt", "label=disable")


def _own_scripts(argv: tuple[str, ...]) -> Iterator[str]:
    if any(Path(word).is_relative_to(HOST_SCRIPTS) for word in argv):
        yield str(HOST_SCRIPTS)


def mounts(paths: Iterable[str]) -> Iterator[str]:
    """What a container has to be shown, so that these paths mean the same in it, each once and none within another.

    Folders of a model hub hold links to files elsewhere, which must be there, too.
    """
    wanted = {Path(path).absolute() for path in paths if Path(path).exists()}
    wanted |= {target for path in list(wanted) for target in _link_targets(path)}
    for path in sorted(wanted):
        if not any(path != other and path.is_relative_to(other) for other in wanted):
            yield str(path)


def _link_targets(path: Path) -> Iterator[Path]:
    """Folders of the files that links in a folder, or the path itself, point at."""
    links = [path, *(path.rglob("*") if path.is_dir() else ())]
    for link in links:
        if link.is_symlink() and (target := link.resolve()).exists():
            yield target if target.is_dir() else target.parent


def _mounted(path: str) -> str:
    return ",".join(("type=bind", _quoted(f"source={path}"), _quoted(f"target={path}"), "readonly"))


def _quoted(field: str) -> str:
    """A field of a CSV line."""
    return '"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field


def _bound(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    return f"{escaped}:{escaped}:ro"
