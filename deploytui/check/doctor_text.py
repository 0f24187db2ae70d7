"""What `doctor` found, as plain text."""

from collections.abc import Iterator

from deploytui.check.doctor import DoctorReport
from deploytui.check.doctor_engines import EngineFound
from deploytui.check.text import plain, section, size, table
from deploytui.record.facts import Gpu


def doctor_text(report: DoctorReport) -> str:
    """The report as lines with a newline at the end of each; foreign control characters are made visible."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: DoctorReport) -> Iterator[str]:
    yield from (plain(line) for line in table(list(_node(report))))
    yield from section("GPUs", _gpus(report))
    for python in dict.fromkeys(engine.python for engine in report.engines):
        found = [engine for engine in report.engines if engine.python == python]
        yield from section(_place(found[0], report), _engines(found))
    yield from section("Embedded models", _models(report))
    yield from section("Terminal", _terminal(report))


def _node(report: DoctorReport) -> Iterator[tuple[str, str]]:
    host = report.environment.host
    yield "host", f"{host.hostname}, {host.platform}"
    yield "python", f"{host.python}, pip: {'yes' if report.pip else 'no'}"
    yield "cpu", f"{host.cpu or 'unknown'}, {host.cores or 'unknown'} cores usable"
    yield "memory", size(host.memory_bytes) if host.memory_bytes is not None else "unknown"
    if host.container or report.memory_limit_bytes is not None or report.cpu_quota is not None:
        yield "limits", _limits(report)


def _limits(report: DoctorReport) -> str:
    quota = f"{report.cpu_quota:g} CPUs" if report.cpu_quota is not None else "no CPU limit"
    memory = size(report.memory_limit_bytes) if report.memory_limit_bytes is not None else "no memory limit"
    kind = (report.environment.host.container or "control group").partition(",")[0]
    return f"{kind}: {quota}, {memory}"


def _gpus(report: DoctorReport) -> Iterator[str]:
    found = report.environment
    if found.gpu_missing:
        yield found.gpu_missing
    yield from (_gpu(gpu) for gpu in found.gpus)
    if found.driver:
        yield f"driver {found.driver}, CUDA {found.cuda or 'unknown'}"
    if report.visible_devices is not None:
        yield f"CUDA_VISIBLE_DEVICES={report.visible_devices}"


def _gpu(gpu: Gpu) -> str:
    total = size(gpu.total_bytes) if gpu.total_bytes is not None else "memory unknown"
    return f"{gpu.index}  {gpu.name}  {total}  compute {gpu.compute_capability or 'unknown'}  {gpu.uuid}"


def _place(engine: EngineFound, report: DoctorReport) -> str:
    """An interpreter, and what `setup-engine` says of it."""
    made = next((made for made in report.environments if made.name == engine.environment), None)
    told = f" (setup-engine {made.name}, {size(made.bytes)}, of {made.date[:10]})" if made else ""
    return f"Engines in {engine.python}{told}"


def _engines(engines: list[EngineFound]) -> Iterator[str]:
    yield from table([(engine.engine, _state(engine), _words(engine)) for engine in engines])


def _state(engine: EngineFound) -> str:
    return "usable" if engine.usable else "found" if engine.found else "absent"


def _words(engine: EngineFound) -> str:
    told = " ".join(word for word in (engine.version, engine.program) if word)
    if engine.failure is None:
        return told
    if engine.failure.kind == "no_adapter":
        return f'{told}, no adapter yet: attach to it with engine = "openai"'.lstrip(", ")
    if engine.found:
        return engine.failure.what
    why = " ".join(engine.failure.why.split())
    return plain(f"{engine.failure.fix} ({why.rstrip('.')})" if why else engine.failure.fix)


def _models(report: DoctorReport) -> Iterator[str]:
    for model in report.models:
        state = model.path or f"not fetched yet, {size(model.wheel_bytes)} to download"
        yield f"{model.name} ({model.licence}): {state}"
    free = size(report.cache_free_bytes) if report.cache_free_bytes is not None else "unknown"
    yield f"cache {report.cache_dir}, {free} free"


def _terminal(report: DoctorReport) -> Iterator[str]:
    told = report.terminal
    yield f"TERM={told.term or '(not set)'}, colours: {told.colours}, {told.columns}×{told.lines}, {told.encoding}"
    inside = " ".join(word for word in (told.multiplexer, "ssh" if told.ssh else None) if word)
    yield f"{'interactive' if told.interactive else 'no terminal: runs headless'}{f', in {inside}' if inside else ''}"
