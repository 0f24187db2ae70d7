import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.engine.adapter import Adapter, loopback_url
from deploytui.engine.conformance import faults, main
from deploytui.engine.protocol import Capabilities, Engine, Launch, Place, Probe, Probed
from deploytui.engine.registry import BUILT_IN, load_engine
from deploytui.engine.words import gpu_environment, objections
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import EngineFacts, Failure

PACKAGE = """
from deploytui.engine.adapter import Adapter, loopback_url
from deploytui.engine.protocol import Capabilities, Launch
from deploytui.engine.words import gpu_environment, objections

class Fast(Adapter):
    name, title = "fast", "Fast Server"
    formats = frozenset({"safetensors"})
    capabilities = Capabilities(formats=formats, settings=frozenset({"max_model_len"}))

    def objection(self, candidate):
        return next(objections(self.title, self.capabilities, candidate, {}), None)

    def launch(self, candidate, place):
        length = candidate.settings.max_model_len
        words = ("--length", str(length)) if length else ()
        return Launch(
            argv=("fast-server", "--model", place.model_path or "", "--port", str(place.port), *words),
            env={**gpu_environment(candidate, place), **candidate.env},
            base_url=loopback_url(place.port),
            served_model="fast",
        )
"""


class Plain(Adapter):
    """An adapter that keeps everything; each test breaks one thing of it."""

    name, title = "plain", "Plain"
    capabilities = Capabilities(
        formats=frozenset({"safetensors"}), settings=frozenset({"max_model_len", "cuda_graphs"})
    )
    formats = capabilities.formats

    def objection(self, candidate: Candidate) -> Failure | None:
        return next(objections(self.title, self.capabilities, candidate, {}), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        return Probe(argv=("plain", "--version"))

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        return None if probed.found else Failure(kind="not_installed", what="Plain is not installed.")

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        settings = candidate.settings
        words = ("--length", str(settings.max_model_len)) if settings.max_model_len else ()
        eager = ("--eager",) if settings.cuda_graphs is False else ()
        return Launch(
            argv=("plain", "--model", place.model_path or "", "--port", str(place.port), *words, *eager),
            env={**gpu_environment(candidate, place), **candidate.env},
            base_url=loopback_url(place.port),
            served_model="plain",
        )


def relaunched(change: Callable[[Launch, Place], Launch]) -> type[Plain]:
    """A Plain whose launch is changed."""

    class Changed(Plain):
        def launch(self, candidate: Candidate, place: Place) -> Launch:
            return change(super().launch(candidate, place), place)

    return Changed


def with_words(*words: str) -> Callable[[Launch, Place], Launch]:
    """A change that adds words to argv, `KEY` standing for the API key."""

    def change(launch: Launch, place: Place) -> Launch:
        return replace(launch, argv=(*launch.argv, *(place.api_key or "" if word == "KEY" else word for word in words)))

    return change


class Nameless(Plain):
    name = ""


class Typeless(Plain):
    readback_paths = ["/v1/models"]  # type: ignore[assignment]


class Pathless(Plain):
    health_path = "health"


class Undone(Plain):
    explain = None  # type: ignore[assignment]


class Deaf(Plain):
    def objection(self, candidate: Candidate) -> Failure | None:
        return None


class Idle(Plain):
    capabilities = Capabilities(formats=Plain.formats, settings=frozenset({"max_model_len", "threads"}))


class Odd(Plain):
    capabilities = Capabilities(formats=Plain.formats, settings=frozenset({"max_model_len", "speed"}))


class Brittle(Plain):
    def explain(self, log: Iterable[str]) -> Failure | None:
        return Failure(kind="unknown", what=next(iter(log)))


class Trusting(Plain):
    def readback(self, facts: EngineFacts, answers: Any) -> EngineFacts:
        return replace(facts, version=answers["/v1/models"]["data"][0]["id"])


class Busy(Plain):
    def probe(self, candidate: Candidate) -> Probe | None:
        subprocess.run([sys.executable, "-c", ""], check=True)
        return None


class Writing(Plain):
    def body(self, candidate: Candidate) -> dict[str, Any]:
        with Path(os.devnull).open("w", encoding="utf-8") as file:
            file.write("x")
        return {}


class Blind(Plain):
    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        return None


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_every_engine_of_ours_conforms(name: str) -> None:
    assert faults(load_engine(name)) == ()


def test_an_adapter_that_keeps_everything_has_no_faults() -> None:
    assert faults(Plain()) == ()


@pytest.mark.parametrize(
    ("engine", "fault"),
    [
        (Nameless, "name is empty"),
        (Typeless, "readback_paths is ['/v1/models']"),
        (Pathless, "'health' is no path"),
        (Undone, "no method explain"),
        (Deaf, "does not object to base_url"),
        (Deaf, "no word for the setting gpu_layers"),
        (Idle, "the setting threads changes nothing"),
        (Odd, "speed, which are no settings"),
        (Brittle, "raises"),
        (Trusting, "raises"),
        (Busy, "reaches out of its process: subprocess.Popen"),
        (Writing, "writes a file"),
        (Blind, "finds nothing wrong"),
        (relaunched(with_words("--host", "0.0.0.0")), "listens beyond this node"),
        (relaunched(with_words("--key", "KEY")), "API key is in argv"),
        (relaunched(lambda launch, _: replace(launch, argv=launch.argv[:3])), "the port is not in argv"),
        (relaunched(lambda launch, _: replace(launch, argv=("p", *launch.argv[3:]))), "the model is not in argv"),
        (relaunched(lambda launch, _: replace(launch, argv=())), "argv is empty"),
        (relaunched(lambda launch, _: replace(launch, base_url="http://10.0.0.1:1")), "not on loopback"),
        (relaunched(lambda launch, _: replace(launch, served_model="")), "which model it will serve"),
        (relaunched(lambda launch, _: replace(launch, env={})), "CUDA_VISIBLE_DEVICES"),
        (relaunched(lambda launch, _: replace(launch, env={})), "own environment"),
    ],
)
def test_what_an_adapter_does_not_keep_is_named(engine: Callable[[], Engine], fault: str) -> None:
    found = faults(engine())
    assert any(fault in line for line in found), found


def test_a_key_that_is_masked_only_where_it_is_shown_is_a_fault() -> None:
    def masked(launch: Launch, place: Place) -> Launch:
        return replace(launch, argv=(*launch.argv, place.api_key or ""), shown_argv=(*launch.argv, "…"))

    (fault,) = faults(relaunched(masked)())
    assert "API key is in argv" in fault


def test_nothing_of_the_watching_is_left_behind() -> None:
    faults(Plain())
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
    assert faults(Plain()) == ()


@pytest.fixture
def third_party(tmp_path: Path) -> Path:
    """A folder with an installed package that registers an engine."""
    (tmp_path / "fast_deploytui.py").write_text(PACKAGE, encoding="utf-8")
    info = tmp_path / "fast_deploytui-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-deploytui\nVersion: 1.0\n", encoding="utf-8")
    entry = "[deploytui.engines]\nfast = fast_deploytui:Fast\nbroken = fast_deploytui:Nobody\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    return tmp_path


def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of ours, run where a third party's package is installed."""
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=env, timeout=60)


def test_a_third_partys_adapter_is_found_listed_and_conforms(third_party: Path) -> None:
    listed = asked(third_party, "-c", "from deploytui.engine.registry import engine_names; print(engine_names()[-1])")
    assert listed.stdout == "fast\n"
    ran = asked(third_party, "-m", "deploytui.engine.conformance", "fast")
    assert (ran.returncode, ran.stdout) == (0, "fast: conforms\n"), ran.stderr


def test_an_entry_point_that_leads_nowhere_says_where_it_points(third_party: Path) -> None:
    ran = asked(third_party, "-m", "deploytui.engine.conformance", "broken")
    assert ran.returncode == 2
    assert "fast_deploytui:Nobody" in ran.stderr


def test_an_adapter_that_starts_something_when_it_is_imported_is_caught(third_party: Path) -> None:
    module = third_party / "fast_deploytui.py"
    start = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])\n"
    module.write_text(start + PACKAGE, encoding="utf-8")
    ran = asked(third_party, "-m", "deploytui.engine.conformance", "fast")
    assert ran.returncode == 1
    assert "fast: it reaches out of its process: subprocess.Popen" in ran.stdout


def test_a_wrong_name_and_a_wrong_call_end_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vlm"]) == 2
    assert "vllm" in capsys.readouterr().err
    assert main([]) == 2


def test_the_settings_of_a_candidate_are_those_that_are_tried() -> None:
    from deploytui.engine.conformance import TRIED

    assert set(TRIED) == set(Settings.__struct_fields__)
