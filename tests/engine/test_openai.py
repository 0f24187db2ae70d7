import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.engine.openai import OpenAI, api_key, base_url
from deploytui.engine.protocol import Place
from deploytui.errors import ProfileError
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import EngineFacts

ENGINE = OpenAI()
PLAIN = Candidate(name="prod", engine="openai", base_url="http://127.0.0.1:8000/v1/")
PLACE = Place(port=0, model_path=None, concurrency=1, context_tokens=1)


@pytest.mark.parametrize(
    "address",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        "h:8000",
        " http://h:8000/v1/chat/completions ",
        "http://h:8000/v1/completions",
        "http://h:8000/v1/models",
    ],
)
def test_every_way_to_write_an_address_gives_the_same(address: str) -> None:
    assert base_url(address) == "http://h:8000"


def test_a_path_before_v1_is_kept() -> None:
    assert base_url("https://gateway/team/v1/") == "https://gateway/team"


@pytest.mark.parametrize("address", ["", "ftp://h", "http://", "http://h:port", "http://user:key@h", "http://h?key=1"])
def test_what_is_no_address_or_holds_a_secret_is_refused(address: str) -> None:
    with pytest.raises(ProfileError):
        base_url(address)


def test_attaching_launches_nothing() -> None:
    launch = ENGINE.launch(PLAIN, PLACE)
    assert not ENGINE.launches
    assert launch.argv == ()
    assert launch.base_url == "http://127.0.0.1:8000"
    assert launch.served_model == ""
    assert ENGINE.probe(PLAIN) is None


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": "ftp://h"}, "base_url"),
        ({"settings": Settings(max_model_len=1)}, "settings"),
        ({"args": ("--x",)}, "args"),
        ({"python": "/opt/py"}, "python"),
        ({"device": "cuda"}, "device"),
        ({"engine_version": "==1"}, "engine_version"),
        ({"api_key_env": "DEPLOYTUI_TEST_NO_SUCH_KEY"}, "DEPLOYTUI_TEST_NO_SUCH_KEY"),
    ],
)
def test_keys_that_can_not_act_on_a_running_endpoint_are_refused(changes: dict[str, Any], word: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == "invalid_config"
    assert word in failure.what + failure.fix


def test_a_plain_endpoint_is_taken() -> None:
    assert ENGINE.objection(replace(PLAIN, declared={"hardware": "1x H100"}, served_model="m")) is None


def test_the_key_comes_from_the_named_variable() -> None:
    assert api_key(replace(PLAIN, api_key_env="KEY"), {"KEY": "x"}) == "x"
    assert api_key(replace(PLAIN, api_key_env="KEY"), {}) is None
    assert api_key(PLAIN, {"KEY": "x"}) is None


def test_a_vllm_endpoint_tells_version_and_context() -> None:
    recorded: dict[str, Any] = json.loads(
        (Path(__file__).parents[1] / "data" / "logs" / "vllm-0.32.0-cpu" / "models.json").read_text(encoding="utf-8")
    )
    facts = EngineFacts(name="openai", served_model="smollm2")
    told = ENGINE.readback(facts, {"/v1/models": recorded, "/version": {"version": "0.32.0"}})
    assert told.version == "0.32.0"
    assert told.settings == {"max_model_len": 1024}
    assert ENGINE.readback(facts, {}) == facts
