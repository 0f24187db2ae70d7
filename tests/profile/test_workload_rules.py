"""What a workload can't ask for."""

import pytest

from deploytui.errors import ProfileError
from deploytui.profile.load_schema import Lognormal, Normal, Uniform
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Workload
from deploytui.profile.workload_rules import REFUSED_BODY, REFUSED_HEADERS

CANDIDATE = '[[candidates]]\nname = "a"\nengine = "mock"\n'
PROMPTS = "prompt_tokens = 16\n"


def workload(lines: str) -> Workload:
    """The workload of these lines."""
    return parse_profile(f"[workload]\n{lines}\n{CANDIDATE}").workload


def refusal(lines: str) -> ProfileError:
    """The error that a workload is refused with."""
    with pytest.raises(ProfileError) as caught:
        workload(lines)
    return caught.value


def test_lengths_may_be_drawn_from_a_distribution() -> None:
    found = workload(
        'prompt_tokens = { kind = "lognormal", mean = 512, std = 300, max = 4096 }\n'
        'output_tokens = { kind = "uniform", min = 16, max = 64 }'
    )
    assert found.prompt_tokens == Lognormal(mean=512, std=300, max=4096)
    assert found.output_tokens == Uniform(min=16, max=64)
    assert workload('prompt_tokens = { kind = "normal", mean = 9, std = 1 }').prompt_tokens == Normal(mean=9, std=1)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ('{ kind = "uniform", min = 9, max = 3 }', "`workload.prompt_tokens` has min 9 above max 3"),
        ('{ kind = "normal", mean = 5, std = 1, min = 9, max = 3 }', "has min 9 above max 3"),
        ('{ kind = "normal", mean = 5, std = 1, min = 9 }', "has mean 5 outside its limits, from 9 on"),
        ('{ kind = "lognormal", mean = 50, std = 1, max = 9 }', "has mean 50 outside its limits, from 1 to 9"),
        ('{ kind = "normal", mean = 5, std = 1e6, min = 5, max = 5 }', "has 0.0% of its lengths within min and max"),
        ('{ kind = "lognormal", mean = 5, std = 1e9 }', "of its lengths within min and max"),
        ('{ kind = "normal", mean = 5, std = 0 }', "`workload.prompt_tokens.std` must be"),
        ('{ kind = "normal", mean = 5 }', "`workload.prompt_tokens.std` is missing"),
        ('{ kind = "gauss", mean = 5 }', "`workload.prompt_tokens.kind` can't be"),
        ("{ mean = 5 }", "`workload.prompt_tokens.kind` is missing"),
        ("0", "`workload.prompt_tokens` must be"),
    ],
)
def test_lengths_that_nothing_can_have_are_refused(lengths: str, words: str) -> None:
    assert words in refusal(f"prompt_tokens = {lengths}").what


def test_impossible_output_lengths_are_refused_as_well() -> None:
    error = refusal(PROMPTS + 'output_tokens = { kind = "uniform", min = 9, max = 3 }')
    assert "`workload.output_tokens`" in error.what


def test_a_trace_may_bring_the_lengths() -> None:
    assert workload('load = { kind = "trace", path = "t.jsonl" }').prompt_tokens is None
    assert "has no prompts" in refusal('load = { kind = "burst" }').what
    error = refusal('load = { kind = "trace", path = "t.jsonl" }\nturns = 2')
    assert "all lengths come from the trace" in error.what


def test_turns_need_the_chat_endpoint() -> None:
    assert workload(PROMPTS + "turns = 3").turns == 3
    assert "`workload.turns` is 3" in refusal(PROMPTS + 'turns = 3\nendpoint = "completions"').what
    assert "`workload.turns`" in refusal(PROMPTS + "turns = 0").what


def test_a_shared_prefix_is_of_synthetic_prompts() -> None:
    found = workload(PROMPTS + "shared_prefix = { ratio = 0.5, groups = 4 }").shared_prefix
    assert (found and found.ratio, found and found.groups) == (0.5, 4)
    error = refusal('dataset = "d.jsonl"\nshared_prefix = { ratio = 0.5 }')
    assert "has both shared_prefix and dataset" in error.what
    for ratio in ("0.0", "1.0"):
        assert "`workload.shared_prefix.ratio`" in refusal(PROMPTS + f"shared_prefix = {{ ratio = {ratio} }}").what


@pytest.mark.parametrize("name", [*REFUSED_HEADERS, "Authorization", "X-Request-ID"])
def test_headers_that_the_tool_sets_itself_are_refused(name: str) -> None:
    assert f"`workload.headers.{name}` can't be set here" in refusal(PROMPTS + f'headers = {{ {name} = "x" }}').what


def test_a_key_is_named_by_its_variable() -> None:
    assert "api_key_env" in refusal(PROMPTS + 'headers = { Authorization = "Bearer x" }').fix


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ('{ "a b" = "x" }', "can't hold the name"),
        ('{ "a:b" = "x" }', "can't hold the name"),
        ('{ "" = "x" }', "can't hold the name"),
        ('{ "ä" = "x" }', "can't hold the name"),
        ('{ x-a = "1\\r\\nhost: evil" }', "`workload.headers.x-a` holds signs that no header can hold"),
        ('{ x-a = "\\u0000" }', "holds signs"),
        ('{ x-a = "日本" }', "holds signs"),
        ('{ x-a = "1", X-A = "2" }', "is there twice"),
        ("{ x-a = 1 }", "`workload.headers.x-a` must be"),
    ],
)
def test_headers_that_can_not_be_sent_are_refused(headers: str, words: str) -> None:
    assert words in refusal(PROMPTS + f"headers = {headers}").what


@pytest.mark.parametrize("key", REFUSED_BODY)
def test_fields_that_are_set_elsewhere_are_refused(key: str) -> None:
    assert f"`workload.body.{key}` can't be set here" in refusal(PROMPTS + f"body = {{ {key} = 1 }}").what


def test_other_headers_and_fields_are_taken_as_they_are() -> None:
    found = workload(PROMPTS + 'headers = { x-tenant = "a b" }\nbody = { chat_template_kwargs = { thinking = false } }')
    assert found.headers == {"x-tenant": "a b"}
    assert found.body == {"chat_template_kwargs": {"thinking": False}}


def test_limits_of_time_and_errors_are_taken() -> None:
    found = workload(PROMPTS + "max_seconds = 60\nmax_error_rate = 0.1")
    assert (found.max_seconds, found.max_error_rate) == (60, 0.1)
    assert "`workload.max_error_rate`" in refusal(PROMPTS + "max_error_rate = 1.5").what
