"""What an ONNX file says of its graph: operators, opsets, weights and where they lie. Tensor data is never read."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from deploytui.artifact.protobuf import Field, ProtobufError, Walk
from deploytui.artifact.reading import check_content, damaged, opened

STANDARD = "ai.onnx"
"""The name of the domain that files leave empty."""

DEEPEST_GRAPH = 16

# Numbers of the fields in onnx.proto.
MODEL_GRAPH, MODEL_OPSET, MODEL_FUNCTION = 7, 8, 25
GRAPH_NODE, GRAPH_INITIALIZER = 1, 5
NODE_INPUT, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 4, 5, 7
ATTRIBUTE_NAME, ATTRIBUTE_INT, ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 1, 3, 6, 11
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_EXTERNAL = 1, 2, 8, 13
FUNCTION_NAME, FUNCTION_NODE, FUNCTION_DOMAIN = 1, 7, 10

TYPES: dict[int, tuple[str, int]] = {
    1: ("float32", 32),
    2: ("uint8", 8),
    3: ("int8", 8),
    4: ("uint16", 16),
    5: ("int16", 16),
    6: ("int32", 32),
    7: ("int64", 64),
    9: ("bool", 8),
    10: ("float16", 16),
    11: ("float64", 64),
    12: ("uint32", 32),
    13: ("uint64", 64),
    16: ("bfloat16", 16),
    17: ("float8e4m3fn", 8),
    18: ("float8e4m3fnuz", 8),
    19: ("float8e5m2", 8),
    20: ("float8e5m2fnuz", 8),
    21: ("uint4", 4),
    22: ("int4", 4),
    23: ("float4e2m1", 4),
}
"""Element types → name and bits."""


class External(Struct, frozen=True):
    """Where a tensor's data lies outside of the file; `length` None where it goes on to the end."""

    location: str
    offset: int = 0
    length: int | None = None


class OnnxTensor(Struct, frozen=True):
    """One weight."""

    name: str
    kind: int
    elements: int
    external: External | None = None

    @property
    def bytes(self) -> int:
        """What its elements take."""
        return -(-self.elements * TYPES.get(self.kind, ("", 0))[1] // 8)


class Graph(Struct):
    """What was found, filled as the file is walked."""

    opset: dict[str, int] = {}
    operators: dict[str, set[str]] = {}
    functions: set[tuple[str, str]] = set()
    tensors: dict[str, OnnxTensor] = {}
    uses: dict[str, set[str]] = {}
    """Weight → the operators that take it."""
    packed: dict[str, tuple[int, int]] = {}
    """Packed weight → its parameters and the bits of each."""
    inputs: dict[str, tuple[str, ...]] = {}
    """Packed weight → all inputs of its operator: its scales among them."""


class _Node(Struct):
    op: str = ""
    domain: str = ""
    inputs: list[str] = []
    numbers: dict[str, int] = {}


def read_graph(path: Path) -> Graph:
    """The graph in a file; FaultError when it is no ONNX file."""
    with opened(path) as (file, size):
        check_content(path, file.read(512), size)
        walk, graph = Walk(file, size), Graph()
        try:
            _model(walk, size, graph)
        except ProtobufError as error:
            raise damaged(path, str(error)) from error
    if not graph.opset:
        raise damaged(path, "it imports no operator set, as every ONNX file does")
    return graph


def _model(walk: Walk, size: int, graph: Graph) -> None:
    for field in walk.fields(0, size):
        if field.start < 0:
            continue
        if field.number == MODEL_GRAPH:
            _graph(walk, field, graph, 0)
        elif field.number == MODEL_OPSET:
            domain, version = _opset(walk, field)
            graph.opset[domain] = version
        elif field.number == MODEL_FUNCTION:
            _function(walk, field, graph)


def _opset(walk: Walk, field: Field) -> tuple[str, int]:
    domain, version = STANDARD, 0
    for part in walk.fields(field.start, field.end):
        if part.number == 1 and part.start >= 0:
            domain = walk.text(part) or STANDARD
        elif part.number == 2:
            version = part.value
    return domain, version


def _graph(walk: Walk, field: Field, graph: Graph, depth: int) -> None:
    if depth > DEEPEST_GRAPH:
        raise ProtobufError("its graphs are nested too deeply")
    for part in walk.fields(field.start, field.end):
        if part.start < 0:
            continue
        if part.number == GRAPH_NODE:
            _node(walk, part, graph, depth)
        elif part.number == GRAPH_INITIALIZER:
            tensor = _tensor(walk, part)
            graph.tensors[tensor.name] = tensor


def _function(walk: Walk, field: Field, graph: Graph) -> None:
    name, domain = "", ""
    for part in walk.fields(field.start, field.end):
        if part.start < 0:
            continue
        if part.number == FUNCTION_NAME:
            name = walk.text(part)
        elif part.number == FUNCTION_DOMAIN:
            domain = walk.text(part)
        elif part.number == FUNCTION_NODE:
            _node(walk, part, graph, 0)
    graph.functions.add((domain or STANDARD, name))


def _node(walk: Walk, field: Field, graph: Graph, depth: int) -> None:
    node = _Node()
    for part in walk.fields(field.start, field.end):
        if part.start < 0:
            continue
        if part.number == NODE_OP:
            node.op = walk.text(part)
        elif part.number == NODE_DOMAIN:
            node.domain = walk.text(part)
        elif part.number == NODE_INPUT:
            node.inputs.append(walk.text(part))
        elif part.number == NODE_ATTRIBUTE:
            _attribute(walk, part, graph, node, depth)
    graph.operators.setdefault(node.domain or STANDARD, set()).add(node.op)
    for name in node.inputs:
        graph.uses.setdefault(name, set()).add(node.op)
    _note_packed(graph, node)


def _note_packed(graph: Graph, node: _Node) -> None:
    if len(node.inputs) < 2 or ("bits" not in node.numbers and node.op != "MatMulNBits"):
        return
    bits = node.numbers.get("bits", 4)
    if node.op == "MatMulNBits":
        count = node.numbers.get("K", 0) * node.numbers.get("N", 0)
        graph.packed[node.inputs[1]] = (count, bits)
        graph.inputs[node.inputs[1]] = tuple(node.inputs)
    elif node.op == "GatherBlockQuantized":
        graph.packed[node.inputs[0]] = (0, bits)
        graph.inputs[node.inputs[0]] = tuple(node.inputs)


def _attribute(walk: Walk, field: Field, graph: Graph, node: _Node, depth: int) -> None:
    name = ""
    for part in walk.fields(field.start, field.end):
        if part.number == ATTRIBUTE_NAME and part.start >= 0:
            name = walk.text(part)
        elif part.number == ATTRIBUTE_INT and part.start < 0:
            node.numbers[name] = part.value
        elif part.number in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS) and part.start >= 0:
            _graph(walk, part, graph, depth + 1)


def _tensor(walk: Walk, field: Field) -> OnnxTensor:
    name, kind, elements, entries = "", 0, 1, dict[str, str]()
    for part in walk.fields(field.start, field.end):
        if part.number == TENSOR_DIMS:
            for size in walk.numbers(part):
                elements *= size
        elif part.number == TENSOR_TYPE:
            kind = part.value
        elif part.number == TENSOR_NAME and part.start >= 0:
            name = walk.text(part)
        elif part.number == TENSOR_EXTERNAL and part.start >= 0:
            entries.update(_entry(walk, part))
    return OnnxTensor(name, kind, elements, _external(entries))


def _entry(walk: Walk, field: Field) -> Iterator[tuple[str, str]]:
    parts = {p.number: walk.text(p) for p in walk.fields(field.start, field.end) if p.start >= 0}
    yield parts.get(1, ""), parts.get(2, "")


def _external(entries: dict[str, str]) -> External | None:
    if not entries.get("location"):
        return None
    length = entries.get("length", "")
    return External(entries["location"], _whole(entries.get("offset", "")) or 0, _whole(length))


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def mix_of(graph: Graph) -> Counter[str]:
    """Bytes by element type."""
    mix = Counter[str]()
    for tensor in graph.tensors.values():
        mix[TYPES.get(tensor.kind, (f"type {tensor.kind}", 0))[0]] += tensor.bytes
    return mix
