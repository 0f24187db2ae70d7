import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui.engine.adapter import host_script
from deploytui.engine.failures import explain_log

SCRIPT = host_script("serve_xllamacpp.py")


def serve(model: str, *settings: str) -> subprocess.CompletedProcess[bytes]:
    words = [word for setting in settings for word in ("--set", setting)]
    argv = [sys.executable, SCRIPT, "--model", model, "--port", "1", "--alias", "a", *words]
    env = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    return subprocess.run(argv, capture_output=True, timeout=60, env=env, check=False)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("n_bathc=3", "the nearest is 'n_batch'"),
        ("cpuparams.n_thread=2", "the nearest is 'n_threads'"),
        ("n_ctx=many", "bad value 'many' for parameter n_ctx: it is of type int"),
        ("check_tensors=perhaps", "bad value 'perhaps'"),
        ("cache_type_k=q8_9", "bad value 'q8_9'"),
        ("n_ctx", "is not of the form NAME=VALUE"),
        ("model=other", "can't be set from text"),
    ],
)
def test_a_parameter_that_does_not_fit_ends_it_with_2_and_one_clear_line(setting: str, words: str) -> None:
    ran = serve("/no/such.gguf", setting)
    assert ran.returncode == 2
    assert words in ran.stderr.decode()
    assert b"Traceback" not in ran.stderr
    failure = explain_log(ran.stderr.decode().splitlines())
    assert failure is not None
    assert failure.kind == "bad_flag"


def test_a_file_that_is_no_model_ends_it_with_1_and_llamacpps_own_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model at all")
    ran = serve(str(broken), "n_ctx=256", "cache_type_k=q8_0", "load_mode=mmap", "check_tensors=yes")
    assert ran.returncode == 1
    said = (ran.stdout + ran.stderr).decode(errors="replace")
    assert "Traceback" not in said
    failure = explain_log(said.splitlines())
    assert failure is not None
    assert failure.kind == "corrupt"
    assert "invalid magic characters" in failure.why


FAKE = """
import enum


class kind(enum.IntEnum):
    GGML_TYPE_F16 = 1
    GGML_TYPE_Q8_0 = 8


class Model:
    path = ""


class CommonParams:
    def __init__(self):
        self.model, self.port, self.hostname, self.model_alias = Model(), 0, "", ""
        self.endpoint_metrics = self.endpoint_slots = False
        self.api_keys, self.n_ctx, self.cache_type_k = [], 0, kind.GGML_TYPE_F16


class Server:
    def __init__(self, params):
        print(params.model.path, params.port, params.hostname, params.model_alias, params.n_ctx)
        print(params.cache_type_k.name)
        print(params.api_keys == ["s3cret"], params.endpoint_metrics)
        self.listening_address = "http://{}:{}".format(params.hostname, params.port)
"""


def test_it_serves_until_sigterm_also_with_an_older_package(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text(FAKE, encoding="utf-8")
    argv = [sys.executable, SCRIPT, "--model", "m.gguf", "--port", "81", "--alias", "org/a,b"]
    argv += ["--set", "n_ctx=512", "--set", "cache_type_k=q8_0"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "LLAMA_API_KEY": "s3cret", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().decode().strip() for _ in range(4)]
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)
    assert said[0] == "m.gguf 81 127.0.0.1 org/a,b 512"
    assert said[1] == "GGML_TYPE_Q8_0"
    assert said[2] == "True True"
    assert said[3] == "serve_xllamacpp: listening on http://127.0.0.1:81"
    assert code in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    "name",
    [
        *("probe.py", "probe_onnx_cuda.py", "serve_xllamacpp.py"),
        *("serve_llama_cpp.py", "serve_onnx.py", "serve_onnx_batch.py"),
    ],
)
def test_scripts_that_run_anywhere_use_no_syntax_newer_than_3_9(name: str) -> None:
    text = Path(host_script(name)).read_text(encoding="utf-8")
    assert ast.parse(text, feature_version=(3, 9)).body
