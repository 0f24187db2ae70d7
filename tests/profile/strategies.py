"""Valid profiles of every shape, for properties."""

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from deploytui.profile import load_schema
from deploytui.profile import schema as s
from deploytui.profile.rules import GATE_NAMES, OBJECTIVES, sweep
from deploytui.profile.workload_rules import REFUSED_BODY

odd_text = st.one_of(
    st.sampled_from(["None", "", "true", "1", 'a "quoted" # text', "zwölf\n\t€", "\x7f\x00"]), st.text()
)
names = (
    st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="/\\."), min_size=1, max_size=20)
    .map(lambda text: text)
    .filter(str.isprintable)
)
some_names = st.one_of(st.sampled_from(["None", "vllm-bf16", "a.b", "a b"]), names)
positive = st.integers(1, 10**9)
rate = st.floats(1e-6, 1e6)
share = st.floats(0, 1)
seconds = st.floats(0, 1e6)
scalars = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), odd_text
)
free: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(odd_text, inner, max_size=3)),
    max_leaves=6,
)
tables = st.dictionaries(odd_text, free, max_size=4)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The strategy, or an absent key."""
    return st.one_of(st.none(), strategy)


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One value, or a list of different ones."""
    return st.one_of(strategy, st.lists(strategy, min_size=1, max_size=4, unique=True).map(tuple))


shared_prefixes = maybe(st.builds(s.SharedPrefix, ratio=st.floats(0.01, 0.99), groups=positive))
loads: st.SearchStrategy[load_schema.Load] = st.one_of(
    st.builds(load_schema.Closed, concurrency=several(positive), think_time_s=seconds),
    st.builds(load_schema.Constant, rate=several(rate)),
    st.builds(load_schema.Poisson, rate=several(rate)),
    st.builds(load_schema.Gamma, rate=several(rate), burstiness=rate),
    st.just(load_schema.Burst()),
    st.builds(load_schema.Ramp, from_=rate, to=rate, seconds=rate),
    st.builds(
        load_schema.Stages, stages=st.lists(st.builds(load_schema.Stage, rate, rate), min_size=1, max_size=3).map(tuple)
    ),
    st.builds(load_schema.TraceReplay, path=odd_text, speed=rate),
)


@st.composite
def lengths(draw: st.DrawFn) -> load_schema.Lengths:
    """Lengths of every kind, whose limits leave room for them."""
    low, room = draw(st.integers(1, 10**4)), draw(st.integers(0, 10**4))
    mean, std, high = float(low + room // 2), draw(st.floats(0.1, 100)), low + room
    return draw(
        st.one_of(
            positive,
            st.just(load_schema.Uniform(min=low, max=high)),
            st.just(load_schema.Normal(mean=mean, std=std, min=low, max=high + 100)),
            st.just(load_schema.Lognormal(mean=mean, std=std, min=1)),
        )
    )


header_names = st.from_regex(r"x-a[a-z0-9-]{0,8}", fullmatch=True)
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
body_keys = odd_text.filter(lambda key: key not in REFUSED_BODY)


@st.composite
def workloads(draw: st.DrawFn) -> s.Workload:
    load = draw(loads)
    places = sweep(load)
    synthetic = draw(st.booleans())
    endpoint: Any = draw(st.sampled_from(["chat", "completions"]))
    return s.Workload(
        prompt_tokens=draw(lengths()) if synthetic else None,
        shared_prefix=draw(shared_prefixes) if synthetic else None,
        turns=draw(st.integers(1, 5)) if endpoint == "chat" else 1,
        dataset=None if synthetic else draw(odd_text),
        output_tokens=draw(lengths()),
        headers=draw(st.dictionaries(header_names, header_values, max_size=2)),
        body=draw(st.dictionaries(body_keys, free, max_size=2)),
        max_seconds=draw(maybe(rate)),
        max_error_rate=draw(maybe(share)),
        requests=draw(positive),
        load=load,
        decide_at=draw(st.sampled_from(places)) if places else None,
        warmup_requests=draw(st.integers(0, 100)),
        repeats=draw(positive),
        seed=draw(st.integers(0, 2**62)),
        endpoint=endpoint,
        sampling=draw(
            st.builds(s.Sampling, temperature=seconds, top_p=share, top_k=maybe(positive), min_p=maybe(share))
        ),
    )


limits = st.builds(s.Limits, mean=maybe(rate), p50=maybe(rate), p95=maybe(rate), p99=maybe(rate), max=maybe(rate))
gates = st.builds(
    s.Gates,
    min_quality=maybe(share),
    min_success_rate=maybe(share),
    max_ttft_ms=maybe(limits),
    max_tpot_ms=maybe(limits),
    min_output_tok_s=maybe(rate),
    max_peak_gpu_gib=maybe(rate),
    confirm=st.dictionaries(st.sampled_from(GATE_NAMES), st.sampled_from(["point", "interval"]), max_size=3),
)
engine_gates = st.builds(s.EngineGate, max_kv_cache_usage=maybe(share), action=maybe(st.sampled_from(["mark", "hold"])))
settings_ = st.builds(
    s.Settings,
    max_model_len=maybe(positive),
    memory_share=maybe(share),
    prefix_cache=maybe(st.booleans()),
    kv_cache_dtype=maybe(odd_text),
    gpu_layers=maybe(st.integers(0, 99)),
)


def candidates(name: str) -> st.SearchStrategy[s.Candidate]:
    """Candidates of that name."""
    return st.builds(
        s.Candidate,
        name=st.just(name),
        engine=odd_text,
        model=maybe(odd_text),
        dtype=maybe(odd_text),
        device=maybe(st.sampled_from(["cuda", "cpu"])),
        devices=maybe(st.one_of(positive, st.lists(odd_text, max_size=2).map(tuple))),
        command=maybe(st.lists(odd_text, max_size=3).map(tuple)),
        container=maybe(st.builds(s.Container, image=odd_text)),
        settings=settings_,
        args=st.lists(odd_text, max_size=3).map(tuple),
        env=st.dictionaries(odd_text, odd_text, max_size=2),
        declared=st.dictionaries(odd_text, odd_text, max_size=2),
        effort_days=maybe(seconds),
    )


@st.composite
def profiles(draw: st.DrawFn) -> s.Profile:
    called = draw(st.lists(some_names, min_size=1, max_size=4, unique=True))
    return s.Profile(
        name=draw(odd_text),
        baseline=draw(maybe(st.sampled_from(called))),
        form=draw(st.sampled_from(["online", "offline", "edge"])),
        objective=draw(maybe(st.sampled_from(OBJECTIVES))),
        order=draw(st.sampled_from(["grouped", "interleaved"])),
        drift_check=draw(st.booleans()),
        timeouts=draw(st.builds(s.Timeouts, load=rate, session=rate)),
        workload=draw(workloads()),
        quality=draw(st.builds(s.Quality, tasks=st.lists(odd_text, max_size=3, unique=True).map(tuple))),
        gates=draw(gates),
        engine_gate=draw(maybe(engine_gates)),
        candidates=tuple(draw(candidates(name)) for name in called),
        session=draw(st.one_of(st.just(UNSET), tables)),
        environment=draw(st.one_of(st.just(UNSET), tables)),
        decision=draw(st.one_of(st.just(UNSET), tables)),
        results=tuple(draw(st.lists(tables, max_size=3))),
    )
