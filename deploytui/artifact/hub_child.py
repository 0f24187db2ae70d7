"""Ask a hub, or fetch from it: the one process that loads the hub's client. JSON lines out, a leash on standard input.

    python -m deploytui.artifact.hub_child ask ORG/REPO [REVISION]
    python -m deploytui.artifact.hub_child get ORG/REPO COMMIT     (the first line in: a list of paths)

It ends when its standard input closes, and leaves the cache as the client does.
"""

import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

import msgspec

from deploytui.artifact.hub_files import HubFile
from deploytui.artifact.hub_words import Fault, FaultKind, Fetched, Got, Listing

TELL_S = 0.25
"""Between two words about bytes [s]."""
UNREACHABLE = ("ConnectError", "ConnectTimeout", "ReadTimeout", "PoolTimeout", "ProxyError", "RemoteProtocolError")


def main() -> None:
    """Do what the arguments say and tell how it went."""
    say = _claimed_stdout()
    # The client's own threads must not keep a cancelled download alive.
    signal.signal(signal.SIGTERM, _ended)
    work, repo = sys.argv[1:3]
    revision = sys.argv[3] if len(sys.argv) > 3 else None
    paths = msgspec.json.decode(sys.stdin.readline(), type=list[str]) if work == "get" else []
    threading.Thread(target=_leash, daemon=True).start()
    try:
        say(_listing(repo, revision) if work == "ask" else _got(repo, revision or "", paths, say))
    except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is told in a sentence
        say(_fault(error))
    os._exit(0)


def _claimed_stdout() -> Any:
    """Standard output for our lines alone; what a library prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return lambda word: lines.write(msgspec.json.encode(word) + b"\n")


def _ended(*_: object) -> NoReturn:
    raise SystemExit(1)


def _leash() -> None:
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _listing(repo: str, revision: str | None) -> Listing:
    from huggingface_hub import HfApi, constants

    api = HfApi(library_name="deploytui")
    # Asking for the branch writes nothing to the cache: its reference moves when the files are there.
    info = api.model_info(repo, revision=revision, files_metadata=True)
    if info.sha is None:
        raise ValueError(f"the hub does not tell the commit of {repo}")
    return Listing(
        commit=info.sha,
        cache=constants.HF_HUB_CACHE,
        files=tuple(
            HubFile(path=file.rfilename, bytes=file.size, sha256=file.lfs.sha256 if file.lfs else None)
            for file in info.siblings or ()
        ),
    )


def _got(repo: str, commit: str, paths: list[str], say: Any) -> Got:
    """Fetch the files one after the other; each is there as a whole, or not."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import tqdm

    done, told = 0, 0.0

    class Counted(tqdm):
        """A progress bar that is heard, not seen."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **{**more, "disable": True})  # type: ignore[no-untyped-call, unused-ignore]

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal done, told
            done += int(n or 0)
            if time.monotonic() - told > TELL_S:
                told = time.monotonic()
                say(Fetched(bytes=done))
            return None

    for path in paths:
        hf_hub_download(repo, path, revision=commit, tqdm_class=Counted, library_name="deploytui")
    return Got(bytes=done)


def _fault(error: Exception) -> Fault:
    from huggingface_hub import errors, get_token

    token = get_token()
    said = " ".join(str(error).split())
    return Fault(kind=_kind(error, errors), why=said.replace(token, "***") if token else said, token=token is not None)


def _kind(error: Exception, errors: Any) -> FaultKind:
    """The cause; a resolution that failed for want of a network hides its reason in its own cause."""
    chain = list(_chain(error))
    if any(isinstance(one, errors.GatedRepoError) for one in chain):
        return "gated"
    if any(isinstance(one, errors.RevisionNotFoundError) for one in chain):
        return "no_revision"
    statuses = [_status(one) for one in chain]
    if 401 in statuses and any("invalid" in str(one).lower() for one in chain if _status(one) == 401):
        return "refused"
    if any(isinstance(one, errors.RepositoryNotFoundError | errors.HFValidationError) for one in chain):
        return "no_repository"
    if any(isinstance(one, errors.OfflineModeIsEnabled) for one in chain):
        return "offline"
    if 401 in statuses or 403 in statuses:
        return "refused"
    if any(isinstance(one, errors.EntryNotFoundError) and _status(one) == 404 for one in chain):
        return "no_file"
    if any(type(one).__name__ in UNREACHABLE for one in chain) or any(s is not None and s >= 500 for s in statuses):
        return "unreachable"
    return "other"


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    while error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__ or error
    return found


def _status(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


if __name__ == "__main__":
    main()
