"""What is asked for but not done yet is said."""

import pytest

from deploytui.profile.inert import not_acted_on
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Profile

PLAIN = '[workload]\nprompt_tokens = 16\n{load}\n[[candidates]]\nname = "a"\nengine = "mock"\n'


def profile(*, top: str = "", load: str = "", candidate: str = "", below: str = "") -> Profile:
    """A small profile with lines added."""
    return parse_profile(f"{top}\n{PLAIN.format(load=load)}{candidate}\n{below}\n")


def test_a_plain_profile_is_acted_on_in_full() -> None:
    assert not_acted_on(profile()) == ()
    assert not_acted_on(profile(load="load = { kind = 'closed', concurrency = 4, think_time_s = 1 }")) == ()


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (profile(top='form = "edge"'), "form:"),
        (profile(top='order = "interleaved"'), "order:"),
        (profile(top="drift_check = true"), "drift_check:"),
        (profile(below="[engine_gate]"), "engine_gate:"),
        (profile(candidate='form = "edge"'), "candidates[a].form:"),
        (profile(candidate="effort_days = 1"), "candidates[a].effort_days:"),
    ],
)
def test_a_key_that_changes_nothing_yet_is_named(asked: Profile, key: str) -> None:
    assert [line for line in not_acted_on(asked) if line.startswith(key)] == list(not_acted_on(asked))
    assert len(not_acted_on(asked)) == 1
