"""The normalised settings in an engine's own words, and what adapters of engines with their own server share."""

from collections.abc import Iterator

from msgspec import Struct

from deploytui.engine.adapter import host_script, interpreter, misfit
from deploytui.engine.protocol import Capabilities, Place, Probe
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Failure

PARALLEL = ("tensor_parallel", "pipeline_parallel", "data_parallel")
"""Settings that mean nothing when they are 1."""

CONTAINER_PYTHON = "python3"
"""The interpreter of an image, where the candidate names none."""


class Switch(Struct, frozen=True):
    """Words for a setting that is on or off; empty where that is what the engine does anyway."""

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


class Vocabulary(Struct, frozen=True, kw_only=True):
    """What an engine calls the normalised settings on its command line."""

    valued: dict[str, str] = {}
    """Setting → the option that its value follows."""
    switches: dict[str, Switch] = {}
    instead: dict[str, str] = {}
    """Setting it has no word for → what stands in its place."""

    @property
    def settings(self) -> frozenset[str]:
        """Names of all settings it has a word for."""
        return frozenset((*self.valued, *self.switches))

    def options(self, settings: Settings) -> tuple[str, ...]:
        """The settings that are set, as words of its command line."""
        return (*self._values(settings), *self._switched(settings))

    def _values(self, settings: Settings) -> Iterator[str]:
        for name, option in self.valued.items():
            if (value := getattr(settings, name)) is not None:
                yield from (option, f"{value:g}" if isinstance(value, float) else str(value))

    def _switched(self, settings: Settings) -> Iterator[str]:
        for name, switch in self.switches.items():
            if (value := getattr(settings, name)) is not None:
                yield from switch.on if value else switch.off


def names(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def given(settings: Settings) -> Iterator[str]:
    """Names of the settings that are set and mean something."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if value is not None and not (name in PARALLEL and value == 1):
            yield name


def objections(
    title: str, capabilities: Capabilities, candidate: Candidate, instead: dict[str, str]
) -> Iterator[Failure]:
    """Whatever in a candidate an engine with these capabilities can't take."""
    if candidate.base_url is not None:
        yield misfit("base_url belongs to an endpoint that runs already.", 'Use engine = "openai", or remove base_url.')
    if candidate.model is None:
        yield misfit("The candidate names no model.", "Set model to its folder, or to its name on the hub.")
    if candidate.device and candidate.device not in capabilities.devices:
        yield Failure(
            kind="wrong_device",
            what=f"{title} does not run on {candidate.device}.",
            fix=f"It runs on {' or '.join(sorted(capabilities.devices))}; change device, or choose another engine.",
        )
    yield from _artifact_objections(title, capabilities, candidate)
    yield from _setting_objections(title, capabilities, candidate, instead)


def _artifact_objections(title: str, capabilities: Capabilities, candidate: Candidate) -> Iterator[Failure]:
    if candidate.format and candidate.format not in capabilities.formats:
        yield Failure(
            kind="unsupported_format",
            what=f"{title} does not load {candidate.format}.",
            fix=f"It loads {', '.join(sorted(capabilities.formats))}.",
        )
    if candidate.dtype and capabilities.dtypes is not None and candidate.dtype not in capabilities.dtypes:
        yield Failure(
            kind="unsupported_dtype",
            what=f"{title} can't be told dtype = {candidate.dtype!r}.",
            fix=f"Use one of {', '.join(sorted(capabilities.dtypes))}." if capabilities.dtypes else "Remove dtype.",
        )
    known = capabilities.quantizations
    if candidate.quantization and known is not None and method(candidate.quantization, known) is None:
        yield Failure(
            kind="unsupported_quant",
            what=f"{title} knows no quantization {candidate.quantization!r}.",
            fix=f"It knows {', '.join(sorted(known))}.",
        )


def _setting_objections(
    title: str, capabilities: Capabilities, candidate: Candidate, instead: dict[str, str]
) -> Iterator[Failure]:
    for name in given(candidate.settings):
        if name not in capabilities.settings:
            why = f": {instead[name]}" if name in instead else ""
            yield Failure(
                kind="unsupported_setting",
                what=f"{title} has no word for the setting {name}{why}.",
                fix=f"Remove settings.{name}.",
            )
    asked, known = candidate.settings.kv_cache_dtype, capabilities.kv_cache_dtypes
    if asked and known is not None and asked not in (*known, "auto"):
        yield Failure(
            kind="unsupported_setting",
            what=f"{title} has no KV cache of type {asked!r}.",
            fix=f"settings.kv_cache_dtype may be {', '.join(sorted(known))}.",
        )


def method(quantization: str, known: frozenset[str]) -> str | None:
    """The method among those known that a quantisation such as `awq-4bit` names; None when it names none of them."""
    asked = quantization.lower()
    return next((name for name in (asked, asked.partition("-")[0]) if name in known), None)


def python_of(candidate: Candidate, *environments: str) -> str:
    """The interpreter the engine runs in, within its image where it has one."""
    if candidate.container is not None:
        return candidate.python or CONTAINER_PYTHON
    return interpreter(candidate, *environments)


def place_of(candidate: Candidate, python: str) -> str:
    """What to call where an engine was looked for."""
    return f"the image {candidate.container.image}" if candidate.container else python


def probe_in(candidate: Candidate, python: str, *options: str) -> Probe:
    """A probe of packages and programs in an interpreter, with the candidate's environment."""
    return Probe(argv=(python, host_script("probe.py"), *options), env=candidate.env)


def registry_probe(candidate: Candidate, python: str, engine: str, *options: str) -> Probe:
    """The same, with the model classes that the installed engine has code for."""
    script = host_script("probe_architectures.py")
    return Probe(argv=(python, script, "--registry", engine, *options), env=candidate.env)


def packages(*distributions: str, module: str) -> tuple[str, ...]:
    """Options of a probe that looks for a module in one of some distributions, the first that is there."""
    return (*(word for name in distributions for word in ("--dist", name)), "--module", module)


def model_of(candidate: Candidate, place: Place) -> str:
    """What the engine is told to load: the local model, else the name as in the profile."""
    return place.model_path or candidate.model or ""


def revision_words(candidate: Candidate, place: Place) -> tuple[str, ...]:
    """`--revision` where the engine resolves a name itself."""
    return ("--revision", candidate.revision) if candidate.revision and place.model_path is None else ()


def gpu_environment(candidate: Candidate, place: Place) -> dict[str, str]:
    """What tells CUDA which GPUs to use; none of them for a CPU candidate."""
    if candidate.device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    if not place.gpu_uuids:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(place.gpu_uuids)}


def offline(candidate: Candidate, place: Place) -> dict[str, str]:
    """Keep an engine with a local model from asking the hub; code of the model's own may come from there."""
    return {"HF_HUB_OFFLINE": "1"} if place.model_path and not candidate.trust_remote_code else {}


def folders(place: Place) -> tuple[str, ...]:
    """What a container has to be shown of this node's files: the model."""
    return (place.model_path,) if place.model_path else ()


def setup_words(environment: str, name: str) -> str:
    """How to get an engine: by our command for it, or by naming an interpreter that has it."""
    return f"Run `deploytui setup-engine {environment}`, or name an interpreter that has {name} with python."
