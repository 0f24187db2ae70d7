"""Why a hub gave nothing: each cause with a remedy of its own."""

from deploytui.artifact.hub_words import Fault
from deploytui.record.facts import Failure


def fault_failure(repo: str, revision: str | None, fault: Fault) -> Failure:
    """The failure that a fault means for a repository."""
    accept = f"Ask for access on the hub's page of {repo}"
    match fault.kind:
        case "gated" if fault.token:
            what = f"{repo} is gated, and the account of the token has no access to it."
            return Failure(kind="gated", what=what, why=fault.why, fix=f"{accept} with that account.")
        case "gated":
            what = f"{repo} is gated, and there is no token."
            return Failure(kind="gated", what=what, why=fault.why, fix=f"{accept}, then set HF_TOKEN.")
        case "refused":
            what = f"The hub does not take the token for {repo}."
            fix = "Make a new token that may read repositories, and set HF_TOKEN."
            return Failure(kind="gated", what=what, why=fault.why, fix=fix)
        case "no_repository":
            what = f"There is no model {repo!r} on the hub that this account can see, and no such path."
            private = "" if fault.token else ", or set HF_TOKEN if it is private"
            return Failure(kind="invalid_config", what=what, why=fault.why, fix=f"Correct model{private}.")
        case "no_revision":
            what = f"{repo} has no revision {revision!r}."
            fix = "Correct revision: a branch, a tag or a commit that is still there."
            return Failure(kind="invalid_config", what=what, why=fault.why, fix=fix)
        case "no_file":
            what = f"A file of {repo} is not there at the commit that was asked for."
            return Failure(kind="missing_file", what=what, why=fault.why, fix="Try again, or choose another revision.")
        case "offline":
            what = f"{repo} is not in the cache, and HF_HUB_OFFLINE forbids to fetch it."
            fix = "Unset HF_HUB_OFFLINE, fetch it elsewhere into HF_HOME, or give a path as model."
            return Failure(kind="download_failed", what=what, why=fault.why, fix=fix)
        case "unreachable":
            what = f"{repo} is not in the cache, and the hub can't be reached."
            fix = "Check network, proxy and HF_ENDPOINT, or give a path as model."
            return Failure(kind="download_failed", what=what, why=fault.why, fix=fix)
        case _:
            what = f"{repo} could not be fetched."
            return Failure(kind="download_failed", what=what, why=fault.why, fix="Try again; see what the hub says.")
