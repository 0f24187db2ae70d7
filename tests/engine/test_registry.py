import json
import subprocess
import sys

import pytest

from deploytui.engine.protocol import Engine
from deploytui.engine.registry import BUILT_IN, engine_names, load_engine
from deploytui.errors import ProfileError


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_every_listed_engine_can_be_loaded_and_knows_its_name(name: str) -> None:
    engine: Engine = load_engine(name)
    assert engine.name == name
    assert engine.title


@pytest.mark.parametrize(
    ("wrong", "near"), [("lamacpp", "llamacpp"), ("VLLM", "vllm"), ("tensorrt_llm", "tensorrt-llm")]
)
def test_a_wrong_name_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load_engine(wrong)
    assert wrong in caught.value.what
    assert near in caught.value.fix


def test_a_name_like_none_is_answered_with_all_of_them() -> None:
    with pytest.raises(ProfileError) as caught:
        load_engine("zzzzzz")
    assert all(name in caught.value.fix for name in BUILT_IN)


def test_listing_imports_no_adapter_and_choosing_imports_only_its_own() -> None:
    code = (
        "import sys, json\n"
        "from deploytui.engine import registry\n"
        "registry.engine_names()\n"
        "seen = lambda: sorted(n for n in sys.modules if n.startswith('deploytui.engine.') or n == 'xllamacpp')\n"
        "before = seen()\n"
        "registry.load_engine('mock')\n"
        "print(json.dumps([before, seen()]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    before, after = json.loads(said.stdout)
    assert "deploytui.engine.mock" not in before
    assert "deploytui.engine.mock" in after
    assert "deploytui.engine.llamacpp" not in after
    assert "xllamacpp" not in after


def test_the_names_of_the_list_are_all_there() -> None:
    assert set(engine_names()) >= set(BUILT_IN)
    assert len(engine_names()) == len(set(engine_names()))
