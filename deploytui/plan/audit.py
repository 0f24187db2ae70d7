"""The one-factor audit: which kind of change each difference between two candidates is."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from deploytui.plan.labels import HOUSE_FORMATS, format_of, model_identity, precision_of, quantization_of
from deploytui.profile.schema import Candidate, Profile

FACTORS = ("model", "artifact", "engine", "runtime", "environment")

FACTOR_OF = {
    "model": "model",
    "revision": "model",
    "served_model": "model",
    "engine": "engine",
    "engine_version": "engine",
    "python": "engine",
    "command": "engine",
    "container": "engine",
    "api": "engine",
    "format": "artifact",
    "dtype": "artifact",
    "quantization": "artifact",
    "prepare": "artifact",
    "settings": "runtime",
    "args": "runtime",
    "env": "runtime",
    "trust_remote_code": "runtime",
    "device": "environment",
    "devices": "environment",
    "base_url": "environment",
    "declared": "environment",
}
"""The published map of a field, or of a table's fields, to its factor; what is not here is no part of a deployment."""

ENGINES_OWN = frozenset({"engine_version", "python", "command", "container", "args", "env", "base_url", "served_model"})
"""Fields in an engine's own words: another engine forces others."""

SETTING_OF_ENGINES = {
    "gpu_layers": {"llamacpp"},
    "memory_share": {"vllm", "sglang", "tensorrt-llm", "tgi"},
    "cuda_graphs": {"vllm", "sglang", "tensorrt-llm", "tgi"},
    "chunked_prefill": {"vllm", "sglang", "tensorrt-llm"},
    "threads": {"llamacpp", "transformers", "onnxruntime-genai"},
}
"""Settings that only some engines have."""

DEVICE_SETTINGS = frozenset({"gpu_layers", "memory_share", "cuda_graphs", "threads"})
"""Settings that another kind of device forces."""

SECRET = re.compile(r"api[-_]?key|secret|passw|credential|(?:hf|auth|access|bearer|hub)[-_]?token|^.*_TOKEN$", re.I)

Difference = tuple[str | None, str | None]
"""The other's value and ours; None where it is the engine's default."""


class SingleStep(Struct, frozen=True, kw_only=True):
    """The baseline with one factor of another candidate: a candidate that would separate causes."""

    factor: str
    candidate: Candidate
    text: str


class Confounded(Struct, frozen=True, kw_only=True):
    """A candidate that differs from the baseline in more than one factor."""

    candidate: str
    baseline: str
    fields: dict[str, dict[str, Difference]]
    """What differs, by factor."""
    steps: tuple[SingleStep, ...]
    """Single-factor candidates that the profile does not have yet; whether they could run is not known here."""

    @property
    def text(self) -> str:
        """The finding and what would separate it, as a sentence or two."""
        several = ", ".join(f"{factor} ({', '.join(fields)})" for factor, fields in self.fields.items())
        found = f"{self.candidate} differs from {self.baseline} in {len(self.fields)} factors: {several}."
        steps = "; ".join(step.text for step in self.steps)
        return f"{found} To tell their effects apart: {steps}." if steps else found


def differences(a: Candidate, b: Candidate) -> dict[str, Difference]:
    """Field → (value of `a`, value of `b`) for every field of the deployment that differs, in the order of the map."""
    left, right = _fields(a), _fields(b)
    if a.model == b.model:
        for key in ("format", "quantization"):
            if None in (getattr(a, key), getattr(b, key)):
                left.pop(key, None), right.pop(key, None)
    keys = sorted(left.keys() | right.keys(), key=lambda key: (list(FACTOR_OF).index(key.split(".")[0]), key))
    changed = {key: (left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)}
    return {key: _without_secret(key, pair) for key, pair in changed.items()}


def by_factor(a: Candidate, b: Candidate) -> dict[str, dict[str, Difference]]:
    """The differences sorted into factors; a field that another difference forces goes with that one."""
    changed = differences(a, b)
    sorted_: dict[str, dict[str, Difference]] = {factor: {} for factor in FACTORS}
    for field, pair in changed.items():
        sorted_[_factor(field, a, b, changed)][field] = pair
    return {factor: fields for factor, fields in sorted_.items() if fields}


def factors(a: Candidate, b: Candidate) -> tuple[str, ...]:
    """The factors two candidates differ in; empty when they are the same deployment."""
    return tuple(by_factor(a, b))


def confounded(profile: Profile) -> tuple[Confounded, ...]:
    """Candidates that differ from the baseline in more than one factor; empty without a baseline."""
    baseline = baseline_of(profile)
    if baseline is None:
        return ()
    found = []
    for candidate in profile.candidates:
        fields = by_factor(baseline, candidate)
        if len(fields) > 1:
            steps = _single_steps(baseline, candidate, fields, profile.candidates)
            found.append(Confounded(candidate=candidate.name, baseline=baseline.name, fields=fields, steps=steps))
    return tuple(found)


def baseline_of(profile: Profile) -> Candidate | None:
    """The candidate that the others are held against; None when none is named, or it is left out."""
    return next((candidate for candidate in profile.candidates if candidate.name == profile.baseline), None)


def _single_steps(
    baseline: Candidate,
    candidate: Candidate,
    fields: Mapping[str, Mapping[str, Difference]],
    present: Sequence[Candidate],
) -> tuple[SingleStep, ...]:
    steps = []
    for factor, changed in fields.items():
        step = replace(_taking(baseline, candidate, changed), name=f"{baseline.name}+{factor}")
        if any(not differences(step, other) for other in present):
            continue
        words = ", ".join(f"{key} = {ours if ours is not None else 'default'}" for key, (_, ours) in changed.items())
        steps.append(SingleStep(factor=factor, candidate=step, text=f"{baseline.name} with {words}"))
    return tuple(steps)


def _taking(base: Candidate, other: Candidate, fields: Collection[str]) -> Candidate:
    """`base` with some fields of `other`."""
    changes: dict[str, Any] = {}
    for field in fields:
        table, _, key = field.partition(".")
        if table == "settings":
            settings = changes.get("settings", base.settings)
            changes["settings"] = replace(settings, **{key: getattr(other.settings, key)})
        elif key:
            entries = dict(changes.get(table, getattr(base, table)))
            theirs: dict[str, str] = getattr(other, table)
            entries.pop(key, None)
            changes[table] = entries | ({key: theirs[key]} if key in theirs else {})
        else:
            changes[table] = getattr(other, table)
    return replace(base, **changes)


def _fields(candidate: Candidate) -> dict[str, str]:
    """Every field of the deployment that has a value, as text; what is declared stands in for what is not known."""
    plain = {key: _text(getattr(candidate, key)) for key in FACTOR_OF if key not in ("settings", "env", "declared")}
    plain["format"], plain["quantization"] = format_of(candidate), quantization_of(candidate)
    for key in ("engine_version", "dtype"):
        plain[key] = plain[key] or candidate.declared.get(key)
    settings = msgspec.structs.asdict(candidate.settings)
    below = {f"settings.{key}": _text(value) for key, value in settings.items()}
    below |= {f"env.{key}": value for key, value in candidate.env.items()}
    below |= {f"declared.{key}": value for key, value in candidate.declared.items() if key not in FACTOR_OF}
    return {key: value for key, value in (plain | below).items() if value is not None}


def _text(value: Any) -> str | None:
    """A field's value as it would be written; None for what is absent."""
    match value:
        case None | ():
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return " ".join(map(str, value))
        case Struct():
            return " ".join(filter(None, map(_text, msgspec.structs.asdict(value).values())))
        case _:
            return str(value)


def _factor(field: str, a: Candidate, b: Candidate, changed: Mapping[str, Difference]) -> str:
    """The factor a difference belongs to, by what forces it or else by the map."""
    table, _, key = field.partition(".")
    if "engine" in changed and (table in ENGINES_OWN or _only_one_has(key, a, b)):
        return "engine"
    if field in ("format", "dtype", "quantization", "model", "revision"):
        return _weights_factor(field, a, b, changed)
    if "device" in changed and key in DEVICE_SETTINGS:
        return "environment"
    if field == "devices" and any(f"settings.{kind}_parallel" in changed for kind in ("tensor", "pipeline", "data")):
        return "runtime"
    return "environment" if field == "env.CUDA_VISIBLE_DEVICES" else FACTOR_OF[table]


def _weights_factor(field: str, a: Candidate, b: Candidate, changed: Mapping[str, Difference]) -> str:
    """Where a change of the weights belongs: another format forces another file and other names of one precision."""
    houses = HOUSE_FORMATS.get(a.engine), HOUSE_FORMATS.get(b.engine)
    forced = "engine" in changed and any(house in changed.get("format", ()) for house in houses if house)
    of_format = "engine" if forced else "artifact"
    same_precision = precision_of(a) == precision_of(b)
    if field == "format":
        return of_format
    if field in ("dtype", "quantization"):
        return of_format if same_precision and "format" in changed else "artifact"
    if model_identity(a) != model_identity(b) or (field == "revision" and "model" not in changed):
        return "model"
    return of_format if same_precision else "artifact"


def _only_one_has(setting: str, a: Candidate, b: Candidate) -> bool:
    """Whether a setting exists for one of the two engines only."""
    engines = SETTING_OF_ENGINES.get(setting)
    return engines is not None and (a.engine in engines) != (b.engine in engines)


def _without_secret(field: str, pair: Difference) -> Difference:
    """The pair, with values that may be secrets left out: they would go to the journal and the screen."""
    if field == "args":
        return _shown_args(pair[0]), _shown_args(pair[1])
    if field.startswith("env.") and SECRET.search(field.removeprefix("env.")):
        return tuple("(hidden)" if value is not None else None for value in pair)  # type: ignore[return-value]
    return pair


def _shown_args(text: str | None) -> str | None:
    """Arguments with the value behind a secret's flag hidden."""
    return text and re.sub(r"(--?[\w-]*(?:api[-_]?key|secret|passw\w*|[-_]token)[= ])\S+", r"\1(hidden)", text)
