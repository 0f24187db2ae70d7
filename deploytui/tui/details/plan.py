"""What a profile asks for, in lines, before it is run."""

from collections.abc import Iterable

import msgspec

from deploytui.profile.load_schema import Lengths, Load
from deploytui.profile.schema import Candidate, Gates, Limits, Prepare, Profile, Workload
from deploytui.tui.details.config import value_text
from deploytui.tui.details.live import labelled
from deploytui.tui.figures import grouped, number
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.words import LATENCIES, engine_title


def plan_lines(profile: Profile) -> tuple[Line, ...]:
    """Workload, gates, and every candidate."""
    return (
        *workload_lines(profile),
        *gate_lines(profile.gates),
        (),
        line(Piece(f"{len(profile.candidates)} candidates", "strong")),
        *(candidate_line(row, profile.baseline) for row in profile.candidates),
    )


def workload_lines(profile: Profile) -> Iterable[Line]:
    """The one workload all get, and the quality tasks."""
    work = profile.workload
    size = f"{grouped(work.requests)} requests × {work.repeats} repeats, {work.warmup_requests} to warm up"
    yield labelled("workload", f"{prompts_text(work)} → {answers_text(work)}, {size}")
    yield labelled("load", f"{load_text(work.load)}, endpoint {work.endpoint}")
    if more := ", ".join(added_texts(work)):
        yield labelled("sent with", more)
    tasks = ", ".join(map(visible, profile.quality.tasks)) or "none: the decision will be tune"
    yield labelled("quality", tasks)


def prompts_text(work: Workload) -> str:
    """Where the prompts come from, and how long they are."""
    if work.dataset is not None:
        made = visible(work.dataset)
    elif work.prompt_tokens is not None:
        made = f"{lengths_text(work.prompt_tokens)} prompt tokens"
    else:
        made = "prompts as long as the trace says"
    if (shared := work.shared_prefix) is not None:
        groups = f" in {shared.groups} groups" if shared.groups > 1 else ""
        made += f", {shared.ratio:.0%} of them shared{groups}"
    return made + (f", {work.turns} turns" if work.turns > 1 else "")


def answers_text(work: Workload) -> str:
    """How long the answers are asked to be."""
    if work.dataset is None and work.prompt_tokens is None:
        return "answers as long as it says"
    return f"{lengths_text(work.output_tokens)} output tokens"


def lengths_text(lengths: Lengths) -> str:
    """Such as `1 024` or `normal mean 512 std 100`."""
    if isinstance(lengths, int):
        return grouped(lengths)
    values = msgspec.to_builtins(lengths)
    kind = values.pop("kind")
    return " ".join([kind, *(f"{key} {value:g}" for key, value in values.items() if value is not None)])


def added_texts(work: Workload) -> Iterable[str]:
    """Headers and fields that go with each request, and what ends the load early."""
    yield from (f"header {visible(name)}" for name in work.headers)
    yield from (f"{visible(key)} {visible(str(value))}" for key, value in work.body.items())
    if work.max_seconds is not None:
        yield f"at most {work.max_seconds:g} s a repeat"
    if work.max_error_rate is not None:
        yield f"at most {work.max_error_rate:.0%} errors"


def load_text(load: Load) -> str:
    """The kind of load and its figures."""
    values = msgspec.to_builtins(load)
    kind = values.pop("kind")
    return " ".join([kind, *(f"{key} {visible(str(value))}" for key, value in values.items())])


def gate_lines(gates: Gates) -> Iterable[Line]:
    """Each gate that is set."""
    label = "gates"
    for text in gate_texts(gates):
        yield labelled(label, text)
        label = ""
    if label:
        yield labelled(label, Piece("none is set: the decision will be tune", "warn"))


def gate_texts(gates: Gates) -> Iterable[str]:
    """Such as `TTFT p95 ≤ 500 ms` or `quality ≥ 0.80`."""
    for key in gates.__struct_fields__:
        value = getattr(gates, key)
        if value is None or key == "confirm":
            continue
        side, _, metric = key.partition("_")
        sign = "≤" if side == "max" else "≥"
        if isinstance(value, Limits):
            title = LATENCIES.get(metric.removesuffix("_ms"), metric)
            for statistic in value.__struct_fields__:
                limit = getattr(value, statistic)
                if limit is not None:
                    yield f"{title} {statistic} {sign} {number(limit)} ms"
        else:
            yield f"{metric.replace('_', ' ')} {sign} {number(value)}"


def prepare_text(prepare: Prepare) -> str:
    """What is made of the model before it is loaded."""
    made = prepare.precision or prepare.format or ""
    return f"prepared as {made}" if made else "prepared first"


def candidate_line(row: Candidate, baseline: str | None) -> Line:
    """One candidate: engine, model, what it sets."""
    settings = msgspec.to_builtins(row.settings)
    about = [engine_title(row.engine), row.model or row.base_url or "", row.format or "", row.dtype or ""]
    about += [prepare_text(row.prepare)] if row.prepare else []
    about += [f"in {row.container.image}"] if row.container else []
    about += [f"{key} {value_text(value)}" for key, value in settings.items()]
    return line(
        Piece(f"  {visible(row.name)}", "strong"),
        Piece("  (baseline)" if row.name == baseline else "", "dim"),
        f"  {' · '.join(visible(part) for part in about if part)}",
    )
