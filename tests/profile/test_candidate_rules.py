"""Keys about a candidate's model that must fit each other."""

import pytest

from deploytui.errors import ProfileError
from deploytui.profile.parse import parse_profile

HEAD = '[workload]\nprompt_tokens = 16\n[[candidates]]\nname = "a"\n'
GOOD = "a" * 64


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ('engine = "openai"\nprepare = { precision = "int4" }', "`candidates[a].prepare` does not go with engine"),
        ('engine = "openai"\nrevision = "main"', "`candidates[a].revision` does not go with engine"),
        ('engine = "openai"\ncontainer = { image = "x" }', "`candidates[a].container` does not go with engine"),
        (f'engine = "openai"\nsha256 = {{ x = "{GOOD}" }}', "`candidates[a].sha256` does not go with engine"),
        ('engine = "vllm"\nmodel = "./m"\nrevision = "main"', "`candidates[a].revision` goes with a hub id"),
        ('engine = "vllm"\nmodel = "builtin:x"\nrevision = "main"', "`candidates[a].revision` goes with a hub id"),
        ('engine = "vllm"\nrevision = "main"', "there is no model"),
        ('engine = "vllm"\nmodel = "a/b"\nrevision = "../x"', "`candidates[a].revision` can't be"),
        ('engine = "vllm"\nmodel = "a/b"\nrevision = ""', "`candidates[a].revision` can't be"),
        ('engine = "vllm"\nsha256 = { x = "abc" }', "`candidates[a].sha256.x` is no sha256"),
        (f'engine = "vllm"\nsha256 = {{ "../x" = "{GOOD}" }}', "is no file of the model"),
        (f'engine = "vllm"\nsha256 = {{ x = "{GOOD}" }}\n[checks]\nchecksum = "off"', 'checksum = "off"'),
        ('engine = "vllm"\nprepare = { command = ["x", "{model}"], format = "onnx" }', "has no {out}"),
        ('engine = "vllm"\nprepare = { command = [], format = "onnx" }', "`candidates[a].prepare.command` is empty"),
        ('engine = "vllm"\nprepare = { command = ["x", "{out}"] }', "`candidates[a].prepare.format` is missing"),
        ('engine = "vllm"\nprepare = { command = ["x", "{out}"], format = "zip" }', 'can\'t be the string "zip"'),
        ('engine = "vllm"\nprepare = { format = "onnx" }', "goes with prepare.command only"),
        (
            'engine = "vllm"\nprepare = { command = ["x", "{out}"], format = "onnx", precision = "int4" }',
            "`candidates[a].prepare.precision` does not go with prepare.command",
        ),
    ],
)
def test_keys_that_contradict_each_other_are_refused_with_a_remedy(lines: str, what: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(HEAD + lines + "\n")
    assert what in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize(
    "lines",
    [
        'engine = "vllm"\nmodel = "org/repo"\nrevision = "refs/pr/3"',
        f'engine = "vllm"\nmodel = "m"\nsha256 = {{ "a/b.safetensors" = "{GOOD.upper()}" }}',
        'engine = "vllm"\nmodel = "m"\nprepare = { command = ["x", "--to={out}"], format = "onnx" }',
        'engine = "vllm"\nmodel = "m"\nprepare = { precision = "int4", args = ["-x"] }',
    ],
)
def test_what_fits_is_taken(lines: str) -> None:
    assert parse_profile(HEAD + lines + "\n").candidates[0].name == "a"
