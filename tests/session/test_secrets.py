import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.record.events import Note, encode
from deploytui.session.secrets import is_secret_name, masked, masked_event, masked_json, secret_values


@pytest.mark.parametrize("name", ["HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "wandb_apikey", "DB_PASSWORD"])
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEYBOARD", "MAX_TOKENS", "PATH", "MONKEY"])
def test_names_that_only_look_alike_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_values_that_hide_nothing_are_left() -> None:
    environment = {"A_TOKEN": "short", "B_TOKEN": "12345678901", "C_CREDENTIALS": "/home/me/.keys/file", "D": "x" * 20}
    assert secret_values(environment) == ()
    assert secret_values({**environment, "E_TOKEN": "swordfish-and-more"}, ["D"]) == ("x" * 20, "swordfish-and-more")


def test_of_two_secrets_the_longer_goes_first() -> None:
    secrets = secret_values({"A_TOKEN": "swordfish", "B_TOKEN": "swordfish-too"})
    assert masked("swordfish-too swordfish", secrets) == "… …"


@given(
    secret=st.text(min_size=8, alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"])),
    before=st.text(max_size=5),
)
def test_no_event_holds_a_secret_however_json_writes_it(secret: str, before: str) -> None:
    event = Note(at_ns=1, level="info", text=f"{before} {secret} {before}", candidate=None)
    found = masked_event(event, (secret,))
    assert isinstance(found, Note)
    assert secret not in found.text or secret in f"{before} … {before}"


@pytest.mark.parametrize("secret", ["candidate", "note", "info_kind"])
def test_a_secret_that_is_a_word_of_ours_breaks_no_event(secret: str) -> None:
    event = Note(at_ns=1, level="info", text=f"its value is {secret}", candidate="a")
    found = masked_event(event, (secret,))
    assert isinstance(found, Note)
    assert found.candidate == "a"


def test_keys_of_json_stay_and_texts_do_not_tell() -> None:
    content = b'{"swordfish": ["my swordfish", 1, null], "plain": {"deep": "swordfish"}}'
    assert (
        masked_json(content, ("swordfish",))
        == b'{"swordfish":["my \xe2\x80\xa6",1,null],"plain":{"deep":"\xe2\x80\xa6"}}'
    )
    assert masked_json(content, ("herring",)) is content


def test_an_event_without_a_secret_is_the_same() -> None:
    event = Note(at_ns=1, level="info", text="plain", candidate=None)
    assert masked_event(event, ("swordfish",)) is event
    assert b"plain" in encode(masked_event(event, ()))
