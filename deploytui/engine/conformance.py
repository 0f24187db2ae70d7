"""Whether an adapter keeps what deploytui relies on; for ours, and for anyone who writes one.

    python -m deploytui.engine.conformance NAME

prints what is wrong with the engine of that name, a line a fault, and ends with status 1 if there is any.

An adapter for another engine is a small package. It has a class with the attributes and methods of
`deploytui.engine.protocol.Engine`, most easily a subclass of `deploytui.engine.adapter.Adapter`:

    class Fast(Adapter):
        name, title = "fast", "Fast Server"
        formats = frozenset({"safetensors"})
        capabilities = Capabilities(formats=formats, settings=frozenset({"max_model_len"}))

        def launch(self, candidate, place):
            settings = candidate.settings
            length = ("--length", str(settings.max_model_len)) if settings.max_model_len else ()
            return Launch(
                argv=("fast-server", "--model", place.model_path or "", "--port", str(place.port), *length),
                env=gpu_environment(candidate, place), base_url=loopback_url(place.port), served_model="fast")

and an entry point that names it, in its pyproject.toml:

    [project.entry-points."deploytui.engines"]
    fast = "fast_deploytui:Fast"

An adapter describes and starts nothing: importing it, and asking it anything, opens no file and starts no process. Here
it is asked with made-up candidates; in a test of its own, `assert faults(Fast()) == ()`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.protocol import Capabilities, Engine, Launch, MetricNames, Place, Probe, Probed
from deploytui.engine.registry import load_engine
from deploytui.engine.watching import watched
from deploytui.errors import DeployError
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import EngineFacts, Failure

ATTRIBUTES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "title": str,
    "launches": bool,
    "simulated": bool,
    "formats": frozenset,
    "health_path": (str, type(None)),
    "readback_paths": tuple,
    "capabilities": Capabilities,
    "metrics": (MetricNames, type(None)),
    "memory_path": (str, type(None)),
}
METHODS = ("objection", "probe", "judge", "launch", "body", "preparation", "readback", "readlog", "explain")

KEY = "conformance-key-7c1e"
GPUS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")
PLACE = Place(port=48123, model_path="/models/conformance", concurrency=3, context_tokens=700, api_key=KEY)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERYWHERE = ("0.0.0.0", "::", "*")

TRIED: Mapping[str, tuple[Any, ...]] = {
    "max_model_len": (1000,),
    "tensor_parallel": (2,),
    "pipeline_parallel": (2,),
    "data_parallel": (2,),
    "memory_share": (0.35,),
    "max_num_seqs": (5, 1),
    "prefix_cache": (False, True),
    "kv_cache_dtype": ("q8_0", "fp8", "fp8_e5m2", "int8", "quantized", "float16"),
    "cuda_graphs": (False, True),
    "chunked_prefill": (False, True),
    "threads": (3,),
    "gpu_layers": (7,),
}
"""Values of each setting, of which one at least has to change the launch."""

FIXABLE = ("prefix_cache", "cuda_graphs", "chunked_prefill", "max_num_seqs")
"""Settings that an engine may take with the one value that it has anyway."""

ODD_LOGS: tuple[tuple[str, ...], ...] = (
    (),
    ("",),
    ("\x00\x1b[31m�", "{" * 400, "%s %(a)s {0} {kind}", "raise ValueError(", "=" * 10_000),
    ("KV cache size: , tokens", "took GiB", "Error: ", "\r\r\n", "Traceback (most recent call last):"),
)
ODD_ANSWERS: tuple[Any, ...] = (None, [], {}, "", "junk{", 0, [1, None], {"data": 3}, {"data": [{}]}, 'a{b="c"} NaN\n')


def faults(engine: Engine) -> tuple[str, ...]:
    """What an adapter does not keep, a sentence each; empty when it keeps everything."""
    found = [*_attribute_faults(engine), *_method_faults(engine)]
    if found:
        return tuple(found)
    with watched(found):
        for check in (_refusals, _launch_faults, _setting_faults, _hearing_faults):
            found.extend(_guarded(check, engine))
    return tuple(found)


def _guarded(check: Callable[[Engine], Iterator[str]], engine: Engine) -> Iterator[str]:
    """A check's faults; an exception of the adapter's is one more."""
    try:
        yield from check(engine)
    except Exception as error:  # noqa: BLE001 - whatever the adapter under test raises is the finding
        yield f"it raises {type(error).__name__}: {error}"


def _attribute_faults(engine: Engine) -> Iterator[str]:
    for name, kind in ATTRIBUTES.items():
        if not hasattr(engine, name):
            yield f"it has no {name}"
        elif not isinstance(getattr(engine, name), kind):
            yield f"{name} is {getattr(engine, name)!r}"
    for name in ("name", "title"):
        if getattr(engine, name, None) == "":
            yield f"{name} is empty"
    for path in (*_paths(engine, "readback_paths"), getattr(engine, "health_path", None)):
        if isinstance(path, str) and not path.startswith("/"):
            yield f"{path!r} is no path: it does not start with /"


def _paths(engine: Engine, name: str) -> tuple[Any, ...]:
    value = getattr(engine, name, ())
    return value if isinstance(value, tuple) else ()


def _method_faults(engine: Engine) -> Iterator[str]:
    for name in METHODS:
        if not callable(getattr(engine, name, None)):
            yield f"it has no method {name}"


def example(engine: Engine) -> Candidate:
    """A plain candidate the engine takes, or the plainest there is."""
    bare = Candidate(name="conformance", engine=engine.name)
    modelled = replace(bare, model="/models/conformance")
    tried = (
        modelled,
        bare,
        replace(modelled, device="cuda"),
        replace(modelled, command=("server", "--model", "{model}", "--port", "{port}")),
        replace(bare, base_url="http://127.0.0.1:48123"),
    )
    return next((candidate for candidate in tried if engine.objection(candidate) is None), modelled)


def _refusals(engine: Engine) -> Iterator[str]:
    candidate = example(engine)
    if (failure := engine.objection(candidate)) is not None:
        yield f"it takes no candidate that was tried; of the plainest it says: {failure.what}"
    if not engine.launches:
        return
    if engine.objection(replace(candidate, base_url="http://127.0.0.1:1")) is None:
        yield "it does not object to base_url, though it launches a server of its own"
    if engine.simulated:
        return  # it takes any setting, for there is nothing that could follow it
    known = set(Settings.__struct_fields__)
    if unknown := engine.capabilities.settings - known:
        yield f"capabilities.settings names {', '.join(sorted(unknown))}, which are no settings"
    for name in sorted(known - engine.capabilities.settings):
        settings = [Settings(**{name: value}) for value in TRIED[name]]
        if all(engine.objection(replace(candidate, settings=each)) is None for each in settings):
            yield f"it has no word for the setting {name}, and does not object to it"


def _launch_faults(engine: Engine) -> Iterator[str]:
    candidate = example(engine)
    launch = engine.launch(candidate, PLACE)
    yield from _door_faults(launch, engine)
    if not engine.launches:
        return
    words = " ".join(launch.argv)
    if str(PLACE.port) not in words:
        yield "the port is not in argv"
    if candidate.model and not engine.simulated and str(PLACE.model_path) not in words:
        yield "the model is not in argv"
    for word in launch.argv:
        if word in EVERYWHERE or word.endswith(tuple(f"={place}" for place in EVERYWHERE)):
            yield f"it listens beyond this node: {word}"
    if any(KEY in word for word in (*launch.argv, *(launch.shown_argv or ()))):
        yield "the API key is in argv, where anyone on the node can read it: pass it by the environment"
    yield from _environment_faults(engine, candidate)


def _door_faults(launch: Launch, engine: Engine) -> Iterator[str]:
    if not all(isinstance(word, str) for word in (*launch.argv, *launch.env, *launch.env.values())):
        yield "argv and environment are not all text"
    if engine.launches and not launch.argv:
        yield "argv is empty"
    if engine.launches and not launch.base_url.startswith(tuple(f"http://{host}:" for host in LOOPBACK)):
        yield f"base_url is not on loopback: {launch.base_url}"
    if engine.launches and not launch.served_model:
        yield "it does not say which model it will serve"


def _environment_faults(engine: Engine, candidate: Candidate) -> Iterator[str]:
    on_gpus = replace(candidate, device="cuda", devices=2)
    if not engine.simulated and engine.objection(on_gpus) is None:
        told = engine.launch(on_gpus, replace(PLACE, gpu_uuids=GPUS))
        if told.env.get("CUDA_VISIBLE_DEVICES") != ",".join(GPUS):
            yield "the GPUs are not in CUDA_VISIBLE_DEVICES by UUID"
    named = replace(candidate, env={"CONFORMANCE": "yes"})
    if engine.launch(named, PLACE).env.get("CONFORMANCE") != "yes":
        yield "the candidate's own environment is not passed on"


def _setting_faults(engine: Engine) -> Iterator[str]:
    if not engine.launches:
        return
    candidate = example(engine)
    for name in sorted(engine.capabilities.settings & set(TRIED)):
        told = any(_changes(engine, candidate, name, value) for value in TRIED[name])
        if not told and not _is_fixed(engine, candidate, name):
            yield f"the setting {name} changes nothing of the launch"


def _is_fixed(engine: Engine, candidate: Candidate, name: str) -> bool:
    """Whether it can only be what it is anyway: one of its values is taken, another refused."""
    settings = [Settings(**{name: value}) for value in TRIED[name]]
    refused = [engine.objection(replace(candidate, settings=each)) is not None for each in settings]
    return name in FIXABLE and any(refused) and not all(refused)


def _changes(engine: Engine, candidate: Candidate, name: str, value: Any) -> bool:
    """Whether a setting shows in the launch or in each request; a command has to hold it first."""
    template = ("--setting", f"{{{name}}}") if engine.name == "command" else ()
    plain = candidate
    asked = replace(candidate, settings=Settings(**{name: value}))
    if template:
        asked = replace(asked, command=(*(candidate.command or ()), *template))
    if engine.objection(asked) is not None:
        asked = replace(asked, device="cpu")
        plain = replace(plain, device="cpu")
    if engine.objection(asked) is not None:
        return False
    return _shown(engine, asked) != _shown(engine, plain)


def _shown(engine: Engine, candidate: Candidate) -> tuple[Any, ...]:
    launch = engine.launch(candidate, PLACE)
    return launch.argv, launch.env, engine.body(candidate)


def _hearing_faults(engine: Engine) -> Iterator[str]:
    facts = EngineFacts(name=engine.name, served_model="conformance")
    for log in ODD_LOGS:
        if not isinstance(engine.explain(iter(log)), Failure | None):
            yield "explain() gives neither a failure nor None"
        if not isinstance(engine.readlog(facts, iter(log)), EngineFacts):
            yield "readlog() gives no facts"
    for answer in ODD_ANSWERS:
        answers = dict.fromkeys(engine.readback_paths, answer)
        if not isinstance(engine.readback(facts, answers), EngineFacts):
            yield "readback() gives no facts"
    if not isinstance(engine.readback(facts, {}), EngineFacts):
        yield "readback() gives no facts where nothing was answered"
    candidate = example(engine)
    if not isinstance(engine.probe(candidate), Probe | None):
        yield "probe() gives neither a probe nor None"
    elif engine.probe(candidate) is not None and engine.judge(candidate, Probed(found=False, error="?")) is None:
        yield "judge() finds nothing wrong with an engine that was not found"


def main(argv: list[str] | None = None) -> int:
    """Print the faults of one engine; 1 if there are any, 2 if there is no such engine."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) != 1:
        sys.stderr.write("Usage: python -m deploytui.engine.conformance NAME\n")
        return 2
    found: list[str] = []
    try:
        with watched(found):
            engine = load_engine(words[0])
    except DeployError as error:
        sys.stderr.write(f"{error.what} {error.fix}\n")
        return 2
    found.extend(faults(engine))
    sys.stdout.write("".join(f"{words[0]}: {fault}\n" for fault in found) or f"{words[0]}: conforms\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
