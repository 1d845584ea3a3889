"""Every message survives JSON, is frozen and strict, and refuses unknown fields."""

from __future__ import annotations

import enum
import functools
import json
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, MinLen
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, StringConstraints, ValidationError

import callboard.messages
from callboard.messages import (
    Budget,
    ControlQuery,
    Message,
    Outcome,
    OutputT,
    PlanStep,
    Reading,
    SubtaskEnding,
    SubtaskResult,
    Target,
    TargetKind,
    Task,
    TaskLimits,
    Value,
)

MESSAGES = {
    tag: message for tag, message in sorted(Message.registry.items()) if message.__module__.startswith("callboard.")
}
every_message = pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)

WORDS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def texts(constraints: list[StringConstraints]) -> st.SearchStrategy[str]:
    for constraint in constraints:
        if constraint.pattern:
            return st.from_regex(str(constraint.pattern), fullmatch=True).filter(lambda text: len(text) <= 500)
        return st.text(min_size=constraint.min_length or 0, max_size=min(30, constraint.max_length or 30))
    return WORDS


def values(annotation: Any, metadata: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:  # noqa: C901
    """Make values of a field's type that its constraints allow."""
    lowest = next((m.ge if isinstance(m, Ge) else m.gt for m in metadata if isinstance(m, Ge | Gt)), None)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is JsonValue or annotation is OutputT:
        return JSON
    if origin is Annotated:
        return values(arguments[0], (*metadata, *arguments[1:]))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in {Union, UnionType}:
        return st.one_of([values(argument) for argument in arguments])
    if origin is tuple:
        least = next((m.min_length for m in metadata if isinstance(m, MinLen)), 0)
        return st.lists(values(arguments[0]), min_size=least, max_size=max(least, 2)).map(tuple)
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return st.sampled_from(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return instances(annotation)
    if annotation is str:
        least = next((m.min_length for m in metadata if isinstance(m, MinLen)), 0)
        return texts([m for m in metadata if isinstance(m, StringConstraints)] or [StringConstraints(min_length=least)])
    if annotation is int:
        return st.integers(min_value=lowest, max_value=2**62)
    if annotation is float:
        above = any(isinstance(m, Gt) for m in metadata)
        return st.floats(min_value=lowest, exclude_min=above, allow_nan=False, allow_infinity=False)
    return {bool: st.booleans(), bytes: st.binary(max_size=20), NoneType: st.none()}[annotation]


@functools.cache
def instances(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Make instances of a model."""
    fields = {
        name: st.deferred(lambda field=field: values(field.annotation, tuple(field.metadata)))
        for name, field in model.model_fields.items()
        if name not in {"kind", "schema_version"}
    }
    work = WORDS.filter(str.strip)
    if model is PlanStep:
        fields["request"] = work
        without_target = {name: field for name, field in fields.items() if name not in {"target", "needs"}}
        return st.builds(PlanStep, **without_target) | st.builds(PlanStep, **{**fields, "target": WORDS})
    if model is Target:
        fits = {"window": "app", "application": "app", "device": "mobile", "shell": "linux"}
        rest = {name: field for name, field in fields.items() if name not in {"kind", "address"}}
        kinds = st.sampled_from(TargetKind)
        return kinds.flatmap(
            lambda kind: st.builds(
                Target, kind=st.just(kind), address=st.sampled_from([f"{fits[kind]}/one", f"{fits[kind]}/a/b"]), **rest
            )
        )
    if issubclass(model, SubtaskEnding):
        outcomes = st.sampled_from(sorted(model.outcomes))
        fields["result"] = st.builds(
            lambda result, outcome: result.model_copy(update={"outcome": outcome}), instances(SubtaskResult), outcomes
        )
    if model is TaskLimits:
        counts, spans = st.integers(min_value=200, max_value=9999), st.floats(min_value=0.5, max_value=3600.0)
        fields = {name: st.none() | (spans if name.endswith("_seconds") else counts) for name in model.model_fields}
    if model is Budget:
        fields = {name: st.none() | st.integers(min_value=0, max_value=9999) for name in model.model_fields}
        fields["cost"] = st.none() | st.floats(min_value=0, max_value=99)
    if issubclass(model, Reading):
        return readings(model)
    if model is Task:
        new = fields["id"].map(lambda name: name.replace(":", "-").rstrip("."))
        shared = {"id": new, "labels": fields["labels"]}
        plans, session = st.lists(instances(PlanStep), min_size=1, max_size=3).map(in_order), fields["session"]
        planned = st.builds(Task, request=WORDS, plan=plans, session=session, **shared)
        followed = st.builds(Task, request=work, session=session, **shared)
        return planned | followed | st.builds(Task, request=work, target=fields["target"], **shared)
    return st.builds(model, **fields)


def in_order(plan: list[PlanStep]) -> list[PlanStep]:
    """Put a plan's steps in an order, if all have targets."""
    ordered = all(step.target is not None for step in plan)
    return [
        step.model_copy(update={"name": f"step {place}", "after": tuple(range(1, place)) if ordered else None})
        for place, step in enumerate(plan, 1)
    ]


def readings(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Make readings and checks, which have one form and one matcher."""
    word = st.text(min_size=1, max_size=20)
    inside = st.text(st.characters(codec="utf-8", exclude_characters="/\\~.:"), min_size=1, max_size=20)
    places = {**dict.fromkeys(("cells", "table", "text", "chart"), inside), "tool": word, "command": word}
    forms = [st.fixed_dictionaries({name: texts}, optional={"path": st.just("/0")}) for name, texts in places.items()]
    queries = st.builds(ControlQuery, target=word, name=word.filter(str.strip))
    forms.append(st.fixed_dictionaries({"control": queries}))
    given = st.one_of(forms)
    if model is Reading:
        return given.map(lambda fields: model(**fields))
    matchers = [
        st.fixed_dictionaries({"equals": JSON.filter(lambda value: value is not None)}),
        st.fixed_dictionaries({"contains": st.integers() | st.text(max_size=20).filter(str.strip)}),
        st.fixed_dictionaries({"approx": st.floats(0, 9), "tolerance": st.floats(0, 9)}),
        st.fixed_dictionaries({"same_as": instances(Reading)}),
        st.fixed_dictionaries({"schema": st.just({"type": "string"})}),
        st.fixed_dictionaries({"between": st.just((1, 2.5))}),
    ]
    options = {"name": WORDS, "within": st.floats(0, 60), "show": st.sampled_from(["name", "found", "all"])}
    both = st.tuples(given, st.one_of(matchers), st.fixed_dictionaries({}, optional=options))

    checks = both.map(lambda parts: model(**parts[0], **parts[1], **parts[2]))
    return checks | st.builds(model, only=st.lists(word, min_size=1, max_size=2).map(tuple))


@functools.cache
def an_instance(model: type[BaseModel]) -> Any:
    """Give one that is as good as any other."""
    return find(
        instances(model), lambda _: True, settings=settings(max_examples=10, phases=[Phase.generate], database=None)
    )


def told_by(message: type[Message]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(an_instance(message).model_dump_json())
    return told


ANY_MESSAGE = st.sampled_from(list(MESSAGES.values())).flatmap(instances)


@every_message
@settings(max_examples=15)
@given(data=st.data())
def test_a_message_comes_back_from_json_as_it_was(message, data):
    sent = data.draw(instances(message))
    assert message.model_validate_json(sent.model_dump_json()) == sent


@given(ANY_MESSAGE)
def test_the_tag_in_the_json_tells_the_class(sent):
    told = json.loads(sent.model_dump_json())
    assert Message.registry[told["kind"]] is type(sent)
    assert told["schema_version"] == 1


@given(ANY_MESSAGE)
def test_the_json_of_a_message_is_strict_json(sent):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads(sent.model_dump_json(), parse_constant=refuse)


@every_message
def test_a_message_can_not_be_changed(message):
    sent = an_instance(message)
    for name in message.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(sent, name, getattr(sent, name))


@every_message
def test_an_unknown_key_is_refused(message):
    told = told_by(message)
    with pytest.raises(ValidationError, match="extra_forbidden"):
        message.model_validate_json(json.dumps({**told, "surprise": 1}))


@every_message
@pytest.mark.parametrize("version", [0, 2, -1, "1", "", None, 1.5, [1]])
def test_an_unknown_version_of_the_schema_is_refused(message, version):
    told = told_by(message)
    with pytest.raises(ValidationError, match="schema_version"):
        message.model_validate_json(json.dumps({**told, "schema_version": version}))


@every_message
def test_another_messages_tag_is_refused(message):
    told = told_by(message)
    other = next(tag for tag in MESSAGES if tag != told["kind"])
    with pytest.raises(ValidationError, match="kind"):
        message.model_validate_json(json.dumps({**told, "kind": other}))


@every_message
def test_a_value_of_the_wrong_type_is_refused_in_every_field(message):
    given_fields = dict(an_instance(message))
    for name in message.model_fields:
        with pytest.raises(ValidationError, match=name):
            message.model_validate({**given_fields, name: object()})


def fields_of(*types: type) -> list[Any]:
    parts = [model for model in vars(callboard.messages).values() if isinstance(model, type)]
    models = [model for model in parts if issubclass(model, Value) and model not in {Value, Message, SubtaskEnding}]
    return [
        pytest.param(model, name, id=f"{model.__name__}.{name}")
        for model in models
        for name, field in model.model_fields.items()
        if field.annotation in types
    ]


@pytest.mark.parametrize(("model", "name"), fields_of(int, float))
def test_a_number_in_a_text_is_not_taken_for_a_number(model, name):
    given_fields = dict(an_instance(model))
    for wrong in ("1", True):
        with pytest.raises(ValidationError, match=name):
            model.model_validate({**given_fields, name: wrong})


@pytest.mark.parametrize(("model", "name"), fields_of(float))
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_number_that_json_lacks_is_refused(model, name, wrong):
    given_fields = dict(an_instance(model))
    with pytest.raises(ValidationError, match=name):
        model.model_validate({**given_fields, name: wrong})


def test_every_message_that_is_public_is_registered_under_a_tag_of_its_own():
    public = {
        model
        for model in vars(callboard.messages).values()
        if isinstance(model, type) and issubclass(model, Message) and "kind" in model.model_fields
    }
    assert set(MESSAGES.values()) == public
    assert len({message.model_fields["kind"].default for message in public}) == len(public)


OLD_NAMES = {"RoundEnding": "RoundEnded", "StepFailure": "StepFailed"}
"""The classes whose former names events have now; their tags stay, because journals hold them."""


@every_message
def test_the_tag_is_the_class_name_in_snake_case(message):
    name = OLD_NAMES.get(message.__name__, message.__name__)
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    assert message.model_fields["kind"].default == words.lstrip("_")


def test_two_messages_can_not_share_a_tag():
    with pytest.raises(TypeError, match="share the tag 'task'"):

        class Impostor(Message):
            kind: Literal["task"] = "task"


@every_message
def test_every_message_has_a_json_schema_and_a_docstring(message):
    assert message.model_json_schema()["additionalProperties"] is False
    assert message.__doc__


def test_every_outcome_has_one_ending_of_a_subtask():
    endings = [message for message in MESSAGES.values() if issubclass(message, SubtaskEnding)]
    carried = [outcome for ending in endings for outcome in ending.outcomes]
    assert sorted(carried) == sorted(Outcome)
