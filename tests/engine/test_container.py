"""The argv of a container round an engine's own."""

from pathlib import Path

import pytest

from deploytui.engine.adapter import host_script, interpreter
from deploytui.engine.container import (
    HOST_SCRIPTS,
    contained,
    container_name,
    container_probe,
    mounts,
    presence,
    removal,
    runtime_failure,
)
from deploytui.engine.protocol import Launch, Probe
from deploytui.profile.schema import Candidate, Container

GPUS = ("GPU-1", "GPU-2")
IMAGE = "vllm/vllm-openai:v0.33.0"


def _launch(*more: str, **fields: object) -> Launch:
    argv = ("python3", "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", "8123", *more)
    return Launch(argv=argv, base_url="http://127.0.0.1:8123", served_model="m", **fields)  # type: ignore[arg-type]


def _inside(container: Container, launch: Launch, gpus: tuple[str, ...] = GPUS, model: str | None = None) -> Launch:
    return contained(
        launch,
        container,
        name="deploytui-s-c",
        session="s",
        model_path=model,
        gpu_uuids=gpus,
        env_names=("VLLM_API_KEY", "CUDA_VISIBLE_DEVICES"),
    )


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_docker_gets_gpus_by_uuid_and_the_model_read_only(tmp_path: Path) -> None:
    launch = _inside(Container(image=IMAGE, args=("--shm-size", "8g")), _launch(), model=str(tmp_path))
    assert launch.argv == (
        *("docker", "run", "--rm", "--name", "deploytui-s-c", "--label", "deploytui.session=s"),
        *("--network", "host", "--ipc", "host"),
        *("--gpus", '"device=GPU-1,GPU-2"'),
        *("--mount", f"type=bind,source={tmp_path},target={tmp_path},readonly"),
        *("--env", "CUDA_VISIBLE_DEVICES", "--env", "VLLM_API_KEY"),
        *("--shm-size", "8g"),
        *("--entrypoint", "python3", IMAGE),
        *_launch().argv[1:],
    )
    assert (launch.base_url, launch.served_model) == ("http://127.0.0.1:8123", "m")


def test_podman_gets_gpus_by_their_device_names() -> None:
    argv = _inside(Container(image=IMAGE, runtime="podman"), _launch()).argv
    assert argv[0] == "podman"
    assert " ".join(argv).count("--device nvidia.com/gpu=GPU-") == 2
    assert "--gpus" not in argv


def test_apptainer_is_the_engines_own_parent(tmp_path: Path) -> None:
    container = Container(image="engine.sif", runtime="apptainer", args=("--no-home",))
    argv = _inside(container, _launch(), model=str(tmp_path)).argv
    bind = f"{tmp_path}:{tmp_path}:ro"
    assert argv == ("apptainer", "exec", "--nv", "--bind", bind, "--no-home", "engine.sif", *_launch().argv)
    assert removal(container, "x") is None
    assert "--nv" not in _inside(container, _launch(), gpus=()).argv


def test_without_gpus_none_is_passed_in() -> None:
    assert "--gpus" not in _inside(Container(image=IMAGE), _launch(), gpus=()).argv


def test_no_value_of_the_environment_is_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_swordfish")
    launch = _inside(Container(image=IMAGE), _launch(env={"VLLM_API_KEY": "swordfish"}))
    assert "swordfish" not in " ".join(launch.argv)
    assert "HF_TOKEN" in launch.argv
    assert launch.env == {"VLLM_API_KEY": "swordfish"}


def test_what_is_shown_hides_what_the_engine_hides() -> None:
    shown = ("python3", "--api-key", "…")
    launch = _inside(Container(image=IMAGE), _launch("--api-key", "swordfish", shown_argv=shown))
    assert launch.shown_argv is not None
    assert "swordfish" not in " ".join(launch.shown_argv)
    assert launch.shown_argv[-3:] == (IMAGE, "--api-key", "…")


def test_our_own_scripts_are_there_when_they_are_run() -> None:
    launch = Launch(argv=("python3", host_script("serve.py")), base_url="http://127.0.0.1:1", served_model="m")
    argv = _inside(Container(image=IMAGE), launch).argv
    assert f"type=bind,source={HOST_SCRIPTS},target={HOST_SCRIPTS},readonly" in argv
    assert str(HOST_SCRIPTS) not in " ".join(_inside(Container(image=IMAGE), _launch()).argv)


def test_links_of_a_hub_cache_can_be_followed(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "123").write_text("weights")
    (snapshot / "model.safetensors").symlink_to("../../blobs/123")
    assert list(mounts([str(snapshot)])) == [str(blobs), str(snapshot)]


def test_each_folder_is_shown_once_and_what_is_not_there_never(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    assert list(mounts([str(inner), str(tmp_path), str(inner), "/nowhere/at/all"])) == [str(tmp_path)]


def test_a_comma_in_a_path_does_not_end_it(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    docker = _inside(Container(image=IMAGE), _launch(), model=str(folder)).argv
    assert f'type=bind,"source={folder}","target={folder}",readonly' in docker
    apptainer = _inside(Container(image=IMAGE, runtime="apptainer"), _launch(), model=str(folder)).argv
    assert any(word.startswith(str(folder).replace(",", "\\,")) for word in apptainer)


def test_a_probe_asks_inside_the_image_and_cleans_up_by_name() -> None:
    probe = Probe(argv=("python3", host_script("probe.py"), "--dist", "vllm"), env={"A": "b"}, timeout_s=5)
    container = Container(image=IMAGE)
    inside = container_probe(probe, container)
    name = inside.argv[inside.argv.index("--name") + 1]
    assert inside.argv[-5:] == ("python3", IMAGE, *probe.argv[1:])
    assert inside.cleanup == ("docker", "rm", "--force", name)
    assert inside.timeout_s > probe.timeout_s
    assert container_probe(inside, container) == inside


def test_names_are_made_of_what_runtimes_allow() -> None:
    assert container_name("2026-s", "a b/ü") == "deploytui-2026-s-a-b--"
    assert presence(Container(image="x"), "n")[-1] == "n"


def test_inside_a_container_the_interpreter_is_the_images() -> None:
    candidate = Candidate(name="x", engine="vllm", container=Container(image=IMAGE))
    assert interpreter(candidate, "transformers") == "python3"


def test_a_runtime_that_is_there_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    candidate = Candidate(name="x", engine="vllm", container=Container(image=IMAGE))
    assert runtime_failure(candidate) is None
    missing = Candidate(name="x", engine="vllm", container=Container(image=IMAGE, runtime="apptainer"))
    failure = runtime_failure(missing)
    assert failure is not None
    assert failure.kind == "not_installed"
    assert runtime_failure(Candidate(name="x", engine="vllm")) is None
