"""What most adapters share: defaults, the interpreter, probes of packages, and the words for what is missing."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deploytui.engine.failures import explain_log
from deploytui.engine.protocol import Launch, Place, Probe, Probed
from deploytui.engine.version import wrong_version
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

LOOPBACK = "127.0.0.1"


class Adapter:
    """An engine that needs nothing, takes everything and tells nothing; subclasses say what is different."""

    name = ""
    title = ""
    launches = True
    simulated = False
    formats: frozenset[str] = frozenset()
    health_path: str | None = "/health"
    readback_paths: tuple[str, ...] = ("/v1/models",)

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

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """The facts with what the running engine tells."""
        return facts

    def explain(self, log: Iterable[str]) -> Failure | None:
        """The first root cause found in a whole log; None when nothing is known of it."""
        return explain_log(log)


def interpreter(candidate: Candidate) -> str:
    """The interpreter the candidate's engine runs in: its own, else ours."""
    return str(user_path(candidate.python)) if candidate.python else sys.executable


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
    return Failure(kind="not_installed", what=f"{title} is not installed in {where}.", why=probed.error, fix=fix)


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


def no_containers(candidate: Candidate) -> Failure | None:
    """The failure of a candidate that asks for a container image: running it outside would be another candidate."""
    if candidate.container is None:
        return None
    return Failure(
        kind="no_adapter",
        what=f"Engines are not run in containers yet; the candidate asks for {candidate.container.image}.",
        fix='Start the container yourself and measure its endpoint with engine = "openai" and base_url.',
    )
