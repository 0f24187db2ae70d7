"""What is said in a few words of the time before a launch and after the load."""

from deploytui.record.before import before_phrases, fit_phrase, preparation_phrase, recovery_phrase
from deploytui.record.facts import Fit, MemoryUse, Preparation, RecoveryCheck
from deploytui.units import GIB

FIT = Fit(verdict="fits", needed_bytes=277 << 20, free_bytes=21 * GIB, on="host")


def test_the_expected_memory_stands_beside_the_measured_of_the_same_place() -> None:
    memory = MemoryUse(peak_gpu_bytes=GIB, peak_host_bytes=278 << 20)
    assert fit_phrase(FIT) == "fits, 277 MiB expected of 21.0 GiB free on the host"
    assert fit_phrase(FIT, memory) == "fits, 277 MiB expected of 21.0 GiB free on the host, 278 MiB measured"
    assert "measured" not in fit_phrase(FIT, MemoryUse(peak_gpu_bytes=GIB))
    shared = Fit(verdict="may_not_fit", needed_bytes=9 * GIB, free_bytes=10 * GIB, devices=2)
    assert (
        fit_phrase(shared, memory)
        == "may not fit, 9.0 GiB expected of 10.0 GiB free on each of 2 GPUs, 1.0 GiB measured"
    )


def test_a_fit_that_nobody_knows_is_not_told() -> None:
    assert fit_phrase(None) == fit_phrase(Fit(verdict="unknown", why="The files do not tell.")) == ""


def test_a_preparation_tells_its_time_also_when_it_was_reused_and_none_that_nobody_knows() -> None:
    made = Preparation(name="onnx int4", key="k", seconds=27.42, output_bytes=86 << 20, reused=True)
    assert preparation_phrase(made) == "onnx int4, built in 27.4 s, 86 MiB, reused"
    assert preparation_phrase(Preparation(name="onnx int4", key="k")) == "onnx int4"


def test_recovery_says_what_was_borne_and_why_it_was_not() -> None:
    back = RecoveryCheck(name="client_abort", answers=True, seconds=0.31, kv_idle=False, note="2 streams cut")
    dead = RecoveryCheck(name="burst", answers=False, note="The engine died.")
    assert (
        recovery_phrase(back) == "after clients that hang up it serves again, 0.3 s later, its KV cache not given back"
    )
    assert recovery_phrase(dead) == "after a burst above its capacity it serves no more: The engine died."


def test_nothing_known_gives_no_line() -> None:
    assert before_phrases(None, MemoryUse(peak_host_bytes=GIB), (), ()) == ()
    (line,) = before_phrases(FIT, None, (), ())
    assert line.startswith("memory: fits")
