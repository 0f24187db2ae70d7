"""A profile that holds a secret is refused before anything of it is copied, in words that do not repeat it."""

import pytest

from deploytui.errors import ProfileError
from deploytui.profile.parse import parse_profile
from deploytui.profile.secret_names import secrets_told

GOOD = '[workload]\nprompt_tokens = 16\n{workload}\n[[candidates]]\nname = "a"\nengine = "vllm"\nmodel = "m"\n'
SECRET = "marker-5key6of7a"


@pytest.mark.parametrize(
    ("line", "place", "fix"),
    [
        (f'env = {{ HF_TOKEN = "{SECRET}" }}', "candidates[a].env.HF_TOKEN", "export HF_TOKEN before deploytui"),
        (f'args = ["--api-key", "{SECRET}"]', "candidates[a].args", "each launch gets a key of its own"),
        (f'args = ["--api-key={SECRET}"]', "candidates[a].args", "each launch gets a key of its own"),
        (f'args = ["--hf-token", "{SECRET}"]', "candidates[a].args", "in the variable that the engine reads it from"),
        (f'command = ["sh", "-c", "exec serve --api_key {SECRET}"]', "candidates[a].command", "key of its own"),
        (f'command = ["env", "WANDB_API_KEY={SECRET}", "serve"]', "candidates[a].command", "export WANDB_API_KEY"),
        (
            f'container = {{ image = "i", args = ["--env", "HF_TOKEN={SECRET}"] }}',
            "candidates[a].container.args",
            'container.args = ["--env", "HF_TOKEN"]',
        ),
        (
            f'prepare = {{ command = ["mk", "{{out}}", "--password", "{SECRET}"], format = "gguf" }}',
            "candidates[a].prepare.command",
            "export it before",
        ),
        (f'prepare = {{ args = ["--auth-token", "{SECRET}"] }}', "candidates[a].prepare.args", "export it before"),
        (f'base_url = "http://me:{SECRET}@10.0.0.1:8000"', "candidates[a].base_url", "api_key_env"),
    ],
)
def test_a_secret_of_a_candidate_is_refused_with_the_way_to_pass_it(line: str, place: str, fix: str) -> None:
    with pytest.raises(ProfileError) as refused:
        parse_profile(GOOD.format(workload="") + line)
    assert place in refused.value.what
    assert "holds a secret" in refused.value.what
    assert fix in refused.value.fix
    assert SECRET not in refused.value.text()


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (f'headers = {{ X-Api-Key = "{SECRET}" }}', "workload.headers.X-Api-Key"),
        (f'body = {{ api_key = "{SECRET}" }}', "workload.body.api_key"),
    ],
)
def test_a_secret_of_the_requests_is_refused(line: str, place: str) -> None:
    with pytest.raises(ProfileError) as refused:
        parse_profile(GOOD.format(workload=line))
    assert place in refused.value.what
    assert "api_key_env" in refused.value.fix


@pytest.mark.parametrize(
    "line",
    [
        'env = { HF_TOKEN = "" }',
        'env = { OPENAI_API_KEY = "EMPTY" }',
        'env = { HF_TOKEN_PATH = "/home/me/.cache/token", TOKENIZERS_PARALLELISM = "false" }',
        'args = ["--api-key-header", "X-Api-Key-Name"]',
        'args = ["--eos-token", "<|im_end_of_all|>", "--max-num-batched-tokens", "16384000"]',
        """command = ["sh", "-c", 'exec serve --api-key "$DEPLOYTUI_API_KEY" --port {port}']""",
        'container = { image = "i", args = ["--env", "HF_TOKEN"] }',
        'base_url = "http://10.0.0.1:8000/v1"\napi_key_env = "PROD_API_KEY"',
    ],
)
def test_what_only_looks_like_a_secret_is_let_through(line: str) -> None:
    parse_profile(GOOD.format(workload="") + line)


def test_what_is_told_is_the_name_and_not_the_secret() -> None:
    assert list(secrets_told(["--token", SECRET, "--secret", SECRET, "A_TOKEN=" + SECRET])) == ["secret", "A_TOKEN"]
