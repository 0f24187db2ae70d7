"""What a profile asks for, before it is run."""

import pytest

from deploytui.profile.load_schema import Closed, Lognormal, TraceReplay, Uniform
from deploytui.profile.schema import Candidate, Profile, SharedPrefix, Workload
from deploytui.tui.details.plan import plan_lines
from deploytui.tui.pieces import text_of


def told(workload: Workload) -> str:
    """The plan of a workload as text."""
    profile = Profile(workload=workload, candidates=(Candidate(name="a", engine="mock"),))
    return "\n".join(map(text_of, plan_lines(profile)))


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Workload(prompt_tokens=1024), "1 024 prompt tokens → 128 output tokens"),
        (
            Workload(prompt_tokens=Lognormal(mean=512, std=90, max=900), output_tokens=Uniform(min=4, max=9)),
            "lognormal mean 512 std 90 max 900 prompt tokens → uniform min 4 max 9 output tokens",
        ),
        (Workload(dataset="d\x1b.jsonl"), "d␛.jsonl → 128 output tokens"),
        (Workload(load=TraceReplay(path="t")), "prompts as long as the trace says → answers as long as it says"),
        (
            Workload(prompt_tokens=64, shared_prefix=SharedPrefix(ratio=0.25, groups=4), turns=3),
            "64 prompt tokens, 25% of them shared in 4 groups, 3 turns",
        ),
        (Workload(prompt_tokens=8, load=Closed(concurrency=(1, 4)), decide_at=4), "concurrency"),
        (
            Workload(prompt_tokens=8, headers={"x-a": "secret"}, body={"k": 1}, max_seconds=9.0, max_error_rate=0.5),
            "header x-a, k 1, at most 9 s a repeat, at most 50% errors",
        ),
    ],
)
def test_a_workload_says_what_is_sent(workload: Workload, words: str) -> None:
    assert words in told(workload).replace("\u2009", " ")


def test_a_headers_value_is_not_shown() -> None:
    assert "secret" not in told(Workload(prompt_tokens=8, headers={"x-a": "secret"}))
