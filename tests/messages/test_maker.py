"""Values that are made without a validator are those that the validator would have made."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from callboard.messages import (
    Action,
    Command,
    CommandResult,
    ControlRef,
    Decision,
    Observation,
    ResultStatus,
    StepDone,
    StepRecord,
    Usage,
    Value,
    maker,
)

_DECISION = Decision(status="CONTINUE", actions=(Action(tool="write", arguments={"text": "1"}),))
_RECORD = StepRecord(step=1, status="CONTINUE", observation=Observation(text="seen"), decision=_DECISION)

GIVEN: list[tuple[type[Value], dict[str, Any]]] = [
    (Usage, {}),
    (Usage, {"steps": 2, "cost": 0.5}),
    (ControlRef, {"id": "table-1"}),
    (Action, {"control": ControlRef(id="table-1", name="Prices"), "tool": "write"}),
    (CommandResult, {"call_id": "t~1.1.0", "tool": "write", "status": ResultStatus.SUCCESS, "value": {"rows": [1]}}),
    (Decision, {"status": "FINISH", "actions": _DECISION.actions, "result": [1, "a", None]}),
    (StepDone, {"record": _RECORD, "usage": Usage(steps=1)}),
    (StepDone, {"record": _RECORD}),
    (
        Command,
        {
            "task_id": "t",
            "run_id": "t~1",
            "token": 3,
            "call_id": "t~1.1.0",
            "tool": "write",
            "parameters": {"text": "1"},
            "timeout": 60.0,
        },
    ),
]


@pytest.mark.parametrize(("model", "given"), GIVEN)
def test_it_makes_what_the_constructor_makes(model: type[Value], given: dict[str, Any]) -> None:
    made, validated = maker(model)(**given), model(**given)
    assert type(made) is model
    assert made == validated
    assert repr(made) == repr(validated)
    assert made.model_fields_set == validated.model_fields_set
    assert made.model_dump() == validated.model_dump()
    assert made.model_dump_json(exclude_unset=True) == validated.model_dump_json(exclude_unset=True)
    assert list(made.__dict__) == list(validated.__dict__) == list(model.model_fields)
    assert model.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(("model", "given"), GIVEN)
def test_maker_gives_models_that_can_be_copied(model: type[Value], given: dict[str, Any]) -> None:
    made = maker(model)(**given)
    for other in (made.model_copy(), made.model_copy(deep=True), copy.copy(made), copy.deepcopy(made)):
        assert other == made
        assert other is not made
        assert other.model_fields_set == made.model_fields_set


def test_maker_gives_frozen_models() -> None:
    made = maker(Usage)(steps=1)
    with pytest.raises(ValidationError, match="frozen"):
        made.steps = 2


def test_each_value_has_defaults_of_its_own() -> None:
    make = maker(Action)
    one, other = make(tool="read"), make(tool="read")
    assert one.arguments == {}
    assert one.arguments is not other.arguments


class _Kept(BaseModel):
    names: list[str] = []
    number: int = Field(default_factory=lambda: 7)
    _seen: list[int] = PrivateAttr(default_factory=list)


def test_defaults_that_may_change_are_copied() -> None:
    make = maker(_Kept)
    one, other = make(), make()
    assert (one.names, one.number) == ([], 7)
    assert one.names is not other.names


def test_private_attributes_are_there() -> None:
    make = maker(_Kept)
    one, other = make(number=1), make(number=1)
    assert one == other == _Kept(number=1)
    one._seen.append(1)  # noqa: SLF001 - a private attribute is the test
    assert other._seen == []  # noqa: SLF001 - a private attribute is the test


def test_a_field_that_is_missing_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Decision .*: status"):
        maker(Decision)(thought="none")  # type: ignore[call-arg]  # that one is missing is the test


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Usage .*: stairs"):
        maker(Usage)(stairs=1)


class _Named(BaseModel):
    name: str = Field(alias="Name")


class _Derived(BaseModel):
    name: str
    other: str = Field(default_factory=lambda known: str(known["name"]))


@pytest.mark.parametrize("model", [_Named, _Derived])
def test_a_class_that_needs_its_validator_is_refused(model: type[BaseModel]) -> None:
    with pytest.raises(TypeError, match="only its validator"):
        maker(model)


def test_maker_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="not a model class"):
        maker(dict)  # type: ignore[type-var]  # that it is none is the test
