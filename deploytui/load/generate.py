"""The request of Text Generation Inference's own endpoint, from what a load asks in OpenAI's words."""

from collections.abc import Mapping
from typing import Any

from deploytui.load.trouble import LoadError
from deploytui.profile.api_rules import PARAMETERS


def generate_body(text: str, output_tokens: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Prompt and parameters; raises LoadError for what this endpoint has no word for.

    It refuses a temperature of 0 and a top_p of 1, which mean to it what leaving them out does. A length can be capped
    and not forced: an answer ends where the model ends it.
    """
    parameters = {key: value for key, value in asked.items() if value is not None and not _is_default(key, value)}
    if unknown := [key for key in parameters if key not in PARAMETERS]:
        raise LoadError(
            f"TGI's own endpoint has no word for {', '.join(unknown)}.",
            fix='Leave it out, or set api = "openai" for the candidate.',
        )
    return {
        "inputs": text,
        "parameters": {
            "do_sample": "temperature" in parameters,
            **parameters,
            "max_new_tokens": output_tokens,
            "details": True,
            "decoder_input_details": False,
        },
    }


def _is_default(key: str, value: object) -> bool:
    return (key, value) in (("temperature", 0), ("top_p", 1), ("ignore_eos", False))
