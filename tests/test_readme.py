"""README.md says what the program does: its keys, defaults, codes, commands, definitions and examples."""

import json
import re
from typing import Any, get_args

import click
import msgspec
import pytest
from msgspec import NODEFAULT, UNSET, Struct

from deploytui import definitions
from deploytui.cli import cli
from deploytui.decide.effects import DECISIONS, ROWS
from deploytui.decide.exit import MEANINGS
from deploytui.decide.gates import GATES
from deploytui.engine.llamacpp_settings import NO_WORD, PARALLEL
from deploytui.engine.registry import BUILT_IN
from deploytui.export.formats import FORMATS
from deploytui.export.streams import STREAMS
from deploytui.profile import load_schema, schema
from deploytui.profile.inert import not_acted_on
from deploytui.profile.parse import parse_profile
from deploytui.profile.rules import OBJECTIVES
from deploytui.quality.tasks import Item, parse_task
from deploytui.tui.screens.bindings import LIVE_BINDINGS
from tests.readme import blocks, rows, section

NOT_YET = "(not yet)"


TABLES: dict[str, type[Struct]] = {
    "Top level": schema.Profile,
    "`timeouts`": schema.Timeouts,
    "`[workload]`": schema.Workload,
    "`sampling`": schema.Sampling,
    "`[quality]`": schema.Quality,
    "`[gates]`": schema.Gates,
    "`[engine_gate]`": schema.EngineGate,
    "`[[candidates]]`": schema.Candidate,
    "`settings`": schema.Settings,
    "`container`": schema.Container,
    "`prepare`": schema.Prepare,
    "`[checks]`": schema.Checks,
}


LOADS: tuple[type[Struct], ...] = get_args(load_schema.Load)


LENGTHS = {load_schema.Uniform, load_schema.Normal, load_schema.Lognormal}
ELSEWHERE = {schema.Limits, load_schema.Stage, schema.SharedPrefix, *LENGTHS, *LOADS}


"""Tables that are documented in the row of another."""


EVERYTHING = """
schema = 1
form = "edge"
order = "interleaved"
drift_check = true
[workload]
prompt_tokens = 8
[engine_gate]
max_waiting_requests = 1
[[candidates]]
name = "a"
engine = "vllm"
form = "edge"
effort_days = 1.0
"""


def default_shown(field: msgspec.structs.FieldInfo) -> str | None:
    """A key's default as the table writes it; None where it is a table of its own."""
    if field.required:
        return "needed"
    value = field.default_factory() if field.default_factory is not NODEFAULT else field.default
    if value is UNSET or isinstance(value, Struct):
        return None
    if value is None:
        return "–"
    if isinstance(value, tuple | dict):
        return f"`{json.dumps(value)}`"
    return f"`{json.dumps(int(value) if field.name in schema.Timeouts.__struct_fields__ else value)}`"


def structs_below(kind: Any) -> set[type[Struct]]:
    """All tables that a type can hold."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        below = (structs_below(field.type) for field in msgspec.structs.fields(kind))
        return {kind}.union(*below)
    return set().union(*(structs_below(part) for part in get_args(kind)))


def test_every_table_of_the_schema_has_its_section() -> None:
    assert structs_below(schema.Profile) == {*TABLES.values(), *ELSEWHERE}


@pytest.mark.parametrize(("title", "table"), TABLES.items(), ids=[table.__name__ for table in TABLES.values()])
def test_every_key_is_documented_with_its_default(title: str, table: type[Struct]) -> None:
    documented = rows(title, "key")
    fields = {f"`{field.encode_name}`": field for field in msgspec.structs.fields(table)}
    assert list(documented) == list(fields)
    wrong = {
        key: (documented[key][1], shown)
        for key, field in fields.items()
        if (shown := default_shown(field)) is not None and documented[key][1] != shown and field.name != "results"
    }
    assert wrong == {}


def test_every_kind_of_load_is_documented_with_its_keys() -> None:
    documented = rows("`load`", "kind")
    for load in LOADS:
        keys, text = documented.pop(f"`{load.__struct_config__.tag}`")
        assert re.findall(r"`([a-z_]+)`", keys) == [field.encode_name for field in msgspec.structs.fields(load)]
        assert NOT_YET not in text
    assert documented == {}
    for field in msgspec.structs.fields(load_schema.Stage):
        assert field.name in section("`load`")


def test_what_is_not_acted_on_yet_is_marked() -> None:
    inert = not_acted_on(parse_profile(EVERYTHING))
    keys = [text.partition(":")[0] for text in inert]
    assert len(keys) == 6
    for key in keys:
        title, _, name = key.rpartition(".")
        title = "`[[candidates]]`" if title.startswith("candidates") else f"`{title}`" if title else "Top level"
        if name == "engine_gate":
            assert NOT_YET in section("`[engine_gate]`")
        else:
            assert NOT_YET in rows(title, "key")[f"`{name}`"][-1], key


def test_every_statistic_and_objective_is_named() -> None:
    gates = section("`[gates]`")
    assert all(f"`{field.name}`" in gates for field in msgspec.structs.fields(schema.Limits))
    objectives = rows("Top level", "key")["`objective`"][-1]
    assert all(f"`{name.partition('.')[0]}`" in objectives for name in OBJECTIVES)


def test_how_each_gate_is_decided_is_documented() -> None:
    documented = {key: cells[-1] for key, cells in rows("`[gates]`", "key").items()}
    assert {f"`{gate.key}`": "value" if gate.confirm == "point" else "interval" for gate in GATES} == {
        key: said for key, said in documented.items() if key != "`confirm`"
    }


def test_settings_that_llama_cpp_lacks_are_said() -> None:
    documented = {key.strip("`"): cells[-1] for key, cells in rows("`settings`", "key").items()}
    assert {key for key, said in documented.items() if said == "no word"} == {*NO_WORD, *PARALLEL}


def test_every_key_of_a_task_item_is_documented_and_the_examples_are_valid() -> None:
    documented = section("`[quality]`")
    assert all(f"`{field.name}`" in documented for field in msgspec.structs.fields(Item))
    checkers = get_args(next(field.type for field in msgspec.structs.fields(Item) if field.name == "checker"))
    assert all(f"`{checker}`" in documented for checker in checkers)
    [example] = blocks("jsonl")
    assert len(parse_task("README.md", example.encode()).items) == 4


def test_every_reason_code_has_its_effect_and_meaning() -> None:
    documented = {
        code.removesuffix(" ¹").strip("`"): tuple(cells) for code, cells in rows("The decision", "code").items()
    }
    assert documented == {row.code: (row.effect, row.meaning) for row in ROWS}
    assert set(rows("The decision", "effect")) == {*(effect for effect, _ in DECISIONS), "note"}


def test_every_exit_status_is_documented() -> None:
    documented = rows("The decision", "exit status")
    assert {int(status) for status in documented} == set(MEANINGS)
    for status, meaning in MEANINGS.items():
        assert documented[str(status)][0].split(";")[0].removesuffix(" ¹") == meaning.split(";")[0]


def test_every_command_is_documented_with_its_options() -> None:
    documented = {
        match[1]: "".join(cells)
        for name, cells in rows("Commands", "command").items()
        if (match := re.match(r"`([a-z-]+)[` ]", name))
    }
    shown = {name: command for name, command in cli.commands.items() if not command.hidden}
    assert set(documented) - {"deploytui"} == set(shown)
    for name, command in shown.items():
        options = {max(option.opts, key=len) for option in command.params if isinstance(option, click.Option)}
        assert set(re.findall(r"--[a-z-]+", documented[name])) == options, name
    assert all(form in documented["export"] for form in [*FORMATS, *STREAMS])


def test_every_definition_is_quoted() -> None:
    documented = {word.strip("`"): cells[0] for word, cells in rows("How it measures", "word").items()}
    assert documented == definitions.TEXTS


def test_every_engine_says_what_was_really_run() -> None:
    lines = [line for line in section("Engines").splitlines() if line.startswith("| `") and line.count(" | ") == 4]
    documented = {line.split("`")[1]: line for line in lines}
    assert set(documented) == set(BUILT_IN)
    assert all(re.search(r"run|SIMULATED", line) for line in lines)


def test_every_key_of_the_live_screen_is_documented() -> None:
    names = {"slash": "/", "question_mark": "?"}
    keys = "".join(rows("The screen", "key")) + "".join(cells[0] for cells in rows("The screen", "key").values())
    for binding in LIVE_BINDINGS:
        if isinstance(binding, tuple) or not binding.show:
            continue
        first = binding.key.split(",")[0]
        assert f"`{names.get(first, first)}`" in keys, binding.id
