"""Random numbers that are the same in every Python: each place of a session has a stream of its own. Pure."""

import hashlib
import random


def stream(tag: str, seed: int, *place: str | int) -> random.Random:
    """Random numbers of a place; use its `random()` alone, all that is promised to stay the same in later Pythons."""
    key = "/".join(str(step) for step in (tag, seed, *place))
    return random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big"))
