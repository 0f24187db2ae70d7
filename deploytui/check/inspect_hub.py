"""What is to be known of a model on a hub, or in the cache of its client."""

import anyio

from deploytui.artifact.embedded import default_cache_dir
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.hub_files import hub_model
from deploytui.artifact.remote import remote_facts


def hub_facts(what: str) -> ModelFacts | None:
    """The facts of `ORG/REPO`, `ORG/REPO:FILE` or either with `@REVISION` behind; None when the text is none of them.

    What the hub does not have, or does not tell, is a fault.
    """
    name, _, revision = what.partition("@")
    model = hub_model(name)
    return anyio.run(remote_facts, model, revision or None, default_cache_dir()) if model is not None else None
