"""A host of our shared door whose engine is a few lines: it says what its prompt tells it to, a byte a token.

`say TEXT` ends by itself, `loop TEXT` never does, `str TEXT` gives text, not bytes, `boom N` fails after N tokens.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deploytui.host import serve_openai as door
else:
    sys.path.insert(0, os.environ["DEPLOYTUI_HOST_FOLDER"])
    import serve_openai as door

    door.leave_folder()

END = 256


class Toy(door.Backend):
    name = "toy"
    eos = frozenset({END})
    context_length = 200
    sampling = frozenset({"temperature", "top_p", "seed"})

    def __init__(self, options: argparse.Namespace) -> None:
        while options.load_when and not Path(options.load_when).exists():
            time.sleep(0.01)
        if options.fail:
            raise OSError(options.fail)
        if options.refuse:
            raise door.OptionError(options.refuse)
        self.slots, self.pace_s, self.closed = options.slots, options.pace_s, options.closed

    def versions(self) -> dict[str, str]:
        return {"toy": "1.2", "abacus": "0.1"}

    def props(self) -> dict[str, object]:
        return {"dtype": "none", "path": [entry for entry in sys.path if entry.endswith("/host")]}

    def memory(self) -> dict[str, object]:
        return {"allocated_bytes": 7, "gpus": []}

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_chat(self, messages: list[dict[str, str]]) -> list[int]:
        if messages[0]["role"] == "robot":
            raise door.RefusalError(400, "the chat template refuses the messages: robot")
        return self.encode(messages[-1]["content"])

    def generate(
        self, ids: list[int], params: door.Params, cancelled: Callable[[], bool]
    ) -> Generator[door.Piece, None, None]:
        word, _, rest = bytes(ids).decode().partition(" ")
        try:
            if word == "str":
                yield from self.texts(rest.encode(), params)
            else:
                yield from self.raw(word, rest, params)
        finally:
            if self.closed:
                with Path(self.closed).open("a", encoding="utf-8") as file:
                    file.write(f"{rest}\n")

    def raw(self, word: str, rest: str, params: door.Params) -> Generator[door.Piece, None, None]:
        if word == "boom":
            yield from ((120, b"x") for _ in range(int(rest)))
            raise ValueError("the abacus broke")
        while True:
            for byte in rest.encode():
                time.sleep(self.pace_s)
                yield byte, bytes((byte,))
            if word != "loop" and not params.ignore_eos:
                yield END, b""
                return

    def texts(self, data: bytes, params: door.Params) -> Generator[door.Piece, None, None]:
        text = door.Detokenizer(lambda ids: bytes(ids).decode("utf-8", "replace"))
        for byte in data[: params.max_tokens]:
            yield byte, text.piece(byte)
        yield None, text.rest()


def parser() -> argparse.ArgumentParser:
    options = door.parser("A toy.")
    options.add_argument("--slots", type=int, default=1)
    options.add_argument("--pace-s", type=float, default=0.0)
    for name in ("--load-when", "--fail", "--refuse", "--closed"):
        options.add_argument(name)
    return options


if __name__ == "__main__":
    sys.exit(door.main(Toy, parser()))
