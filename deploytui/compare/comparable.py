"""Whether a candidate's numbers answer the same question as the others': workload, definitions, environment."""

from collections.abc import Iterator

from deploytui.profile.schema import Candidate, Profile
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Reason

SHORT_SHARE = 0.01
"""Replies under the asked length, as a share, from which a fixed-length workload is another workload."""

LENGTH_SHARE = 0.02
LENGTH_TOKENS = 2.0
"""How far prompt lengths may differ: 2 %, and on short prompts two tokens, the width of BOS and EOS."""


def mismatches(profile: Profile, state: SessionState, name: str, point: int = 0) -> tuple[Reason, ...]:
    """Why a candidate can't be ranked with the others, each with the field that differs; empty when it can."""
    candidate = state.candidates[name]
    return (
        *_definitions(state),
        *_environment(profile, state, candidate),
        *_short(profile, candidate.measured.get(point)),
        *_prompts(profile, state, candidate, point),
    )


def asked(profile: Profile, name: str) -> Candidate | None:
    """A candidate as the profile asks for it; None when it does not."""
    return next((candidate for candidate in profile.candidates if candidate.name == name), None)


def _definitions(state: SessionState) -> Iterator[Reason]:
    first, now = state.first_started, state.started
    if first and now and first.definitions != now.definitions:
        yield Reason(
            code="definition_mismatch",
            metric="definitions",
            value=now.definitions,
            limit=first.definitions,
            proof="journal: session_started",
            text=f"the session began with definitions {first.definitions} and went on with {now.definitions}",
        )


def _environment(profile: Profile, state: SessionState, candidate: CandidateState) -> Iterator[Reason]:
    first, now = state.first_started, state.started
    if first and now and first.hostname != now.hostname:
        yield Reason(
            code="environment_mismatch",
            metric="hostname",
            proof="journal: session_started",
            text=f"the session began on {first.hostname} and went on on {now.hostname}",
        )
    wanted = asked(profile, candidate.name)
    device = candidate.engine.device if candidate.engine else None
    if wanted and wanted.device == "cuda" and device is not None and device.lower().startswith("cpu"):
        yield Reason(
            code="environment_mismatch",
            metric="device",
            proof="journal: engine",
            text=f"asked for cuda, the engine ran on {device}",
        )


def _short(profile: Profile, metrics: Metrics | None) -> Iterator[Reason]:
    """Replies that ended early although the length was fixed: other engines did more work."""
    if metrics is None or metrics.ok == 0 or not profile.workload.sampling.ignore_eos:
        return
    share = metrics.short_outputs / metrics.ok
    tokens = profile.workload.output_tokens
    if share > SHORT_SHARE:
        yield Reason(
            code="workload_mismatch",
            metric="short_outputs",
            value=share,
            n=metrics.ok,
            limit=SHORT_SHARE,
            margin=SHORT_SHARE - share,
            proof="journal: measured",
            text=f"{metrics.short_outputs} of {metrics.ok} replies ended before "
            f"{f'{tokens} tokens' if isinstance(tokens, int) else 'their own length'} although ignore_eos was asked",
        )


def _prompts(profile: Profile, state: SessionState, candidate: CandidateState, point: int) -> Iterator[Reason]:
    """Prompts that were not the asked length where the tokenizer is known to be the same; others differ rightly."""
    expected = _expected_tokens(profile, state, candidate, point)
    metrics = candidate.measured.get(point)
    median = metrics.prompt_tokens.median if metrics else None
    if metrics is None or median is None or not expected:
        return
    nearest = min(expected, key=lambda tokens: abs(median - tokens))
    off = abs(median - nearest)
    if off > max(LENGTH_TOKENS, LENGTH_SHARE * nearest):
        yield Reason(
            code="workload_mismatch",
            metric="prompt_tokens",
            value=median,
            n=metrics.prompt_tokens.n,
            limit=nearest,
            margin=-off,
            proof="journal: measured",
            text=f"median prompt {median:g} tokens where {nearest:g} were expected of the same tokenizer",
        )


def _expected_tokens(profile: Profile, state: SessionState, candidate: CandidateState, point: int) -> tuple[float, ...]:
    """The prompt lengths that would be right; empty when nothing can be expected."""
    prompts = state.prompts
    if prompts is None:
        return ()
    if prompts.tokenizer_of == candidate.name:
        target, overhead = prompts.target_tokens, prompts.overhead_tokens
        return () if target is None or overhead is None else (target, target + overhead)
    owner = state.candidates.get(prompts.tokenizer_of or "")
    theirs = owner.measured.get(point) if owner else None
    if owner is None or theirs is None or theirs.prompt_tokens.median is None:
        return ()
    return (theirs.prompt_tokens.median,) if _same_model(profile, owner.name, candidate.name) else ()


def _same_model(profile: Profile, one: str, other: str) -> bool:
    """Whether two candidates name the same model, and so the same tokenizer."""
    first, second = asked(profile, one), asked(profile, other)
    if first is None or second is None or first.model is None:
        return False
    return (first.model, first.revision) == (second.model, second.revision)
