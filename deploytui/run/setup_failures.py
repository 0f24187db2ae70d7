"""Why an environment could not be made, from what the package client said."""

import re
from collections.abc import Sequence

from msgspec import Struct

from deploytui.errors import DeployError
from deploytui.run.setup_place import Place

WHY_LENGTH = 400
AGAIN = "Run the command again: what was downloaded by then is taken from pip's cache."


class Cause(Struct, frozen=True, kw_only=True):
    """A line that decides, what it means, and what to do; `{python}` and `{log}` are filled in."""

    pattern: str
    what: str
    fix: str


CAUSES: tuple[Cause, ...] = (
    Cause(
        pattern=r"No space left on device|Errno 28|Disk quota exceeded|Errno 122",
        what="the disk is full",
        fix="Free some space, or set DEPLOYTUI_ENGINES to a folder on another disk; nothing half-made is left.",
    ),
    Cause(
        pattern=r"special placeholder package",
        what="the index has only the vendor's placeholder, whose wheel lies on the vendor's own index",
        fix="Add the vendor's index to pip's configuration (extra-index-url), or use the vendor's container image: "
        "container = {{ image = ... }}.",
    ),
    Cause(
        pattern=r"No module named '?(ensurepip|venv)|ensurepip is not available",
        what="{python} can't make environments",
        fix="Install the package that has ensurepip (python3-venv on Debian), or name another one with --python.",
    ),
    Cause(
        pattern=r"CERTIFICATE_VERIFY_FAILED|SSLError",
        what="the package index could not be trusted",
        fix="Name the certificate of your network in pip's configuration (cert).",
    ),
    Cause(
        pattern=r"(?i)name resolution|NameResolutionError|Failed to establish a new connection|NewConnectionError"
        r"|Network is unreachable|ConnectTimeoutError|ProxyError|Connection refused|No route to host",
        what="the package index can't be reached",
        fix=f"Check the network and pip's configuration (pip config list). {AGAIN}",
    ),
    Cause(
        pattern=r"Read timed out|IncompleteRead|ConnectionResetError|Connection broken",
        what="the download broke off",
        fix=AGAIN,
    ),
    Cause(pattern=r"HTTP error 40[13]|40[13] Client Error", what="the package index refused", fix="Check its login."),
    Cause(
        pattern=r"THESE PACKAGES DO NOT MATCH THE HASHES",
        what="a downloaded file is damaged",
        fix=f"Run `pip cache purge`. {AGAIN}",
    ),
    Cause(
        pattern=r"requires a different Python|is not a supported wheel on this platform|Requires-Python",
        what="there is no wheel for {python} or this platform",
        fix="Name an interpreter of another version with --python.",
    ),
    Cause(
        pattern=r"ResolutionImpossible|[Cc]onflicting dependencies",
        what="its packages ask for versions that exclude each other",
        fix="See the log {log}; a constraint in pip's configuration may be one of them.",
    ),
    Cause(
        pattern=r"No matching distribution found",
        what="the index has no version of it for {python} on this platform",
        fix="Name an interpreter of another version with --python, or check which index pip uses.",
    ),
    Cause(
        pattern=r"CMake Error|fatal error:|: error: |error: command '?\S*(gcc|g\+\+|cc|clang)",
        what="its build failed",
        fix="See the compiler's first error in {log}.",
    ),
    Cause(
        pattern=r"Failed building wheel|Failed to build|metadata-generation-failed",
        what="its build failed",
        fix="See what its build said in {log}.",
    ),
)
"""First in the list wins, whichever line comes first."""

_ERROR = re.compile(r"^\s*(ERROR|error):")


def not_made(place: Place, title: str, code: int, lines: Sequence[str], python: str) -> DeployError:
    """The error of a step that ended with a status, its decisive line in it."""
    words = {"python": python, "log": place.log}
    how = f"{title} ended with status {code}" if code >= 0 else f"{title} was ended by signal {-code}"
    for cause in CAUSES:
        if (line := _line(cause.pattern, lines)) is not None:
            what = f"{place.name} could not be set up: {cause.what.format(**words)}."
            return DeployError(what, why=line[:WHY_LENGTH], fix=cause.fix.format(**words))
    return DeployError(
        f"{place.name} could not be set up: {how}.", why=_last_error(lines), fix=f"See the whole log: {place.log}"
    )


def _line(pattern: str, lines: Sequence[str]) -> str | None:
    """The first line that tells; one that pip itself calls an error before one it only warns of."""
    hits = [line.strip() for line in lines if re.search(pattern, line)]
    return next((line for line in hits if _ERROR.match(line)), hits[0] if hits else None)


def _last_error(lines: Sequence[str]) -> str:
    told = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING: Location")]
    errors = [line for line in told if _ERROR.match(line)]
    return (errors or told or [""])[-1][:WHY_LENGTH]
