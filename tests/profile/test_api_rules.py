"""What a candidate with TGI's own endpoint can't be asked."""

import pytest

from deploytui.errors import ProfileError
from deploytui.profile.parse import parse_profile

PROFILE = """
schema = 1
[workload]
prompt_tokens = 8
output_tokens = 8
requests = 4
load = {{ kind = "closed", concurrency = 1 }}
{workload}
[[candidates]]
name = "a"
engine = "{engine}"
base_url = "http://localhost:8080"
api = "tgi"
"""
PLAIN = 'endpoint = "completions"\nsampling = { ignore_eos = false }'


def parse(workload: str, engine: str = "openai") -> None:
    parse_profile(PROFILE.format(workload=workload, engine=engine))


def test_completions_of_any_length_can_be_asked() -> None:
    parse(PLAIN)
    parse(PLAIN + "\nbody = { stop = ['x'], typical_p = 0.9 }")


@pytest.mark.parametrize(
    ("workload", "engine", "said"),
    [
        ('sampling = { ignore_eos = false }\nendpoint = "chat"', "openai", "takes no messages"),
        ('endpoint = "completions"', "openai", "workload.sampling.ignore_eos = false"),
        ('endpoint = "completions"\nsampling = { ignore_eos = false, min_p = 0.1 }', "openai", "min_p"),
        (PLAIN + "\nbody = { logit_bias = 1 }", "openai", "workload.body.logit_bias"),
        (PLAIN, "llamacpp", "llamacpp has no such endpoint"),
    ],
)
def test_what_it_has_no_word_for_is_a_fault(workload: str, engine: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse(workload, engine)
    assert said in caught.value.text()
