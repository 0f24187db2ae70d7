"""What most adapters share: defaults, the interpreter, probes of packages, and the words for what is missing."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deploytui.engine.environments import chosen_interpreter
from deploytui.engine.failures import explain_log
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, PreparationPlan, Probe, Probed
from deploytui.engine.version import wrong_version
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

LOOPBACK = "127.0.0.1"
THIS_NODE = "on this node"
NOT_RUN = "can't be run: "
"""In the error of a probe whose interpreter is not there, or is none."""


class Adapter:
    """An engine that needs nothing, takes everything and tells nothing; subclasses say what is different."""

    name = ""
    title = ""
    launches = True
    simulated = False
    formats: frozenset[str] = frozenset()
    health_path: str | None = "/health"
    readback_paths: tuple[str, ...] = ("/v1/models",)
    capabilities = Capabilities()
    metrics: MetricNames | None = None
    memory_path: str | None = None

    def objection(self, candidate: Candidate) -> Failure | None:
        """What in the candidate's configuration this engine can't take."""
        return None

    def probe(self, candidate: Candidate) -> Probe | None:
        """How to find out whether it is installed; None when nothing needs to be."""
        return None

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Why the candidate is unsupported here; None when it can be launched."""
        return None

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment."""
        raise NotImplementedError(f"{self.name} has no launch")

    def body(self, candidate: Candidate) -> dict[str, Any]:
        """Fields each request needs for this engine."""
        return {}

    def preparation(self, candidate: Candidate, source_format: str | None) -> PreparationPlan | None:
        """What has to be done to a model of that format first."""
        return None

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """The facts with what the running engine tells."""
        return facts

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """The facts with what its log tells beside."""
        return facts

    def explain(self, log: Iterable[str]) -> Failure | None:
        """The first root cause found in a whole log; None when nothing is known of it."""
        return explain_log(log)


def interpreter(candidate: Candidate, *environments: str) -> str:
    """The interpreter the engine runs in: the candidate's own, else one that `setup-engine` made, else ours."""
    return chosen_interpreter(candidate, *environments)


def host_script(name: str) -> str:
    """Path of one of our scripts that run by path in any interpreter."""
    return str(Path(__file__).parent.parent / "host" / name)


def probe_with(candidate: Candidate, *options: str) -> Probe:
    """A probe in the candidate's interpreter and environment."""
    return Probe(argv=(interpreter(candidate), host_script("probe.py"), *options), env=candidate.env)


def loopback_url(port: int) -> str:
    """Where an engine of ours listens."""
    return f"http://{LOOPBACK}:{port}"


def not_here(title: str, where: str, probed: Probed, fix: str) -> Failure:
    """The failure of an engine that was not found."""
    if NOT_RUN in probed.error:
        what = f"The interpreter {where}, where {title} is looked for, can't be run."
        return Failure(kind="not_installed", what=what, why=probed.error, fix="Correct python, or leave it out.")
    place = where if where == THIS_NODE else f"in {where}"
    return Failure(kind="not_installed", what=f"{title} is not installed {place}.", why=probed.error, fix=fix)


def broken_here(title: str, where: str, probed: Probed) -> Failure:
    """The failure of an engine that was found and can't be used."""
    return Failure(
        kind="broken_install",
        what=f"{title} is installed in {where}, but can't be used.",
        why=probed.error,
        fix="Install it again in an environment of its own, and name its interpreter with python.",
    )


def common_judgement(title: str, where: str, candidate: Candidate, probed: Probed, fix: str) -> Failure | None:
    """Not installed, broken, or of another version than the lock asks for; None when it is there as asked."""
    if not probed.found:
        return not_here(title, where, probed, fix)
    if probed.error:
        return broken_here(title, where, probed)
    return wrong_version(title, candidate.engine_version, probed.version)


def misfit(what: str, fix: str) -> Failure:
    """A configuration that makes no sense for its engine."""
    return Failure(kind="invalid_config", what=what, fix=fix)
