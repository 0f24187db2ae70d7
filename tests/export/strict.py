"""JSON as the strictest reader takes it."""

import json
from typing import Any


def strict(data: bytes) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in the JSON")

    return json.loads(data, parse_constant=refuse)
