"""What a workload shares by itself may come from a prefix cache; what it does not share may not."""

from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.decide.session import decide
from deploytui.profile.schema import SharedPrefix
from deploytui.record.measured import ToolError
from tests.decide.build import candidate, codes, one, profile, prompts, repeat, session


def judged(cached_tokens: int, prompt_tokens: int, **workload: Any) -> list[str]:
    asked = profile("a")
    asked = replace(asked, workload=replace(asked.workload, prompt_tokens=prompt_tokens, **workload))
    rows = [repeat(cached_tokens=cached_tokens, prompt_tokens=prompt_tokens) for _ in range(3)]
    state = session(candidate("a", repeats=rows), before=(prompts(target_tokens=prompt_tokens),))
    return codes(decide(asked, state).verdicts[0])


@pytest.mark.parametrize(("cached_tokens", "found"), [(526, []), (527, ["cache_contaminated"])])
def test_a_shared_prefix_may_be_cached_up_to_its_ratio(cached_tokens: int, found: list[str]) -> None:
    """Half of 1000 tokens, 10 of the template and a block of 16."""
    assert judged(cached_tokens, 1000, shared_prefix=SharedPrefix(ratio=0.5)) == found


def test_prompts_that_share_nothing_may_not() -> None:
    assert judged(526, 1000) == ["cache_contaminated"]


@pytest.mark.parametrize(("cached_tokens", "found"), [(126, []), (127, ["cache_contaminated"])])
def test_the_history_of_a_conversation_may_be_cached(cached_tokens: int, found: list[str]) -> None:
    """Half of the requests are first questions of 100 tokens, half have 200 more before them: 100 a request."""
    asked = profile("a")
    asked = replace(asked, workload=replace(asked.workload, prompt_tokens=100, turns=2))
    rows = [
        [replace(record, prompt_tokens=100 + 200 * (record.id % 2)) for record in repeat(cached_tokens=cached_tokens)]
        for _ in range(3)
    ]
    state = session(candidate("a", repeats=rows), before=(prompts(target_tokens=200),))
    assert codes(decide(asked, state).verdicts[0]) == found


def test_a_client_bound_candidate_hears_why() -> None:
    found = one(tool=ToolError(client_bound=True, client_bound_why="lag p99 12 ms is 60% of it: give load_workers = 2"))
    assert [reason.text for reason in found.reasons] == ["lag p99 12 ms is 60% of it: give load_workers = 2"]
    assert one(tool=ToolError(client_bound=True)).reasons[0].text
