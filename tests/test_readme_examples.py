"""What the README shows runs, and its profiles are profiles."""

import doctest
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploytui.check.cases import check_case
from deploytui.export.result import result
from deploytui.profile import schema
from deploytui.profile.files import read_profile
from deploytui.profile.inert import not_acted_on
from deploytui.profile.parse import parse_profile
from deploytui.quality.tasks import load_task
from deploytui.record.state import SessionState
from tests.readme import README, ROOT, blocks

PROFILES = [ROOT / "profiles" / f"{name}.toml" for name in ("cpu-threads", "attach", "vllm-vs-llamacpp")]


def test_the_python_session_runs_as_shown() -> None:
    [example] = blocks("pycon")
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    assert len(test.examples) >= 5
    assert doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test).failed == 0


def test_the_example_of_an_engine_is_one() -> None:
    from deploytui.engine.protocol import Engine, Place, Probed

    [example] = blocks("python")
    made: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), made)
    engine: Engine = made["MyEngine"]()
    candidate = schema.Candidate(name="a", engine="my-engine")
    assert engine.probe(candidate) is not None
    failure = engine.judge(candidate, Probed(found=False))
    assert failure is not None
    assert failure.kind == "not_installed"
    launch = engine.launch(candidate, Place(port=1234, model_path=None, concurrency=1, context_tokens=1))
    assert launch.base_url.endswith(":1234")


def test_the_toml_examples_are_profiles() -> None:
    profiles = [block for block in blocks("toml") if "[[candidates]]" in block]
    assert profiles
    for block in profiles:
        assert not_acted_on(parse_profile(block, "README.md")) == ()


def test_the_result_shown_has_the_keys_of_a_result() -> None:
    [example] = blocks("json")
    shown = json.loads(example)
    profile = read_profile(ROOT / "profiles" / "cpu-threads.toml")
    real = result(profile, SessionState())
    assert list(shown) == list(real)
    for part in ("session", "environment", "workload", "decision"):
        assert set(shown[part]) <= set(real[part]), part
    for candidate in shown["candidates"]:
        assert set(candidate) <= set(real["candidates"][0])
    first, whole = shown["candidates"][0], real["candidates"][0]
    for part in ("engine", "model", "artifact", "runtime", "cold_start", "metrics", "tool_error", "verdict"):
        assert set(first[part]) <= set(whole[part]), part


def test_the_test_command_is_found_as_the_checks_find_it() -> None:
    line = next(line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("test_command="))
    script = f'{line}\nprintf "%s" "$test_command"'
    found = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.endswith(".venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest")
    assert "\n" not in found.stdout


def test_every_link_leads_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    for target in re.findall(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)", README):
        assert target[1:] in anchors if target.startswith("#") else (ROOT / target).exists(), target


def test_every_example_profile_is_linked() -> None:
    assert all(f"](profiles/{path.name})" in README for path in PROFILES)


@pytest.mark.parametrize("path", PROFILES, ids=[path.stem for path in PROFILES])
def test_an_example_profile_asks_for_nothing_that_is_not_done(path: Path) -> None:
    profile = read_profile(path)
    assert not_acted_on(profile) == ()
    assert profile.baseline is not None
    for task in profile.quality.tasks:
        assert load_task(task, path.parent).items


@pytest.mark.anyio
@pytest.mark.parametrize("path", PROFILES, ids=[path.stem for path in PROFILES])
async def test_an_example_profile_is_configured_rightly(path: Path, tmp_path: Path) -> None:
    profile = read_profile(path)
    for candidate in profile.candidates:
        found = await check_case(profile, candidate, path.parent, tmp_path)
        assert found.status in ("ready", "unsupported"), found.failure
        if path.stem != "vllm-vs-llamacpp":
            assert found.status == "ready", found.failure
