"""The lines above the grid, time left, the panels' texts."""

import pytest
from msgspec.structs import replace

from deploytui.record.events import Asked, NodeRollup, Note, SessionEnded
from deploytui.record.facts import DeviceSample
from deploytui.tui.details.config import config_lines
from deploytui.tui.details.decision import decision_title, panel_lines, whole_lines
from deploytui.tui.details.explain import explain_lines
from deploytui.tui.details.latency import latency_lines
from deploytui.tui.details.live import live_lines
from deploytui.tui.details.quality import quality_lines
from deploytui.tui.headline import Source, Standing, alert, header, node_lines, status_line
from deploytui.tui.pieces import Line, text_of, width_of
from deploytui.tui.progress import elapsed_s, eta_s, runner_ns, steps_share
from deploytui.tui.rows import view_of
from tests.tui.facts import WALL, at, started
from tests.tui.states import (
    cpu_events,
    finished_events,
    many_events,
    measuring_events,
    simulated_events,
    state_of,
)


def now(events: list[object], source: Source = "running") -> Standing:
    state = state_of(events)  # type: ignore[arg-type]
    return Standing(state, source, now_ns=state.at_ns)


def texts(lines: object) -> list[str]:
    return [text_of(parts) for parts in lines]  # type: ignore[attr-defined]


def test_the_header_says_what_where_and_how_long() -> None:
    text = text_of(header(now([*measuring_events()]), 118))
    assert text.startswith("deploytui  qwen-chat · 4 candidates · gpu-node-07")
    assert text.endswith("measuring 3/4 · 02:42 · eta 03:15")
    assert width_of(header(now([*measuring_events()]), 118)) == 118


def test_a_narrow_header_loses_whole_facts_not_letters() -> None:
    text = text_of(header(now([*measuring_events()]), 66))
    assert text.startswith("deploytui  qwen-chat  ")
    assert "…" not in text


def test_a_simulated_session_is_stamped_first() -> None:
    assert text_of(header(now([*simulated_events()]), 100)).startswith(" SIMULATED ")


@pytest.mark.parametrize(
    ("source", "word"), [("ended", "finished"), ("died", "✘ runner gone"), ("saved", "saved results")]
)
def test_the_header_says_when_nothing_runs(source: Source, word: str) -> None:
    assert word in text_of(header(now([*finished_events()], source), 118))


def test_an_interrupted_session_says_so() -> None:
    events = [*measuring_events(), SessionEnded(at_ns=at(170), exit_status=130)]
    assert "interrupted" in text_of(header(now([*events], "ended"), 118))


def test_a_paused_session_says_so_and_gives_no_time_left() -> None:
    text = text_of(header(now([*measuring_events(), Asked(at_ns=at(164), word="pause")]), 118))
    assert "paused" in text
    assert "eta" not in text


def test_each_gpu_has_a_place_and_an_idle_one_is_called_idle() -> None:
    wide, narrow = node_lines(now([*measuring_events()]), 118), node_lines(now([*measuring_events()]), 78)
    assert len(wide) == 1
    assert texts(narrow)[0].startswith("GPU 0 H100 80GB ▇▇▇▇ 93 %  mem ▆▆▆▆ 71.2/80.0 GiB  612/700 W  64 °C")
    assert texts(narrow)[1] == "GPU 1 H100 80GB idle  1.0/80.0 GiB"
    assert all(width_of(parts) <= 118 for parts in wide)


def test_eight_gpus_take_four_lines_and_no_more() -> None:
    devices = tuple(DeviceSample(uuid=f"GPU-{n}", index=n, name="NVIDIA H200") for n in range(8))
    event = NodeRollup(at_ns=at(165), interval_s=1.0, devices=devices)
    assert len(node_lines(now([*measuring_events(), event]), 118)) == 4
    assert texts(node_lines(now([*measuring_events(), event]), 78))[-1] == "… 5 more lines"


def test_a_lost_gpu_is_told_in_words() -> None:
    lost = DeviceSample(uuid="GPU-aaa", index=0, name="NVIDIA H200", lost="GPU is lost\x1b")
    event = NodeRollup(at_ns=at(165), interval_s=1.0, devices=(lost,))
    assert texts(node_lines(now([*measuring_events(), event]), 78)) == ["GPU 0 H200 ✘ lost: GPU is lost␛"]


def test_a_host_without_gpu_is_called_so_with_its_load() -> None:
    text = texts(node_lines(now([*cpu_events()]), 118))[0]
    assert text == "CPU host · AMD EPYC 7763 · 2 cores · mem 3.1/23.4 GiB · cpu 97 %"


def test_after_the_end_the_node_is_what_it_is_not_what_it_did() -> None:
    text = texts(node_lines(now([*finished_events()], "ended"), 118))[0]
    assert text == "2× H100 80GB · AMD EPYC 7763 · 2 cores · mem 23.4 GiB"


def test_a_dead_runner_is_told_with_what_to_do() -> None:
    text = text_of(alert(now([*measuring_events()], "died")))
    assert "runner is gone" in text
    assert "s save" in text
    assert "r again" in text


def test_unreadable_lines_and_warnings_are_told() -> None:
    assert "3 lines" in text_of(alert(replace(now([*measuring_events()]), unreadable=3)))
    warned = [*measuring_events(), Note(at_ns=at(164), level="warning", text="GPU 0 throttles [heat]")]
    assert text_of(alert(now([*warned]))) == "! GPU 0 throttles [heat]"
    assert alert(now([*measuring_events()])) == ()


def test_the_smallest_window_still_says_it_all() -> None:
    text = text_of(status_line(now([*measuring_events()])))
    assert text == "measuring 3/4 · 02:42 · eta 03:15 · vllm-fp8 · ✔ accept vllm-bf16"


def test_time_passes_by_the_runners_anchor_not_by_this_hosts_uptime() -> None:
    state = state_of([started()])
    assert elapsed_s(state, runner_ns(state, WALL + 90)) == pytest.approx(90)
    assert elapsed_s(state, runner_ns(state, WALL - 5)) == 0


def test_time_left_rests_on_what_was_measured() -> None:
    assert eta_s(state_of([started()]), at(10)) is None
    state = state_of(many_events(10))
    assert eta_s(state, state.at_ns) == pytest.approx(7 * 100)


def test_steps_done_count_finished_repeats_and_the_running_one() -> None:
    state = state_of(measuring_events())
    assert steps_share(state, state.candidates["vllm-bf16"]) == pytest.approx(1.0)
    assert steps_share(state, state.candidates["vllm-fp8"]) == pytest.approx(112 / 600)


def test_the_decision_is_so_far_until_it_is_final() -> None:
    running, ended = state_of(measuring_events()), state_of(finished_events())
    assert decision_title(running, over=False) == "Decision so far"
    assert decision_title(ended, over=True) == "Decision"
    assert text_of(panel_lines(running, over=False)[0]) == "✔ ACCEPT vllm-bf16 on 1× H100-80G, so far"


def test_every_reason_comes_with_what_to_do() -> None:
    shown = texts(panel_lines(state_of(finished_events()), over=True))
    assert "  ✔ TTFT p95 182 ≤ 500 ms (n=600 requests, 173 to 191)" in shown
    assert "    → Measure 900 requests a repeat: the limit is inside the interval." in shown
    assert "    → Lower gpu_layers (33) or max_model_len (8192)." in shown
    assert "not covered  vllm-fp8" in shown
    assert "fallback  vllm-bf16" in shown
    assert "! A foreign process used GPU 1 for 4 s." in texts(whole_lines(state_of(finished_events()), over=True))


def test_the_decision_of_a_simulated_session_is_stamped() -> None:
    text = text_of(panel_lines(state_of(simulated_events()), over=False)[0])
    assert text == "SIMULATED ✔ ACCEPT vllm-bf16 for this CPU host only, so far"


def test_the_live_tab_shows_rates_memory_and_phases() -> None:
    standing = now([*measuring_events()])
    lines = live_lines(standing.state.candidates["vllm-fp8"], view_of(standing), 60, 8)
    shown = "\n".join(texts(lines))
    assert "112 of 200 done  in flight 16  waiting 3  KV 71 %" in shown
    assert "peak 43.6 GiB  GPU, worst device, over pre-launch" in shown
    assert "loading 00:20" in shown
    assert all(width_of(parts) <= 60 for parts in lines if not text_of(parts).startswith("phases"))


def test_a_failed_candidate_shows_the_engines_own_words() -> None:
    standing = now([*finished_events()], "ended")
    shown = texts(live_lines(standing.state.candidates["gguf-q4"], view_of(standing), 60, 8))
    assert any("cudaMalloc failed" in text for text in shown)
    assert any("→ Lower gpu_layers" in text for text in shown)


def test_a_taller_window_gets_plots() -> None:
    standing = now([*measuring_events()])
    row = standing.state.candidates["vllm-fp8"]
    assert len(live_lines(row, view_of(standing), 60, 25)) == len(live_lines(row, view_of(standing), 60, 8)) + 6


def test_the_latency_tab_has_n_and_percentiles_and_the_marked_beside() -> None:
    rows = state_of(finished_events()).candidates
    shown = texts(latency_lines(rows["vllm-bf16"], [rows["vllm-fp8"]]))
    assert shown[1].split() == ["ms", "n", "mean", "p50", "p90", "p95", "p99", "max"]
    assert shown[2].split() == ["TTFT", "600", "150", "144", "165", "182", "225", "285"]
    assert any(text.startswith("vllm-fp8  ") for text in shown)
    assert "timeout 1" in "\n".join(shown)


def test_too_few_samples_are_dashes_with_a_word_why() -> None:
    rows = state_of(cpu_events()).candidates
    shown = texts(latency_lines(rows["one-thread"]))
    assert shown[2].split()[5:7] == ["–", "–"]
    assert "– = too few samples: p99 needs 100, p95 needs 20" in shown


def test_the_config_tab_shows_what_differs_and_the_command() -> None:
    shown = texts(config_lines(state_of(measuring_events()).candidates["vllm-fp8"], "vllm-bf16"))
    assert shown[0] == "vllm-fp8  differs in artifact, runtime"
    assert any("dtype" in text and "bfloat16 → fp8" in text for text in shown)
    assert any(text.endswith("--max-model-len 8192") for text in shown)


def test_the_quality_tab_shows_score_n_and_interval() -> None:
    shown = texts(quality_lines(state_of(finished_events()).candidates["vllm-bf16"]))
    assert shown[2].split() == ["builtin:basic", "120", "0.86", "0.80", "…", "0.91", "1.00", "1.00"]


def test_explain_gives_formula_n_and_what_was_left_out() -> None:
    standing = now([*finished_events()], "ended")
    lines: tuple[Line, ...] = explain_lines("ttft", standing.state.candidates["vllm-bf16"], view_of(standing))
    shown = "\n".join(texts(lines))
    assert "TTFT: sent to the first chunk" in shown
    assert "n          600" in shown
    assert "1 failed of 601 requests (timeout 1)" in shown


def test_explain_says_why_a_percentile_is_missing() -> None:
    standing = now([*cpu_events()])
    lines = explain_lines("ttft", standing.state.candidates["one-thread"], view_of(standing))
    assert "p95        –  insufficient_samples: needs 20" in texts(lines)
