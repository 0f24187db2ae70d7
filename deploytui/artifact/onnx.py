"""An ONNX model: its graphs, the files with their weights, and what ONNX Runtime GenAI is told of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploytui.artifact.config import number
from deploytui.artifact.facts import Attention, ModelFacts, OnnxFacts
from deploytui.artifact.onnx_graph import STANDARD, TYPES, Graph, mix_of, read_graph
from deploytui.artifact.reading import FETCH_AGAIN, FaultError, absent, inside, read_json
from deploytui.artifact.weights import by_size, file_size, size_of
from deploytui.record.facts import Failure

Json = Mapping[str, Any]

GENAI = "genai_config.json"
PARTS = ("decoder", "encoder", "embedding", "vision", "speech")
CACHES = frozenset({"RotaryEmbedding", "GroupQueryAttention", "MultiHeadAttention"})
"""Operators whose constant inputs are tables of sines and cosines, not parameters."""

FLOATS = frozenset({"float32", "float16", "bfloat16", "float64"})


def read_onnx(path: Path) -> ModelFacts:
    """The model in a folder, or in one file."""
    folder = path if path.is_dir() else path.parent
    faults: list[Failure] = []
    genai = _genai(folder, faults)
    names = [path.name] if path != folder else _graph_names(folder, genai)
    graphs = list(_graphs(folder, names, faults))
    used = _files(folder, names, graphs)
    for graph in graphs:
        faults += external_faults(folder, graph)
    mix = sum((mix_of(graph) for graph in graphs), Counter[str]())
    model, decoder = _part(genai, "model"), _part(_part(genai, "model"), "decoder")
    return ModelFacts(
        path=str(path),
        format="onnx",
        model_type=model.get("type") if isinstance(model.get("type"), str) else None,
        parameters=_parameters(graphs) if not faults else None,
        bytes=size_of(used) or None,
        dtype=next((name for name in by_size(mix) if name in FLOATS), None) if not _bits(graphs) else None,
        quantization=_quantization(graphs),
        mix=by_size(mix),
        context_length=number(model, "context_length"),
        attention=_attention(decoder),
        vocabulary=number(model, "vocab_size"),
        onnx=_onnx_facts(graphs, genai, decoder),
        faults=tuple(faults),
    )


def missing_operators(onnx: OnnxFacts, runtime: Mapping[str, Any]) -> tuple[str, ...]:
    """Operators and operator sets that a runtime lacks, such as `com.microsoft:NewOp` or `ai.onnx opset 29 (has 28)`.

    `runtime` is the answer of `host/probe_onnx.py`: `opset` by domain, and `operators` by domain, name → the first
    operator set that has it. Empty when the runtime told nothing.
    """
    opset, operators = _part(runtime, "opset"), _part(runtime, "operators")
    if not operators:
        return ()
    return tuple(_missing(onnx, opset, operators))


def _missing(onnx: OnnxFacts, opset: Json, operators: Json) -> Iterator[str]:
    for domain, version in sorted(onnx.opset.items()):
        has = opset.get(domain)
        if domain == STANDARD and isinstance(has, int) and version > has:
            yield f"{domain} opset {version} (has {has})"
    for domain, names in sorted(onnx.operators.items()):
        known = _part(operators, domain)
        for name in names:
            since = known.get(name)
            if not isinstance(since, int) or since > onnx.opset.get(domain, since):
                yield f"{domain}:{name}"


def _genai(folder: Path, faults: list[Failure]) -> Json:
    if file_size(folder / GENAI) is None:
        return {}
    try:
        return read_json(folder / GENAI)
    except FaultError as error:
        faults.append(error.failure)
        return {}


def _part(config: Json, name: str) -> Json:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _graph_names(folder: Path, genai: Json) -> list[str]:
    """The files genai_config.json names, else all graphs there."""
    named = dict.fromkeys(_named(_part(genai, "model")))
    return list(named) or sorted(path.name for path in folder.glob("*.onnx"))


def _named(model: Json) -> Iterator[str]:
    for part in PARTS:
        settings = _part(model, part)
        stages = settings.get("pipeline")
        rows = stages if isinstance(stages, list) else []
        members = [stage for row in rows if isinstance(row, dict) for stage in row.values()]
        for member in (settings, *members):
            name = member.get("filename") if isinstance(member, dict) else None
            if isinstance(name, str) and name:
                yield name


def _graphs(folder: Path, names: list[str], faults: list[Failure]) -> Iterator[Graph]:
    for name in names:
        try:
            yield read_graph(inside(folder, name))
        except FaultError as error:
            faults.append(error.failure)
    if not names:
        faults.append(absent(folder / "model.onnx").failure)


def _files(folder: Path, names: list[str], graphs: list[Graph]) -> set[Path]:
    used = {folder / name for name in names}
    for graph in graphs:
        for tensor in graph.tensors.values():
            if tensor.external is not None:
                try:
                    used.add(inside(folder, tensor.external.location))
                except FaultError:
                    continue
    return used


def external_faults(folder: Path, graph: Graph) -> Iterator[Failure]:
    """Data files that are not there, lie elsewhere, or are shorter than the graph says."""
    ends: dict[str, int] = {}
    for tensor in graph.tensors.values():
        place = tensor.external
        if place is not None:
            length = tensor.bytes if place.length is None else place.length
            ends[place.location] = max(ends.get(place.location, 0), place.offset + length)
    for location, end in ends.items():
        try:
            path = inside(folder, location)
        except FaultError as error:
            yield error.failure
            continue
        size = file_size(path)
        if size is None:
            yield absent(path).failure
        elif size < end:
            what = f"{location} is cut off: it has {size} bytes, and the graph's weights end at {end}."
            yield Failure(kind="corrupt", what=what, fix=FETCH_AGAIN)


def _bits(graphs: list[Graph]) -> set[int]:
    return {bits for graph in graphs for _, bits in graph.packed.values()}


def _quantization(graphs: list[Graph]) -> str | None:
    """Such as `int4`, of the narrowest packed weights; None where there are none."""
    bits = _bits(graphs)
    if bits:
        return f"int{min(bits)}"
    operators = {name for graph in graphs for names in graph.operators.values() for name in names}
    return "int8" if operators & {"MatMulInteger", "QLinearMatMul", "MatMulIntegerToFloat"} else None


def _parameters(graphs: list[Graph]) -> int | None:
    if not graphs or any("MatMulInteger" in names for graph in graphs for names in graph.operators.values()):
        return None
    return sum(_graph_parameters(graph) for graph in graphs) or None


def _graph_parameters(graph: Graph) -> int:
    beside = {name for inputs in graph.inputs.values() for name in inputs} - graph.packed.keys()
    total = 0
    for name, tensor in graph.tensors.items():
        kind, bits = TYPES.get(tensor.kind, ("", 0))
        if name in graph.packed:
            count, narrow = graph.packed[name]
            total += count or tensor.elements * bits // narrow
        elif (
            name not in beside and kind in FLOATS and tensor.elements > 1 and not graph.uses.get(name, set()) <= CACHES
        ):
            total += tensor.elements
    return total


def _attention(decoder: Json) -> Attention:
    heads = number(decoder, "num_attention_heads")
    return Attention(
        layers=number(decoder, "num_hidden_layers"),
        heads=heads,
        kv_heads=number(decoder, "num_key_value_heads") or heads,
        head_dim=number(decoder, "head_size"),
        hidden_size=number(decoder, "hidden_size"),
        sliding_window=number(_part(decoder, "sliding_window"), "window_size"),
    )


def _onnx_facts(graphs: list[Graph], genai: Json, decoder: Json) -> OnnxFacts:
    opset: dict[str, int] = {}
    operators: dict[str, set[str]] = {}
    for graph in graphs:
        for domain, version in graph.opset.items():
            opset[domain] = max(version, opset.get(domain, 0))
        for domain, names in graph.operators.items():
            own = {name for where, name in graph.functions if where == domain}
            operators.setdefault(domain, set()).update(names - own)
    return OnnxFacts(
        opset=opset,
        operators={domain: tuple(sorted(names)) for domain, names in sorted(operators.items()) if names},
        providers=tuple(_providers(decoder)),
        genai=bool(genai),
    )


def _providers(decoder: Json) -> Iterator[str]:
    options = _part(decoder, "session_options").get("provider_options")
    for row in options if isinstance(options, list) else ():
        if isinstance(row, dict):
            yield from (name for name in row if isinstance(name, str))
