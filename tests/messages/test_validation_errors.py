"""Validation errors in plain English: the place, and what to do."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from callboard.messages import Task, form_of, keys_of, plain_problems


class Lamp(BaseModel):
    model_config = ConfigDict(extra="forbid")

    room: str = "hall"
    level: int = Field(default=1, ge=1, le=10)
    share: float = Field(default=0.5, gt=0, lt=1)
    dimmed: bool = False
    colour: Literal["red", "blue"] = "red"
    tags: tuple[str, ...] = Field(default=(), max_length=2)
    name: Annotated[str, Field(min_length=1, max_length=5, pattern="^[a-z]+$")] = "a"
    notes: dict[str, str] = {}
    named: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = {}
    file: Path | None = None
    since: dt.datetime | None = None
    either: bool | Literal["both"] = False
    inner: Lamp | None = None
    others: tuple[Lamp, ...] | str = Field(default="none", min_length=1)
    facts: dict[str, JsonValue] = {}


class _Bulb(BaseModel):
    watts: int


class _Candle(BaseModel):
    wax: str


class _Room(BaseModel):
    name: str
    lamps: dict[str, _Bulb | _Candle]
    form: dict[str, Any] = Field(alias="schema")


class _House(BaseModel):
    name: str
    rooms: list[_Room] | None


def lines_of(data: Any, model: type[BaseModel] = Lamp) -> list[str]:
    with pytest.raises(ValidationError) as info:
        model.model_validate(data)
    return plain_problems(info.value.errors(), lambda _: list(model.model_fields))


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"room": 5}, "room: must be text, and is read as a number: put it in quotes"),
        ({"room": True}, "room: must be text, and is read as true or false: put it in quotes"),
        ({"room": dt.date(2030, 1, 1)}, "room: must be text, and is read as a date: put it in quotes"),
        ({"room": None}, "room: must be text, not nothing"),
        ({"room": ["a"]}, "room: must be text, not a list"),
        ({"level": "many"}, "level: must be a whole number"),
        ({"level": 1.5}, "level: must be a whole number"),
        ({"level": 0}, "level: must be at least 1"),
        ({"level": 11}, "level: must be at most 10"),
        ({"share": 0}, "share: must be more than 0"),
        ({"share": 1}, "share: must be less than 1"),
        ({"share": "x"}, "share: must be a number"),
        ({"dimmed": "perhaps"}, "dimmed: must be true or false"),
        ({"colour": "green"}, "colour: must be 'red' or 'blue'"),
        ({"tags": "a"}, "tags: must be a list: put it in brackets, as in [one, two]"),
        ({"tags": ["a", "b", "c"]}, "tags: must have at most 2 entries"),
        ({"tags": ["a", 1]}, "tags.1: must be text, and is read as a number: put it in quotes"),
        ({"name": ""}, "name: is empty"),
        ({"name": "abcdef"}, "name: must have at most 5 characters"),
        ({"name": "A"}, "name: has the wrong form: it must match ^[a-z]+$"),
        ({"notes": 5}, "notes: must be a mapping of keys to values"),
        ({"notes": {1: "a"}}, "notes: the key 1 must be text, and is read as a number: put it in quotes"),
        ({"notes": {True: "a"}}, "notes: the key must be text, and is read as true or false: put it in quotes"),
        ({"named": {"A": 1}}, "named.A: the key has the wrong form: it must match ^[a-z]+$"),
        ({"file": 5}, "file: must be text, and is read as a number: put it in quotes"),
        ({"since": "soon"}, "since: must be a date and time with its time zone, such as 2030-12-31T18:00:00+01:00"),
        ({"either": "none"}, "either: must be true or false, or 'both'"),
        ({"inner": "x"}, "inner: must be a mapping of keys to values"),
        ({"inner": {"rom": "x"}}, "inner.rom: unknown key; did you mean 'room'?"),
        ({"others": [{"level": 0}]}, "others.0.level: must be at least 1"),
        ({"facts": {"a": dt.date(2030, 1, 1)}}, "facts.a: must be text, and is read as a date: put it in quotes"),
        ({"facts": {"a": [{"b": b"x"}]}}, "facts.a.0.b: must be text, a number, true or false, a list or a mapping"),
        ("x", "must be a mapping of keys to values"),
    ],
)
def test_error_names_the_place_and_the_expected_form(data, line):
    assert lines_of(data) == [line]


@pytest.mark.parametrize(
    ("loc", "keys"),
    [
        (["nmae"], ["name", "rooms"]),
        (["rooms", 0, "nmae"], ["name", "lamps", "schema"]),
        (["rooms", 0, "lamps", "hall", "union[_Bulb]", "nmae"], ["watts"]),
        (["rooms", 0, "lamps", "hall", "nmae"], ["watts", "wax"]),
        (["name", "nmae"], []),
    ],
)
def test_known_keys_are_those_of_the_model_at_the_place(loc, keys):
    assert keys_of(_House)(loc) == keys


def test_each_place_has_a_line():
    assert lines_of({"level": 0, "either": 5, "dimmed": "x"}) == [
        "level: must be at least 1",
        "dimmed: must be true or false",
        "either: must be true or false, or 'both'",
    ]


def test_labels_that_yaml_reads_as_numbers_are_to_be_quoted():
    assert lines_of({"request": "x", "labels": {"version": 1.1, "urgent": False, 7: "a"}}, Task) == [
        "labels.version: must be text, and is read as a number: put it in quotes",
        "labels.urgent: must be text, and is read as true or false: put it in quotes",
        "labels: the key 7 must be text, and is read as a number: put it in quotes",
    ]


def test_errors_in_the_loop_of_a_routine_are_not_those_of_a_step():
    loop = {"each": "rows", "steps": [{"status": "CONTINUE", "actoin": 1}]}
    subtask = {"target": "t", "kind": "app", "request": "x", "steps": [loop]}
    routine = {"routine": "r", "request": "x", "subtasks": [subtask]}
    assert lines_of({"routine": routine}, Task)[0].startswith("routine.subtasks.0.steps.0.steps.0.actoin: unknown key")
    assert len(lines_of({"routine": routine}, Task)) == 1


def test_value_is_not_shown():
    assert "xyzzy" not in " ".join(lines_of({"level": "xyzzy", "colour": "xyzzy", "since": "xyzzy", "tags": "xyzzy"}))


def test_every_form_of_a_file_has_a_name():
    values = [None, True, 1.5, "a", dt.datetime.now(dt.UTC), {}, [], object()]
    assert [form_of(value) for value in values] == [
        "nothing",
        "true or false",
        "a number",
        "text",
        "a date",
        "a mapping of keys to values",
        "a list",
        "another type",
    ]


def test_long_key_is_cut():
    (problem,) = plain_problems([{"loc": ("x" * 1_000,), "type": "extra_forbidden", "input": 1}])
    assert problem == f"{'x' * 200}…: unknown key"
