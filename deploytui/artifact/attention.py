"""Which layers of a known kind of model slide, where its files leave that to the engine's code."""

FULL_EVERY: dict[str, int] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "gemma3n": 5,
    "gemma3n_text": 5,
    "cohere2": 4,
    "gpt_oss": 2,
    "gpt-oss": 2,
}
"""Model type → every how many layers one sees everything; the others slide."""

ALL_SLIDE = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})
"""Kinds whose every layer slides when there is a window."""


def sliding_layers(kind: str | None, layers: int | None, every: int | None = None) -> int | None:
    """How many of the layers of a model with a window slide; None where nobody tells."""
    if layers is None or kind is None:
        return None
    if kind in ALL_SLIDE:
        return layers
    every = every or FULL_EVERY.get(kind)
    return layers - layers // every if every else None
