"""What someone reads who got their profile wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.errors import ProfileError
from deploytui.profile.load_schema import Closed, Ramp
from deploytui.profile.parse import parse_profile, peek
from deploytui.profile.schema import SCHEMA

WORKLOAD = "[workload]\nprompt_tokens = 16\n"
CANDIDATE = '[[candidates]]\nname = "a"\nengine = "mock"\n'
GOOD = WORKLOAD + CANDIDATE

EXAMPLE = """
schema = 1
name = "qwen-chat"
baseline = "vllm-bf16"
form = "online"
objective = "output_tok_s"
timeouts = { download = 3600, prepare = 7200, load = 1200, request = 120, session = 28800 }
[workload]
prompt_tokens = 1024
output_tokens = 128
requests = 200
load = { kind = "closed", concurrency = 16 }
warmup_requests = 16
repeats = 3
seed = 0
endpoint = "chat"
sampling = { temperature = 0.0, ignore_eos = true }
[quality]
tasks = ["builtin:basic", "my_checks.jsonl"]
max_tokens = 1024
[gates]
min_quality = 0.80
max_quality_drop = 0.02
min_success_rate = 0.99
max_ttft_ms = { p95 = 500 }
max_tpot_ms = { p95 = 50 }
max_peak_gpu_gib = 78.0
confirm = { max_ttft_ms = "interval" }
[engine_gate]
max_kv_cache_usage = 0.90
max_waiting_requests = 50
action = "mark"
[[candidates]]
name = "vllm-bf16"
engine = "vllm"
engine_version = "==0.33.0"
model = "Qwen/Qwen2.5-7B-Instruct"
revision = "main"
format = "safetensors"
dtype = "bfloat16"
device = "cuda"
devices = 1
python = "/opt/venvs/vllm/bin/python"
settings = { max_model_len = 8192, memory_share = 0.9 }
args = ["--enable-chunked-prefill"]
effort_days = 0.5
[[candidates]]
name = "prod"
engine = "openai"
base_url = "http://127.0.0.1:8000"
declared = { hardware = "1x H100-80G", format = "safetensors", engine_version = "unknown" }
"""


def refusal(text: str, where: str = "qwen.toml") -> ProfileError:
    """The error that a text is refused with."""
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, where)
    assert caught.value.what.startswith(where)
    return caught.value


def test_every_documented_key_is_read() -> None:
    profile = parse_profile(EXAMPLE)
    assert profile.workload.load == Closed(concurrency=16)
    assert profile.gates.max_ttft_ms is not None
    assert profile.gates.max_ttft_ms.p95 == 500
    assert profile.candidates[0].settings.max_model_len == 8192
    assert not profile.saved


def test_everything_but_workload_and_candidates_has_a_default() -> None:
    profile = parse_profile(GOOD)
    assert (profile.schema, profile.baseline, profile.workload.repeats) == (SCHEMA, None, 3)


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault() -> None:
    assert parse_profile("\ufeff" + GOOD.replace("\n", "\r\n")) == parse_profile(GOOD)


def test_an_unknown_key_names_file_place_and_the_nearest_key() -> None:
    error = refusal(GOOD + "settings = { max_model_lenn = 4096 }\n")
    assert error.what == "qwen.toml: `candidates[a].settings.max_model_lenn` is not a known key."
    assert error.fix == 'Did you mean "max_model_len"?'


def test_a_candidate_without_a_name_is_named_by_its_place() -> None:
    error = refusal(GOOD + '[[candidates]]\nengine = "mock"\n')
    assert error.what == "qwen.toml: `candidates[1].name` is missing."


def test_all_unknown_keys_are_told_at_once_and_before_wrong_types() -> None:
    error = refusal('objectiv = "x"\n[workload]\nprompt_tokens = "16"\noutput_token = 3\n' + CANDIDATE + "modell = 1\n")
    assert "`objectiv` is not a known key" in error.what
    others = error.why.splitlines()
    assert others[0].startswith("Also: `workload.output_token` is not a known key.")
    assert others[1].startswith("Also: `candidates[a].modell` is not a known key.")
    assert others[2] == (
        'Also: `workload.prompt_tokens` must be an integer or a table, got the string "16". '
        "Write the number without quotes."
    )


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("threads = 4", '"threads" belongs under "settings".'),
        ("gpu_memory_utilization = 0.9", 'Did you mean "memory_share" under "settings"?'),
        ("settings = { gpu_memory_utilization = 0.9 }", 'Did you mean "memory_share"?'),
        ("settings = { tensor_parallel_size = 2 }", 'Did you mean "tensor_parallel"?'),
        ('objective = "goodput"', '"objective" belongs above the first [table] of the file.'),
    ],
)
def test_a_key_in_the_wrong_table_or_in_an_engines_own_words_is_led_home(line: str, fix: str) -> None:
    assert refusal(GOOD + line).fix == fix


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (WORKLOAD + "requests = 0\n" + CANDIDATE, "`workload.requests` must be an integer >= 1, got 0", ""),
        (WORKLOAD + "repeats = 2.5\n" + CANDIDATE, "`workload.repeats` must be an integer, got 2.5", ""),
        (WORKLOAD + "repeats = true\n" + CANDIDATE, "`workload.repeats` must be an integer, got true", ""),
        (GOOD + "[gates]\nmin_quality = 80\n", "`gates.min_quality` must be a number <= 1.0, got 80", ""),
        (GOOD + "[gates]\nmax_ttft_ms = 500\n", "`gates.max_ttft_ms` must be a table, got 500", "{ p95 = 500 }"),
        (GOOD + 'args = "--x"\n', '`candidates[a].args` must be a list, got the string "--x"', "brackets"),
        (GOOD + "args = ['--x', 1]\n", "`candidates[a].args[1]` must be a string, got 1", ""),
        (GOOD + "devices = []\n", "", ""),
        (GOOD + "env = { HF_TOKEN = 5 }\n", "`candidates[a].env.HF_TOKEN` must be a string.", ""),
        (GOOD + 'device = "gpu"\n', '`candidates[a].device` can\'t be the string "gpu"', "cuda, cpu"),
        ('form = "onlin"\n' + GOOD, '`form` can\'t be the string "onlin"', "online, "),
        (WORKLOAD + "load = 16\n" + CANDIDATE, "`workload.load` must be a table, got 16", "concurrency = 16"),
        (WORKLOAD + "load = { concurrency = 2 }\n" + CANDIDATE, "`workload.load.kind` is missing", "closed"),
        (WORKLOAD + "load = { kind = 'close' }\n" + CANDIDATE, "`workload.load.kind` can't be", '"closed"'),
        (WORKLOAD + "load = { kind = 'closed' }\n" + CANDIDATE, "`workload.load.concurrency` is missing", ""),
        (
            WORKLOAD + "load = { kind = 'closed', rate = 1, concurrency = 1 }\n" + CANDIDATE,
            "load.rate` is not a known",
            "",
        ),
        (WORKLOAD + "seed = 1" + "0" * 400 + "\n" + CANDIDATE, "", ""),
        (GOOD + "effort_days = 1" + "0" * 400 + "\n", "`candidates[a].effort_days` does not fit", ""),
        ("workload = 3\n" + CANDIDATE, "`workload` must be a table, got 3", ""),
        (CANDIDATE, "`workload` is missing", "[workload]"),
        (WORKLOAD, "`candidates` is missing", "[[candidates]]"),
        ("candidates = []\n" + WORKLOAD, "`candidates` is empty", ""),
        ("candidates = [1]\n" + WORKLOAD, "`candidates[0]` must be a table, got 1", ""),
        ("", "`workload` is missing", ""),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_what_came(text: str, what: str, fix: str) -> None:
    if not what:
        assert parse_profile(text)
        return
    error = refusal(text)
    assert what in error.what
    assert fix in error.fix


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_nan_and_infinity_are_refused_wherever_they_stand(word: str) -> None:
    assert f"`gates.min_goodput` can't be {word}" in refusal(GOOD + f"[gates]\nmin_goodput = {word}\n").text()
    assert "`results[0].x`" in refusal(GOOD + f"[[results]]\nx = {word}\n").what


def test_a_syntax_error_names_line_and_column() -> None:
    error = refusal('name = "x"\nbaseline = \n')
    assert error.what.startswith("qwen.toml is not valid TOML: line 2, column 12: ")


@pytest.mark.parametrize(
    ("text", "line"),
    [("seed = 1\nseed = 2\n", 2), ("[workload]\n[gates]\n[workload]\n", 3), ("a = {x = 1, x = 2}\n", 1)],
)
def test_a_duplicate_key_or_table_is_named_with_its_line(text: str, line: int) -> None:
    error = refusal(text)
    assert f"has a key or table twice: line {line}, " in error.what


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = 1" + "0" * 5000, "a = 2026-13-45", "\x00", "a = '\x01'"])
def test_text_that_is_far_from_toml_is_refused_in_words(text: str) -> None:
    assert refusal(text).fix


@given(st.text(max_size=60))
def test_no_text_at_all_ends_in_anything_but_an_answer(text: str) -> None:
    with pytest.raises(ProfileError):
        parse_profile(text)


@pytest.mark.parametrize("schema", ["0", "-1", "true", '"1"', "1.0"])
def test_a_schema_that_is_no_schema_is_refused(schema: str) -> None:
    assert "`schema` can't be" in refusal(f"schema = {schema}\n" + GOOD).what


def test_a_newer_schema_is_refused_and_tells_what_is_inside() -> None:
    text = f'schema = {SCHEMA + 1}\nname = "later"\nnew_thing = 1\n[[results]]\ncandidate = "a"\n[decision]\nx = 1\n'
    assert "this version knows" in refusal(text).what
    seen = peek(text)
    assert (seen.schema, seen.name, seen.newer, seen.saved) == (SCHEMA + 1, "later", True, True)
    assert seen.results == ({"candidate": "a"},)
    assert seen.decision == {"x": 1}


def test_a_plain_profile_shows_no_results() -> None:
    seen = peek(GOOD)
    assert (seen.newer, seen.saved, seen.decision) == (False, False, None)


def test_a_saved_session_is_known_by_its_results() -> None:
    assert parse_profile(GOOD + '[[results]]\ncandidate = "a"\n').saved


def test_a_ramp_uses_the_word_from() -> None:
    profile = parse_profile(WORKLOAD + 'load = { kind = "ramp", from = 1, to = 9, seconds = 60 }\n' + CANDIDATE)
    assert profile.workload.load == Ramp(from_=1, to=9, seconds=60)


def test_an_empty_list_is_called_empty() -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile("candidates = []\n[workload]\nprompt_tokens = 8\n")
    assert "candidates" in caught.value.what
    assert "is empty" in caught.value.what
