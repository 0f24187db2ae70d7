"""The effect table: what each reason code does to a candidate. One row a code, each code has exactly one effect."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from deploytui.record.verdict import Reason
from deploytui.record.words import DecisionWord

Effect = Literal["not_comparable", "no_result", "unfit", "gate", "regression", "note"]
"""In order of precedence: the first that occurs decides."""


class Row(Struct, frozen=True):
    """What a code does, what it means, and what to change next when nothing more specific is known."""

    code: str
    effect: Effect
    meaning: str
    remedy: str


ROWS: tuple[Row, ...] = (
    Row(
        "workload_mismatch",
        "not_comparable",
        "It did other work than the workload asks for.",
        "Make it do the same work: prompt length, output length, sampling, endpoint.",
    ),
    Row(
        "definition_mismatch",
        "not_comparable",
        "Its numbers follow other definitions.",
        "Measure again with one version of deploytui.",
    ),
    Row(
        "environment_mismatch",
        "not_comparable",
        "Its numbers hold for other hardware.",
        "Measure all candidates on one node and device.",
    ),
    Row(
        "invalid_config",
        "no_result",
        "The candidate can't be run as it is written.",
        "Correct the candidate in the profile.",
    ),
    Row(
        "unsupported",
        "no_result",
        "The engine here can't serve this model this way.",
        "Install what is missing, or choose another engine, format or device.",
    ),
    Row(
        "load_failed",
        "no_result",
        "The engine did not come up.",
        "Read the engine's last words in its log and correct what they name.",
    ),
    Row(
        "oom",
        "no_result",
        "It ran out of memory.",
        "Lower max_model_len, max_num_seqs, gpu_layers or the concurrency, or choose a smaller artifact.",
    ),
    Row(
        "run_failed",
        "no_result",
        "It loaded, then failed under load.",
        "Read the engine's last words in its log; try a lower concurrency.",
    ),
    Row("checksum_mismatch", "no_result", "The model's bytes are not the expected ones.", "Fetch the model again."),
    Row(
        "missing_measurements",
        "unfit",
        "A figure the decision rests on was not measured.",
        "Measure it, or take the gate that needs it out of the profile.",
    ),
    Row(
        "insufficient_samples",
        "unfit",
        "Too few samples for a gated percentile.",
        "Raise workload.requests or workload.repeats, or gate a lower percentile.",
    ),
    Row(
        "noisy",
        "unfit",
        "The limit lies inside the figure's interval.",
        "Measure more requests or repeats, or decide on the observed value with gates.confirm.",
    ),
    Row(
        "quality_not_measured",
        "unfit",
        "No quality score, or too many questions without an answer.",
        "Add tasks to [quality], or raise quality.max_tokens so that answers are complete.",
    ),
    Row(
        "smoke",
        "unfit",
        "Too little was measured for more than a smoke test.",
        "Use at least 3 repeats, a warm-up of at least the concurrency, and the requests the gated percentiles need.",
    ),
    Row(
        "client_bound",
        "unfit",
        "The load generator, not the engine, was the limit.",
        "Free processor time on this node, or lower the concurrency.",
    ),
    Row(
        "stream_not_incremental",
        "unfit",
        "Tokens arrived in clumps, so TTFT and gaps tell nothing.",
        "Attach to the engine's own port, without a buffering proxy or compression between.",
    ),
    Row(
        "cache_contaminated",
        "unfit",
        "Prompts were answered from a prefix cache nobody asked for.",
        "Turn the prefix cache off, or set settings.prefix_cache = true to ask for it.",
    ),
    Row(
        "throttled",
        "unfit",
        "The GPU lowered its clocks while it was measured.",
        "Mend cooling or the power limit and measure again.",
    ),
    Row(
        "foreign_gpu_process",
        "unfit",
        "Another process used the GPU meanwhile.",
        "Measure again on a GPU that nobody else uses.",
    ),
    Row(
        "gate_open",
        "unfit",
        "The engine's own state went over the engine gate.",
        "Wait until the engine is less loaded, or raise [engine_gate].",
    ),
    Row(
        "nothing_asked",
        "unfit",
        "The profile has no gate, so nothing can be held.",
        "Add [gates], such as min_quality and max_ttft_ms.",
    ),
    Row(
        "ttft_over_max",
        "gate",
        "TTFT is over its limit.",
        "Lower the concurrency, shorten prompts, or enable chunked prefill.",
    ),
    Row(
        "tpot_over_max",
        "gate",
        "TPOT is over its limit.",
        "Lower the concurrency, or choose a smaller or more quantised artifact.",
    ),
    Row("e2e_over_max", "gate", "E2E latency is over its limit.", "Lower the concurrency or the output length."),
    Row(
        "throughput_below_min",
        "gate",
        "Throughput is under its limit.",
        "Raise the concurrency or max_num_seqs, or choose a faster artifact or engine.",
    ),
    Row(
        "goodput_below_min",
        "gate",
        "Too few requests per second meet every latency gate.",
        "Look which latency gate is missed, and lower the concurrency.",
    ),
    Row(
        "quality_below_min",
        "gate",
        "Quality is under its limit.",
        "Choose a less quantised artifact or a stronger model; check the chat template.",
    ),
    Row(
        "quality_drop",
        "gate",
        "Quality fell too far below the baseline's.",
        "Choose a less quantised artifact; check the chat template.",
    ),
    Row(
        "format_below_min",
        "gate",
        "Too few answers have the asked form.",
        "Check the chat template, or raise quality.max_tokens.",
    ),
    Row(
        "success_rate_low",
        "gate",
        "Too many requests failed.",
        "Look at the errors by kind, and lower the concurrency or raise timeouts.request.",
    ),
    Row(
        "memory_over_max",
        "gate",
        "Peak memory is over its limit.",
        "Lower memory_share, max_model_len or max_num_seqs, or choose a smaller artifact.",
    ),
    Row(
        "cold_start_over_max",
        "gate",
        "The cold start takes too long.",
        "Keep the model on a local disk, or turn graph capture off.",
    ),
    Row(
        "prepare_over_max",
        "gate",
        "Preparing the model takes too long.",
        "Ship a prebuilt engine, or choose a format that needs no build.",
    ),
    Row(
        "cost_over_max", "gate", "A million output tokens cost too much.", "Raise throughput, or choose a cheaper node."
    ),
    Row("artifact_over_max", "gate", "The artifact is too large.", "Choose a more quantised artifact."),
    Row(
        "conversion_mismatch",
        "gate",
        "The converted model answers unlike its source.",
        "Convert again with the versions the converter names.",
    ),
    Row(
        "regression",
        "regression",
        "It is worse than the saved result.",
        "Compare versions and settings with the saved ones.",
    ),
    Row(
        "confounded_change",
        "note",
        "It differs from the baseline in more than one factor, so no single one is shown to be the cause.",
        "Measure a candidate that differs in one factor only.",
    ),
    Row(
        "output_diverges",
        "note",
        "Its answers differ from the baseline's.",
        "Compare the quality scores; a differing text need not be worse.",
    ),
    Row(
        "not_reproducible",
        "note",
        "The same request gave differing answers.",
        "Expect other texts under other batch sizes, even at temperature 0.",
    ),
    Row(
        "gate_unavailable",
        "note",
        "A gate can't be judged on this node.",
        "Take the gate out of the profile, or measure where it can be judged.",
    ),
    Row(
        "no_baseline",
        "note",
        "There is no baseline result to compare with.",
        "Name a baseline in the profile that can be measured.",
    ),
    Row(
        "cpu_only",
        "note",
        "The numbers hold for a CPU and say nothing about a GPU.",
        "Measure on the hardware you will deploy on.",
    ),
)

EFFECTS: dict[str, Row] = {row.code: row for row in ROWS}

DECISIONS: tuple[tuple[Effect, DecisionWord], ...] = (
    ("not_comparable", "reject"),
    ("no_result", "reject"),
    ("unfit", "tune"),
    ("gate", "reject"),
    ("regression", "reject"),
)
"""What each effect makes of a candidate, in order of precedence; a note does nothing."""


def effect_of(code: str) -> Effect:
    """The one effect of a code; KeyError for a code that has no row."""
    return EFFECTS[code].effect


def decided(reasons: Iterable[Reason]) -> DecisionWord:
    """What reasons make of a candidate: the first effect in precedence that occurs; accept without one."""
    found = {effect_of(reason.code) for reason in reasons}
    return next((decision for effect, decision in DECISIONS if effect in found), "accept")


def by_precedence(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """The reasons that decide first, in front; otherwise in their order."""
    order = {effect: place for place, (effect, _) in enumerate(DECISIONS)}
    return tuple(sorted(reasons, key=lambda reason: order[effect_of(reason.code)]))
