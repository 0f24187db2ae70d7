"""Serve one GGUF file over HTTP with llama.cpp's own server out of the xllamacpp package; run by path.

    python serve_xllamacpp.py --model FILE --port 8080 --alias NAME --set n_ctx=2048 --set cpuparams.n_threads=2

Each `--set` names an attribute of xllamacpp's CommonParams. An API key is taken from LLAMA_API_KEY. Exit status: 0
after SIGTERM, 1 when the model or the port did not work out (llama.cpp's own words are on standard error), 2 for a
parameter that does not exist or a value that does not fit.
"""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
from typing import Any

HOST = "127.0.0.1"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class ParameterError(Exception):
    """A `--set` that can't be followed."""


def converted(name: str, current: Any, text: str) -> Any:
    """`text` as a value of the type that the parameter has now."""
    kind = type(current)
    try:
        if kind is bool:
            return truth(text)
        if hasattr(kind, "__members__"):
            return member(kind, text)
        if kind is set:
            return set(text.split(","))
        if kind is list:
            return [type(current[0])(part) if current else part for part in text.split(",")]
        if kind in (int, float, str):
            return kind(text)
    except ValueError:
        pass
    else:
        raise ParameterError("parameter {} can't be set from text".format(name))
    raise ParameterError("bad value {!r} for parameter {}: it is of type {}".format(text, name, kind.__name__))


def truth(text: str) -> bool:
    """A yes or no."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise ValueError(text)


def member(kind: Any, text: str) -> Any:
    """A member of an enum by what tells its name from the others, such as `q8_0` for GGML_TYPE_Q8_0, or by number."""
    shared = len(os.path.commonprefix(list(kind.__members__)))
    for name, value in kind.__members__.items():
        if text.lower() in (name.lower(), name[shared:].lower()):
            return value
    return kind(int(text))


def put(params: Any, name: str, text: str) -> None:
    """Set one parameter; the name may have a dot, as in `cpuparams.n_threads`."""
    owner, leaf = params, name
    while "." in leaf:
        first, leaf = leaf.split(".", 1)
        owner = attribute(owner, first, name)
    setattr(owner, leaf, converted(name, attribute(owner, leaf, name), text))


def attribute(owner: Any, leaf: str, name: str) -> Any:
    """The present value of a parameter; ParameterError with the nearest name when there is none."""
    known = [entry for entry in dir(owner) if not entry.startswith("_")]
    if leaf in known:
        return getattr(owner, leaf)
    near = difflib.get_close_matches(leaf, known, n=1, cutoff=0.5)
    raise ParameterError("unknown parameter {!r} of CommonParams{}".format(name, nearest(near)))


def nearest(near: list[str]) -> str:
    """A hint, where there is one."""
    return "; the nearest is {!r}".format(near[0]) if near else ""


def filled(params: Any, options: argparse.Namespace) -> Any:
    """Put our options and the user's settings into `params`."""
    params.model.path = options.model
    params.port = options.port
    put(params, "hostnames" if hasattr(params, "hostnames") else "hostname", HOST)
    params.model_alias = {options.alias} if isinstance(params.model_alias, set) else options.alias
    params.endpoint_metrics = params.endpoint_slots = True
    for setting in options.set:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError("argument {!r} is not of the form NAME=VALUE".format(setting))
        put(params, name.strip(), text.strip())
    key = os.environ.get("LLAMA_API_KEY")
    if key:
        params.api_keys = [key]
    return params


def parsed(argv: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Serve a GGUF file with llama.cpp.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(argv)


def complain(text: object, status: int) -> int:
    """Say it and give the exit status."""
    print("serve_xllamacpp: error: {}".format(text), file=sys.stderr, flush=True)  # noqa: T201
    return status


def main() -> int:
    """Serve until SIGTERM; while it loads, SIGTERM ends it at once."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    options = parsed(sys.argv[1:])
    import xllamacpp

    try:
        params = filled(xllamacpp.CommonParams(), options)
    except ParameterError as error:
        return complain(error, 2)
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        return complain(error, 1)
    print("serve_xllamacpp: listening on {}".format(server.listening_address), flush=True)  # noqa: T201
    # The server's threads are llama.cpp's own; leaving at once gives its memory back without waiting for them.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
