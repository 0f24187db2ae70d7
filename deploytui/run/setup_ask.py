"""What lies in an environment, asked of its own interpreter."""

import anyio
import msgspec
from msgspec import Struct

from deploytui.errors import DeployError
from deploytui.run.setup_place import Place

TIMEOUT_S = 120.0
_ASK = """
import importlib.metadata as metadata, importlib.util as util, json, os, platform, re, sys
versions, requires = {}, {}
for name in sys.argv[1:]:
    try:
        versions[name] = metadata.version(name)
        requires[name] = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        versions[name] = None
spec = util.find_spec("torch")
try:
    with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:
        cuda = re.search(r"^cuda\\b.*= *'([\\d.]+)'", file.read(), re.MULTILINE)
except (OSError, AttributeError):
    cuda = None
answer = {"python": platform.python_version(), "versions": versions, "requires": requires}
print(json.dumps({**answer, "torch_cuda": cuda and cuda.group(1)}))
"""


class Installed(Struct, frozen=True, kw_only=True):
    """The interpreter's version, and of each distribution the version (None: not there) and what it asks for."""

    python: str
    versions: dict[str, str | None] = {}
    requires: dict[str, tuple[str, ...]] = {}
    torch_cuda: str | None = None
    """The CUDA that its torch was built for; None for a torch without, or none at all."""

    def version(self, name: str) -> str | None:
        """Of a distribution; None when it is not there."""
        return self.versions.get(name)


async def ask(place: Place, *distributions: str) -> Installed:
    """What the environment's interpreter says of these; DeployError when it can't be asked."""
    try:
        with anyio.fail_after(TIMEOUT_S):
            done = await anyio.run_process((str(place.python), "-I", "-c", _ASK, *distributions), check=False)
        return msgspec.json.decode(done.stdout, type=Installed)
    except (OSError, TimeoutError, msgspec.DecodeError) as error:
        raise DeployError(
            f"{place.python} can't be asked what is installed in it.", why=str(error), fix=f"See the log: {place.log}"
        ) from error
