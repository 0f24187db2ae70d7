import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.engine.metric_values import reading, series
from deploytui.engine.protocol import MetricNames
from deploytui.engine.sglang import Sglang
from deploytui.engine.tensorrt_llm import TensorRtLlm
from deploytui.engine.tgi import Tgi
from deploytui.engine.vllm import Vllm
from tests.engine.captured import body

VLLM, SGLANG, TRT, TGI = Vllm.metrics, Sglang.metrics, TensorRtLlm.metrics, Tgi.metrics
NEW, OLD = 'vllm:kv_cache_usage_perc{engine="0"} 0.42\n', 'vllm:gpu_cache_usage_perc{engine="0"} 0.42\n'


@pytest.mark.parametrize(
    ("text", "value", "name"),
    [
        (NEW, 0.42, "vllm:kv_cache_usage_perc"),
        (OLD, 0.42, "vllm:gpu_cache_usage_perc"),
        (OLD + NEW, 0.42, "vllm:kv_cache_usage_perc"),
    ],
)
def test_the_cache_is_found_under_its_new_and_its_old_name(text: str, value: float, name: str) -> None:
    found = reading(VLLM, "kv_usage", text)
    assert found is not None
    assert (found.value, found.name) == (value, name)


def test_a_figure_nobody_exports_is_unknown_and_not_zero() -> None:
    assert reading(VLLM, "kv_usage", "vllm:num_requests_running 3\n") is None
    assert reading(TGI, "kv_usage", "tgi_queue_size 3\n") is None
    assert reading(VLLM, "kv_usage", "") is None
    assert reading(VLLM, "kv_usage", None) is None


@pytest.mark.parametrize(
    "figure", ["running", "waiting", "kv_usage", "prefix_queries", "prefix_hits", "preemptions", "output_tokens"]
)
def test_vllms_names_are_those_it_really_has(figure: str) -> None:
    assert reading(VLLM, figure, body("vllm-0.32.0-cpu", "metrics")) is not None


@pytest.mark.parametrize("figure", ["running", "waiting", "kv_usage", "prompt_tokens", "output_tokens"])
def test_sglangs_names_are_those_it_really_has(figure: str) -> None:
    assert reading(SGLANG, figure, body("sglang-0.5.23-cpu", "metrics")) is not None


def test_the_recorded_counters_are_read_rightly() -> None:
    tokens = reading(VLLM, "output_tokens", body("vllm-0.32.0-cpu", "metrics"))
    assert tokens is not None
    assert tokens.value == 112
    both = reading(SGLANG, "output_tokens", body("sglang-0.5.23-cpu", "metrics"))
    assert both is not None
    assert both.value == 16 + 48


@pytest.mark.parametrize("count", [1, 2, 16])
def test_engine_processes_are_summed_and_the_fullest_cache_counts(count: int) -> None:
    lines = [
        f'vllm:num_requests_running{{engine="{place}"}} {place + 1}\nvllm:kv_cache_usage_perc{{engine="{place}"}} '
        f"{(place + 1) / 20}\n"
        for place in range(count)
    ]
    running, fill = (reading(VLLM, figure, "".join(lines)) for figure in ("running", "kv_usage"))
    assert running is not None
    assert fill is not None
    assert running.value == sum(range(1, count + 1))
    assert fill.value == count / 20


@pytest.mark.parametrize("line", ['sglang:num_queue_reqs{tp_rank="0"} 3', 'sglang_num_queue_reqs{tp_rank="0"} 3'])
def test_a_colon_may_be_an_underscore(line: str) -> None:
    found = reading(SGLANG, "waiting", line + "\n")
    assert found is not None
    assert found.value == 3


def test_nan_is_no_reading() -> None:
    assert reading(SGLANG, "kv_usage", "sglang:token_usage NaN\n") is None
    mixed = reading(SGLANG, "kv_usage", 'sglang:token_usage{tp_rank="0"} NaN\nsglang:token_usage{tp_rank="1"} 0.5\n')
    assert mixed is not None
    assert mixed.value == 0.5


def test_iteration_records_are_json_and_the_newest_counts() -> None:
    records = [
        {"iter": 59, "numActiveRequests": 9},
        {
            "iter": 60,
            "numActiveRequests": 2,
            "kvCacheStats": {"usedNumBlocks": 3, "maxNumBlocks": 10},
            "specDecodingStats": None,
        },
    ]
    fill, running = reading(TRT, "kv_usage", records), reading(TRT, "running", records)
    assert fill is not None
    assert running is not None
    assert (fill.value, running.value) == (0.3, 2)
    assert reading(TRT, "waiting", records) is None
    assert reading(TRT, "kv_usage", []) is None
    assert reading(TRT, "kv_usage", [{"kvCacheStats": {"usedNumBlocks": 0, "maxNumBlocks": 0}}]) is None


def test_labels_with_braces_and_quotes_in_them_are_read() -> None:
    line = "tgi_batch_inference_duration_sum{method=\"{'method': 'prefill'}\"} 1.2\ntgi_queue_size 4\n"
    assert series(line, "tgi_batch_inference_duration_sum") == (({"method": "{'method': 'prefill'}"}, 1.2),)
    waiting = reading(TGI, "waiting", line)
    assert waiting is not None
    assert waiting.value == 4


def test_tgi_counts_tokens_by_the_sums_of_its_histograms() -> None:
    text = "tgi_request_generated_tokens_sum 900\ntgi_request_generated_tokens_count 9\n"
    tokens = reading(TGI, "output_tokens", text)
    assert tokens is not None
    assert tokens.value == 900


@given(st.text() | st.lists(st.none() | st.integers() | st.dictionaries(st.text(), st.integers())))
def test_junk_has_no_readings(answer: object) -> None:
    names = MetricNames(running="a:b", kv_usage="x.y/z")
    assert reading(names, "running", answer) is None or isinstance(answer, str)
    reading(names, "kv_usage", answer)


@given(st.sampled_from(["vllm:num_requests_running", "vllm:x"]), st.text(max_size=40))
def test_a_broken_line_is_passed_over(name: str, rest: str) -> None:
    assert isinstance(series(f"{name}{rest}\nvllm:x{{a=", "vllm:num_requests_running"), tuple)
