"""Lines of engines that could not get a model from its hub: no access, no token, no such name, no network."""

from deploytui.engine.rule import Rule, rules

_ASK = "Ask for access on the model's page with the account whose token is in HF_TOKEN."
_TOKEN = "Ask for access on the model's page, and put a token of that account in HF_TOKEN."
_NAME = "Check the path or the name."

HUB: tuple[Rule, ...] = (
    *rules(
        "gated",
        "The model is gated, and the account of the token has not been let in.",
        _ASK,
        "is not in the authorized list",
        "are not in the authorized list",
        "403 Client Error",
        "403 Forbidden",
    ),
    *rules(
        "gated",
        "The hub does not take the token.",
        "Put a valid token in HF_TOKEN, or none where the model is public.",
        "Invalid credentials in Authorization header",
        "Invalid user token",
        "Invalid username or password",
    ),
    *rules(
        "invalid_config",
        "The engine was given no model: it looks for one of the name None.",
        "Name a folder, a file or a hub id with model.",
        "None is not a local folder",
        "repository 'None'",
        "repo_id: 'None'",
        "Repository Not Found",
        pattern=r"None is not a local|'None'|/None/",
    ),
    *rules(
        "missing_file",
        "The hub has no such model, or it is private.",
        "Check the name in model; where it is private, put a token that may read it in HF_TOKEN.",
        "Repository Not Found for url",
        "RepositoryNotFoundError",
    ),
    *rules(
        "missing_file",
        "The hub's model has no such revision.",
        "Correct or remove revision.",
        "RevisionNotFoundError",
        "is not a valid git identifier",
        "Invalid rev id",
    ),
    *rules(
        "gated",
        "The model is gated, and no token of an account that was let in is at hand.",
        _TOKEN,
        "Cannot access gated repo",
        "gated repo",
        "GatedRepoError",
        "401 Client Error",
    ),
    *rules(
        "download_failed",
        "The model is not in the local cache, and the hub is switched off by HF_HUB_OFFLINE.",
        "Unset HF_HUB_OFFLINE, or fetch the model where there is a network and name its folder with model.",
        "OfflineModeIsEnabled",
        "offline mode is enabled",
        "outgoing traffic has been disabled",
        "HF_HUB_OFFLINE=1",
        pattern=r"OfflineModeIsEnabled|offline mode is enabled|outgoing traffic has been disabled|reach|cannot",
    ),
    *rules(
        "download_failed",
        "The model is not in the local cache, and the hub can't be reached.",
        "Fetch the model where there is a network and name its folder with model.",
        "LocalEntryNotFoundError",
        "We couldn't connect to",
        "cannot find the requested files in the cached path",
        "cannot find the requested files in the local cache",
        "cannot find the appropriate snapshot folder",
    ),
    *rules(
        "missing_file",
        "The hub's model has no such file.",
        "Check model and format: the repository lacks a file the engine needs.",
        "EntryNotFoundError",
        "does not appear to have a file named",
        pattern=r"EntryNotFoundError: |does not appear to have a file named",
    ),
    *rules(
        "missing_file",
        "There is no such model: neither a folder nor a name on the hub.",
        _NAME,
        "Repo id must be in the form",
        "Repo id must use alphanumeric chars",
        "is not a valid model identifier",
        "is not a local folder",
    ),
    *rules(
        "download_failed",
        "The hub can't be reached.",
        "Check the network and the proxy, or fetch the model elsewhere and name its folder with model.",
        "Max retries exceeded with url",
        "Temporary failure in name resolution",
        "Name or service not known",
        pattern=r"Error",
    ),
)
