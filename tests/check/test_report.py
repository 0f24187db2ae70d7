import json
import sys
from pathlib import Path

import anyio
import msgspec

from deploytui.check.report import NO_BASELINE, CheckReport, asked_once, check_profile
from deploytui.check.text import check_text, plain, table
from deploytui.engine.protocol import Probe, Probed
from deploytui.profile.load_schema import Closed, Poisson
from deploytui.profile.schema import Candidate, Gates, Limits, Profile, Quality, Settings, Workload

WORKLOAD = Workload(prompt_tokens=64, output_tokens=16, requests=4, repeats=3, load=Closed(concurrency=2))
GATES = Gates(max_ttft_ms=Limits(p95=500), min_success_rate=0.9)
BASE = Candidate(name="base", engine="mock")
GONE = Candidate(name="gone", engine="llamacpp", model="gone.gguf")


def profile(*candidates: Candidate, workload: Workload = WORKLOAD, gates: Gates = GATES) -> Profile:
    return Profile(
        name="demo",
        baseline="base",
        workload=workload,
        gates=gates,
        quality=Quality(tasks=("builtin:basic",)),
        candidates=(BASE, *candidates),
    )


def report_on(asked: Profile, folder: Path) -> CheckReport:
    return anyio.run(check_profile, asked, folder, folder / "cache")


def test_every_case_is_listed_with_its_status_reason_and_remedy(tmp_path: Path) -> None:
    text = check_text(report_on(profile(GONE, Candidate(name="typo", engine="moc")), tmp_path))
    assert text.splitlines()[0] == "demo: 1 of 3 candidates ready"
    assert "  ready           base  mock" in text
    assert "  invalid_config  gone  There is no such path: model 'gone.gguf'" in text
    assert 'Did you mean "mock"?' in text


def test_a_percentile_without_enough_requests_is_told_with_the_number_needed(tmp_path: Path) -> None:
    few = report_on(profile(), tmp_path)
    assert "set workload.requests to at least 7" in few.samples[0]
    assert any(line.startswith("insufficient_samples:") for line in few.evidence)
    enough = report_on(profile(workload=msgspec.structs.replace(WORKLOAD, requests=7)), tmp_path)
    assert not any("insufficient" in line for line in enough.evidence)
    assert "21 samples, p95 needs 20" in enough.samples[0]


def test_a_profile_that_asks_nothing_is_told_so(tmp_path: Path) -> None:
    bare = Profile(workload=WORKLOAD, candidates=(BASE,))
    report = report_on(bare, tmp_path)
    codes = [line.partition(":")[0] for line in report.evidence]
    assert "nothing_asked" in codes
    assert "quality_not_measured" in codes
    assert report.audit == (NO_BASELINE,)


def test_a_confounded_candidate_proposes_only_steps_that_are_ready(tmp_path: Path) -> None:
    both = Candidate(
        name="both", engine="mock", model="other.gguf", quantization="Q8_0", settings=Settings(max_num_seqs=4)
    )
    report = report_on(profile(both), tmp_path)
    assert len(report.audit) == 1
    assert report.audit[0].startswith("both differs from base in")
    assert "To tell their effects apart: base with" in report.audit[0]
    refused = report_on(profile(msgspec.structs.replace(both, base_url="http://127.0.0.1:1")), tmp_path)
    assert "base_url = http" not in refused.audit[0].partition("apart:")[2]


def test_keys_without_effect_and_a_workload_that_can_not_run_are_said(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"prompt": "a"}\n{"prompt": \n', encoding="utf-8")
    told = msgspec.structs.replace(WORKLOAD, prompt_tokens=None, dataset="broken.jsonl")
    asked = msgspec.structs.replace(profile(workload=told), drift_check=True)
    report = report_on(asked, tmp_path)
    assert not report.ready
    text = check_text(report)
    assert "The workload can't be run:\n  The dataset 'broken.jsonl', line 2 is not JSON." in text
    assert "drift_check" in text.partition("not acted on yet")[2]


def test_a_sweep_and_an_open_loop_say_what_they_will_send(tmp_path: Path) -> None:
    swept = msgspec.structs.replace(WORKLOAD, load=Poisson(rate=(2.0, 0.5)), decide_at=0.5, requests=5)
    text = check_text(report_on(profile(workload=swept), tmp_path)).partition("What a run sends:\n")[2]
    assert "2 points: rate 2, 0.5; gates and decision at 0.5." in text
    assert "2 points × 3 repeats × 5 requests = 30 requests a candidate, after 16 requests to warm up." in text
    assert "a repeat sends for about 2 + 8 s, so 30 s a candidate" in text


def test_a_report_is_plain_data(tmp_path: Path) -> None:
    told = json.loads(msgspec.json.encode(report_on(profile(GONE), tmp_path)))
    assert [case["status"] for case in told["cases"]] == ["ready", "invalid_config"]


def test_the_same_question_is_asked_once() -> None:
    asked: list[Probe] = []

    async def ask(probe: Probe) -> Probed:
        asked.append(probe)
        return Probed(found=True, version=str(len(asked)))

    async def several() -> list[str | None]:
        once = asked_once(ask)
        same, other = Probe(argv=("a",)), Probe(argv=("a",), env={"A": "1"})
        return [(await once(probe)).version for probe in (same, other, same)]

    assert anyio.run(several) == ["1", "2", "1"]
    assert len(asked) == 2


def test_foreign_text_can_not_steer_the_terminal() -> None:
    assert plain("a\x1b[2Jb\nc") == "a\\x1b[2Jb\\nc"
    hostile = Candidate(name="x", engine="llamacpp", model="\x1b]0;owned\x07.gguf")
    text = check_text(report_on(profile(hostile), Path("/nonexistent")))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_columns_stand_under_each_other() -> None:
    assert table([("a", "bb"), ("ccc", "d")]) == ["a    bb", "ccc  d"]
    assert table([]) == []


def test_checking_starts_no_engine_and_writes_nothing(tmp_path: Path) -> None:
    report_on(profile(GONE), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert "xllamacpp" not in sys.modules
