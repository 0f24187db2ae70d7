"""Which engines can load a model, as far as its files tell; whether they are installed is another question."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from deploytui.artifact.facts import ModelFacts
from deploytui.check.support import load_failure
from deploytui.engine.protocol import Engine, Probed
from deploytui.engine.registry import engine_names, load_engine
from deploytui.errors import ProfileError
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure


class Loader(Struct, frozen=True, kw_only=True):
    """One engine, and whether it can load the model."""

    engine: str
    title: str
    failure: Failure | None = None
    """Why it can't; None when it may."""
    preparation: str | None = None
    """What has to be done to the model first, such as `onnx int4`; None when nothing has, or nothing helps."""


def who_can_load(facts: ModelFacts, probed: Probed | None = None) -> tuple[Loader, ...]:
    """All engines that read files. `probed` is what an installed ONNX Runtime told of its operators."""
    return tuple(_loaders(facts, probed))


def _loaders(facts: ModelFacts, probed: Probed | None) -> Iterator[Loader]:
    for name in engine_names():
        try:
            engine = load_engine(name)
        except ProfileError as error:
            failure = Failure(kind="broken_install", what=error.what, why=error.why, fix=error.fix)
            yield Loader(engine=name, title=name, failure=failure)
            continue
        if engine.launches and not engine.simulated and engine.formats:
            yield _loader(engine, facts, probed if "onnx" in engine.formats else None)


def _loader(engine: Engine, facts: ModelFacts, probed: Probed | None) -> Loader:
    candidate = Candidate(name="inspect", engine=engine.name, model=Path(facts.path).name)
    failure = load_failure(engine, candidate, facts, probed)
    plan = engine.preparation(candidate, facts.format) if failure is None else None
    return Loader(
        engine=engine.name, title=engine.title, failure=failure, preparation=plan.name if plan is not None else None
    )
