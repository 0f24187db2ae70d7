"""llama.cpp: its own HTTP server, out of the xllamacpp package or as a `llama-server` binary."""

import json
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from msgspec.structs import replace

from deploytui.engine.adapter import (
    LOOPBACK,
    Adapter,
    common_judgement,
    host_script,
    interpreter,
    loopback_url,
    probe_with,
)
from deploytui.engine.llamacpp_settings import Slots, binary_options, objection, parameters, slots_for
from deploytui.engine.protocol import Launch, Place, Probe, Probed
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

PROGRAM = "llama-server"
DEVICE_CALL = "xllamacpp:get_device_info"
CPU_TYPE = 0
"""What ggml calls a CPU among the device types."""

ENVIRONMENT = {"GGML_NO_BACKTRACE": "1"}
"""Without it a failed assertion starts a debugger, which hangs until it is killed."""


def binary(candidate: Candidate) -> tuple[str, ...] | None:
    """The llama-server command; None when xllamacpp serves.

    A `command` always wins. Without `command` and `python`, a `llama-server` on PATH is taken where xllamacpp is not
    installed beside deploytui; a named interpreter is never passed over.
    """
    if candidate.command:
        return candidate.command
    if candidate.python is None and find_spec("xllamacpp") is None and shutil.which(PROGRAM):
        return (PROGRAM,)
    return None


class LlamaCpp(Adapter):
    """llama.cpp with GGUF files on CPU or GPU."""

    name = "llamacpp"
    title = "llama.cpp"
    formats = frozenset({"gguf"})
    readback_paths = ("/props", "/v1/models")

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings llama.cpp has no word for, and keys that contradict each other."""
        return objection(candidate, is_binary=binary(candidate) is not None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """The version, and the devices this build can use."""
        server = binary(candidate)
        if server is None:
            return probe_with(candidate, "--dist", "xllamacpp", "--module", "xllamacpp", "--call", DEVICE_CALL)
        here = replace(candidate, python=sys.executable)
        devices = json.dumps([*server, "--list-devices"])
        return probe_with(here, "--version-of", json.dumps(server), "--output-of", devices)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Not installed, broken, of the wrong version, or without the GPU that is asked for."""
        server = binary(candidate)
        if server and not probed.found:
            return no_binary(server[0], probed)
        title, where = (PROGRAM, server[0]) if server else ("xllamacpp", interpreter(candidate))
        fix = f"Run `{where} -m pip install xllamacpp`, or name a {PROGRAM} binary with command."
        judged = common_judgement(title, where, candidate, probed, fix)
        return judged or device_failure(candidate, title, probed)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment; the API key goes by environment, which no process list shows."""
        alias = candidate.served_model or candidate.name
        server = binary(candidate)
        argv = _binary_argv(server, candidate, place, alias) if server else _package_argv(candidate, place, alias)
        return Launch(
            argv=argv, env=environment(candidate, place), base_url=loopback_url(place.port), served_model=alias
        )

    def body(self, candidate: Candidate) -> dict[str, Any]:
        """`cache_prompt` where the prefix cache is asked for or forbidden."""
        cached = candidate.settings.prefix_cache
        return {} if cached is None else {"cache_prompt": cached}

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Context per slot, slots, build and the model's own figures."""
        told = slots_told(answers.get("/props"))
        settings = {**facts.settings, **_props_told(answers.get("/props")), **_model_told(answers.get("/v1/models"))}
        kv_cache = {"slots": told.count, "tokens_per_slot": told.tokens, "tokens": told.total} if told else {}
        version = facts.version or settings.get("build")
        return replace(facts, settings=settings, kv_cache={**facts.kv_cache, **kv_cache}, version=version)


def no_binary(path: str, probed: Probed) -> Failure:
    """The failure of a command that can't be run."""
    return Failure(
        kind="not_installed",
        what=f"{path} can't be run as a {PROGRAM}.",
        why=probed.error,
        fix=f"Correct command: it starts with the path of a {PROGRAM} binary.",
    )


def device_failure(candidate: Candidate, title: str, probed: Probed) -> Failure | None:
    """The failure of a candidate that asks for CUDA with a build or node that has none; None when nobody can tell."""
    if candidate.device != "cuda" or _sees_gpu(probed) is not False:
        return None
    return Failure(
        kind="wrong_device",
        what=f'The candidate asks for device = "cuda", and this {title} sees no GPU.',
        why=_devices_shown(probed),
        fix="Name a llama-server built for CUDA with command, on a node with a GPU.",
    )


def _sees_gpu(probed: Probed) -> bool | None:
    devices = probed.detail.get("calls", {}).get(DEVICE_CALL)
    if isinstance(devices, list):
        return any(device.get("type") != CPU_TYPE for device in devices if isinstance(device, dict))
    listed = probed.detail.get("output")
    if isinstance(listed, str) and "available devices" in listed.lower():
        return "CUDA" in listed
    return None


def _devices_shown(probed: Probed) -> str:
    devices = probed.detail.get("calls", {}).get(DEVICE_CALL)
    if isinstance(devices, list):
        names = [f"{device.get('name')}: {device.get('description')}" for device in devices if isinstance(device, dict)]
        return f"Devices: {', '.join(names) or 'none'}."
    return str(probed.detail.get("output", "")).strip()


def environment(candidate: Candidate, place: Place) -> dict[str, str]:
    """The candidate's environment with the GPUs it may use and the API key."""
    env = {**ENVIRONMENT, **candidate.env}
    if place.gpu_uuids:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(place.gpu_uuids)
    if candidate.device == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    if place.api_key:
        env["LLAMA_API_KEY"] = place.api_key
    return env


def _package_argv(candidate: Candidate, place: Place, alias: str) -> tuple[str, ...]:
    settings = [*parameters(candidate, slots_for(candidate, place)), *candidate.args]
    return (
        interpreter(candidate),
        host_script("serve_xllamacpp.py"),
        *("--model", place.model_path or "", "--port", str(place.port), "--alias", alias),
        *(word for setting in settings for word in ("--set", setting)),
    )


def _binary_argv(server: tuple[str, ...], candidate: Candidate, place: Place, alias: str) -> tuple[str, ...]:
    return (
        *server,
        *("--model", place.model_path or "", "--host", LOOPBACK, "--port", str(place.port), "--alias", alias),
        *binary_options(candidate, slots_for(candidate, place)),
        *candidate.args,
    )


def slots_told(props: Any) -> Slots | None:
    """What `/props` tells of slots and their context; None when it does not."""
    match props:
        case {"default_generation_settings": {"n_ctx": int(tokens)}, "total_slots": int(count)}:
            return Slots(count=count, tokens=tokens)
        case _:
            return None


def _props_told(props: Any) -> dict[str, Any]:
    if not isinstance(props, dict):
        return {}
    told = slots_told(props)
    slots = {"max_model_len": told.tokens, "max_num_seqs": told.count} if told else {}
    build = props.get("build_info")
    # A build outside of llama.cpp's own tree has no number, and says so in this way.
    known = {"build": build} if isinstance(build, str) and not build.startswith("b0-") else {}
    return {**slots, **known}


def _model_told(models: Any) -> dict[str, Any]:
    match models:
        case {"data": [{"meta": {**meta}}, *_]}:
            return {f"model_{key}": meta[key] for key in ("n_ctx_train", "n_params", "size", "ftype") if key in meta}
        case _:
            return {}
