"""What a candidate was, in a result: engine, model, artifact, runtime, and what came before its launch."""

from typing import Any

from msgspec import Struct

from deploytui.profile.schema import Candidate
from deploytui.record.state import CandidateState


def every_field(value: Any) -> Any:
    """A struct's fields, defaults too and all the way down: a reader of a result should not need to know them."""
    if isinstance(value, tuple):
        return [every_field(part) for part in value]
    if not isinstance(value, Struct):
        return value
    tag = value.__struct_config__.tag
    kind = {} if tag is None else {str(value.__struct_config__.tag_field): tag}
    return kind | {name: every_field(getattr(value, name)) for name in value.__struct_fields__}


def engine_facts(asked: Candidate | None, row: CandidateState) -> dict[str, Any]:
    """The engine and its version, found and asked for."""
    return {
        "name": row.engine.name if row.engine else row.engine_name,
        "version": row.engine.version if row.engine else None,
        "asked_version": asked.engine_version if asked else None,
    }


def model_facts(asked: Candidate | None, row: CandidateState) -> dict[str, Any]:
    """The model as it was asked for, and as it was found."""
    found = row.artifact
    return {
        "asked": asked.model if asked else None,
        "asked_revision": asked.revision if asked else None,
        "revision": found.revision if found else None,
        "architecture": found.architecture if found else None,
        "context_length": found.context_length if found else None,
        "served_model": row.engine.served_model if row.engine else None,
    }


def artifact_facts(row: CandidateState) -> dict[str, Any]:
    """The files it was loaded from."""
    found = row.artifact
    return {
        "label": row.artifact_label,
        "path": found.path if found else None,
        "format": found.format if found else None,
        "quantization": found.quantization if found else None,
        "dtype": found.dtype if found else None,
        "parameters": found.parameters if found else None,
        "bytes": found.bytes if found else None,
        "bytes_by_type": found.mix if found else {},
        "checksum": found.checksum if found else None,
        "sha256": found.sha256 if found else {},
        "tokenizer_sha256": found.tokenizer_sha256 if found else None,
        "chat_template_sha256": found.template_sha256 if found else None,
        "pickled": found.pickled if found else None,
        "custom_code": found.custom_code if found else None,
    }


def runtime_facts(asked: Candidate | None, row: CandidateState) -> dict[str, Any]:
    """How it ran; of the environment asked for only the names, since values may be secrets."""
    return {
        "argv": row.engine.argv if row.engine else [],
        "python": row.engine.python if row.engine else None,
        "container": row.engine.container if row.engine else None,
        "gpu_uuids": row.engine.gpu_uuids if row.engine else [],
        "trust_remote_code": row.engine.trust_remote_code if row.engine else None,
        "allow_pickle": row.engine.allow_pickle if row.engine else None,
        "device": row.engine.device if row.engine else None,
        "settings": row.engine.settings if row.engine else {},
        "asked_settings": asked.settings if asked else {},
        "asked_args": asked.args if asked else [],
        "asked_device": asked.device if asked else None,
        "env_names": sorted(asked.env) if asked else [],
    }


def before_launch(row: CandidateState) -> dict[str, Any]:
    """Whether it was to fit, what was prepared, and how it bore what it had to."""
    return {
        "fit": None if row.fit is None else every_field(row.fit),
        "preparations": [every_field(made) for made in row.preparations],
        "recovery": [every_field(check) for check in row.recovery],
    }
