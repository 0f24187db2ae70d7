import pytest

from deploytui.engine.version import satisfies, wrong_version
from deploytui.errors import ProfileError

TABLE = [
    ("0.33.0", "==0.33.0", True),
    ("0.33.0", "==0.33", True),
    ("0.33.1", "==0.33.0", False),
    ("0.33.0", "0.33.0", True),
    ("0.33.7", "==0.33.*", True),
    ("0.34.0", "==0.33.*", False),
    ("0.34.0", "!=0.33.*", True),
    ("1.9", ">=1,<2", True),
    ("2.0", ">=1,<2", False),
    ("1.10", ">1.9", True),
    ("1.9", "<=1.9.0", True),
    ("1.9.1", "<=1.9", False),
    ("2.13.0+cpu", "==2.13.0", True),
    ("0.6.0rc1", ">=0.6.0", False),
    ("0.6.0rc1", "==0.6.0", False),
    ("0.6.0.post1", ">0.6.0", True),
    ("b6001", ">=6000", True),
    ("1.4.2", "~=1.4.1", True),
    ("1.5.0", "~=1.4.1", False),
]


@pytest.mark.parametrize(("version", "lock", "held"), TABLE)
def test_a_lock_holds_or_not(version: str, lock: str, held: bool) -> None:
    assert satisfies(version, lock) is held


def test_a_version_without_a_number_can_not_be_told() -> None:
    assert satisfies("unknown", "==1.0") is None


@pytest.mark.parametrize("lock", ["", "=1", ">=a", "==1.*.2", ">=1.*", "1 or 2"])
def test_a_lock_nobody_understands_is_an_error_with_an_example(lock: str) -> None:
    with pytest.raises(ProfileError) as caught:
        satisfies("1.0", lock)
    assert "==0.33.0" in caught.value.fix


def test_another_version_is_a_failure_with_both_named() -> None:
    failure = wrong_version("vLLM", "==0.33.0", "0.32.0")
    assert failure is not None
    assert failure.kind == "wrong_version"
    assert "0.32.0" in failure.what
    assert "==0.33.0" in failure.what


def test_without_a_lock_any_version_will_do() -> None:
    assert wrong_version("vLLM", None, None) is None


def test_a_lock_on_an_engine_that_tells_no_version_fails() -> None:
    failure = wrong_version("vLLM", ">=1", None)
    assert failure is not None
    assert "does not tell" in failure.what
