"""The OpenAI-compatible door that all hosts of libraries share; `serve_backend.py` says how a host is written.

    GET  /health /v1/models /metrics /props /memory
    POST /v1/chat/completions /v1/completions, as a stream or whole

Loopback only; a bearer key is taken from DEPLOYTUI_API_KEY. Exit status: 1 when the port is taken or the model does
not load (the library's own words are on standard error), 2 for an option that does not fit. SIGTERM ends it at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Callable, Optional

if TYPE_CHECKING:
    from deploytui.host import serve_http as http_side
    from deploytui.host.serve_backend import MEMORY, Backend, Detokenizer, Params, Piece, RefusalError
    from deploytui.host.serve_served import Served
else:
    import serve_http as http_side
    from serve_backend import MEMORY, Backend, Detokenizer, Params, Piece, RefusalError
    from serve_served import Served

__all__ = ["MEMORY", "Backend", "Detokenizer", "OptionError", "Params", "Piece", "RefusalError", "leave_folder", "main"]

KEY = "DEPLOYTUI_API_KEY"
SWITCH_S = 0.001
"""After how long a thread that computes lets one that sends go first [s]."""


class OptionError(Exception):
    """An option that does not fit the model or this machine; the process ends with status 1 and this text."""


def leave_folder() -> None:
    """Take this file's folder from the import path: a file beside it must not stand for an installed module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all hosts have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--model", required=True, help="file or folder")
    options.add_argument("--port", required=True, type=int)
    options.add_argument("--alias", required=True, help="the name it is served under")
    options.add_argument("--max-model-len", type=positive, help="tokens of prompt and answer; default: the model's")
    options.add_argument("--max-waiting", type=positive, default=1024, help="requests in line; more get HTTP 429")
    return options


def positive(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("{} is below 1".format(value))
    return value


def main(load: Callable[[argparse.Namespace], Backend], options: argparse.ArgumentParser) -> int:
    """Bind, load, serve until a signal comes; the exit status when that did not work out."""
    said = options.parse_args()
    for name in (signal.SIGTERM, signal.SIGINT):
        # The library's threads can't be asked to stop; ending at once gives all memory back.
        signal.signal(name, signal.SIG_DFL)
    served = Served(said.alias, os.environ.get(KEY), said.max_waiting)
    try:
        door = http_side.Door(said.port, served)
    except OSError as error:
        return complain("port {}: {}".format(said.port, error))
    sys.setswitchinterval(SWITCH_S)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    try:
        backend = load(said)
        served.loaded(backend, context_of(backend, said.max_model_len))
    except OptionError as error:
        return complain(str(error))
    except Exception:  # noqa: BLE001 - its own words are what the reader needs
        traceback.print_exc()
        return 1
    print("deploytui-host: {} serves on http://{}:{}".format(said.alias, http_side.HOST, door.server_port), flush=True)  # noqa: T201
    threading.Event().wait()
    return 0


def context_of(backend: Backend, asked: Optional[int]) -> Optional[int]:
    """Tokens of the served context; OptionError when more are asked for than the model has."""
    own = backend.context_length
    if asked is not None and own is not None and asked > own:
        message = "User-specified max_model_len ({}) is greater than the derived max_model_len ({})"
        raise OptionError(message.format(asked, own))
    return asked if asked is not None else own


def complain(text: str) -> int:
    """Say it; the exit status."""
    print("deploytui-host: error: {}".format(text), file=sys.stderr, flush=True)  # noqa: T201
    return 1
