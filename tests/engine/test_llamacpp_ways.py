"""Which of the three ways to llama.cpp a candidate gets, and what each is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from deploytui.engine import llamacpp_ways
from deploytui.engine.adapter import host_script
from deploytui.engine.llamacpp import LlamaCpp
from deploytui.engine.protocol import Place, Probed
from deploytui.profile.schema import Candidate, Container, Settings
from tests.engine.captured import after

ENGINE = LlamaCpp()
PLAIN = Candidate(name="a", engine="llamacpp", model="m.gguf")
NAMED = replace(PLAIN, python="/opt/py")
BINDINGS = Probed(
    found=True,
    version="0.3.36",
    detail={"distribution": "llama_cpp_python", "calls": {"llama_cpp:llama_supports_gpu_offload": False}},
)
PLACE = Place(port=8123, model_path="/models/m.gguf", concurrency=4, context_tokens=300, api_key="k", probed=BINDINGS)


def environment(folder: Path) -> Path:
    """A finished environment of the llama_cpp package, as far as can be seen from outside."""
    python = folder / "llama-cpp-python" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / "llama-cpp-python" / "ready.json").write_text("{}", encoding="utf-8")
    return python


def without_xllamacpp(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(llamacpp_ways, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", path)


def test_a_command_is_taken_whatever_else_is_there() -> None:
    asked = replace(PLAIN, command=("/opt/llama-server",))
    assert ENGINE.launch(asked, PLACE).argv[0] == "/opt/llama-server"


def test_xllamacpp_is_taken_before_llama_cpp_in_the_same_interpreter(tmp_path: Path) -> None:
    names = ("xllamacpp", "llama_cpp_python"), ("llama_cpp_python",)
    found = [probed(tmp_path / str(index), *those) for index, those in enumerate(names)]
    assert [one.detail["distribution"] for one in found] == ["xllamacpp", "llama_cpp_python"]
    scripts = [ENGINE.launch(NAMED, replace(PLACE, probed=one)).argv[1] for one in found]
    assert [Path(script).name for script in scripts] == ["serve_xllamacpp.py", "serve_llama_cpp.py"]


def probed(folder: Path, *distributions: str) -> Probed:
    """What the probe tells in an interpreter that has these distributions and nothing else of llama.cpp."""
    functions = {"xllamacpp": "get_device_info", "llama_cpp_python": "llama_supports_gpu_offload"}
    for name in distributions:
        module = name.removesuffix("_python")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (folder / f"{module}.py").write_text(f"def {functions[name]}():\n    return False\n", encoding="utf-8")
    asked = ENGINE.probe(replace(PLAIN, python=sys.executable))
    assert asked is not None
    script = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(folder)!r}]; "
    script += f"sys.argv = {list(asked.argv[1:])!r}; import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, timeout=60, check=True)
    told = json.loads(done.stdout)
    return Probed(found=told["found"], version=told["version"], detail=told["detail"], error=told["error"])


def test_without_any_package_a_server_on_path_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    python = environment(tmp_path)
    without_xllamacpp(monkeypatch, str(tmp_path))
    alone = ENGINE.launch(PLAIN, replace(PLACE, probed=None)).argv
    assert (alone[0], Path(alone[1]).name) == (str(python), "serve_llama_cpp.py")
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\n", encoding="utf-8")
    server.chmod(0o755)
    assert ENGINE.launch(PLAIN, replace(PLACE, probed=None)).argv[0] == "llama-server"
    assert ENGINE.launch(NAMED, PLACE).argv[0] == "/opt/py"


def test_xllamacpp_beside_deploytui_is_taken_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    environment(tmp_path)
    launch = ENGINE.launch(PLAIN, replace(PLACE, probed=None))
    assert (launch.argv[0], Path(launch.argv[1]).name) == (sys.executable, "serve_xllamacpp.py")


def test_settings_reach_llama_cpp_as_options_of_its_host() -> None:
    settings = Settings(threads=2, gpu_layers=7, kv_cache_dtype="q8_0", prefix_cache=False, max_model_len=512)
    launch = ENGINE.launch(replace(NAMED, settings=settings, args=("n_batch=64",)), PLACE)
    told = after(launch.argv, "--threads", "--gpu-layers", "--cache-type", "--max-model-len", "--set", "--model")
    assert told == ("2", "7", "q8_0", "512", "n_batch=64", "/models/m.gguf")
    assert "--no-prefix-cache" in launch.argv
    assert launch.env["DEPLOYTUI_API_KEY"] == "k"
    assert "LLAMA_API_KEY" not in launch.env


def test_llama_cpp_gets_context_for_the_longest_request_and_one_slot() -> None:
    assert after(ENGINE.launch(NAMED, PLACE).argv, "--max-model-len") == ("512",)
    many = replace(NAMED, settings=Settings(max_num_seqs=4))
    failure = ENGINE.judge(many, BINDINGS)
    assert failure is not None
    assert failure.kind == "unsupported_setting"
    assert "one request at a time" in failure.what
    assert ENGINE.judge(replace(many, settings=Settings(max_num_seqs=1)), BINDINGS) is None


def test_llama_cpp_without_cuda_is_never_taken_for_a_gpu_candidate() -> None:
    failure = ENGINE.judge(replace(NAMED, device="cuda"), BINDINGS)
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert "llama_supports_gpu_offload() is False" in failure.why
    able = replace(BINDINGS, detail={"calls": {"llama_cpp:llama_supports_gpu_offload": True}})
    assert ENGINE.judge(replace(NAMED, device="cuda"), able) is None


def test_an_interpreter_with_neither_names_both_remedies() -> None:
    failure = ENGINE.judge(NAMED, Probed(found=False))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert "/opt/py" in failure.what
    assert "setup-engine llama-cpp-python" in failure.fix


def test_a_program_of_an_image_is_not_probed_with_a_python_it_may_not_have() -> None:
    boxed = replace(PLAIN, container=Container(image="llama"), command=("/app/llama-server",))
    assert ENGINE.objection(boxed) is None
    assert ENGINE.probe(boxed) is None
    assert ENGINE.launch(boxed, replace(PLACE, probed=None)).argv[0] == "/app/llama-server"
    inside = ENGINE.probe(replace(boxed, command=None))
    assert inside is not None
    assert inside.argv[0] == "python3"


def test_a_module_that_is_not_there_is_not_called() -> None:
    argv = [sys.executable, host_script("probe.py"), "--module", "json", "--call", "no_such_module_here:call"]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=True, env={**os.environ})
    assert json.loads(done.stdout)["error"] == ""
