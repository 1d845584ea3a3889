"""The docstrings of fields in JSON schemas."""

from __future__ import annotations

import pytest
from pydantic import ConfigDict, Field, TypeAdapter

from callboard.messages import Check, DocumentedFields, Message, PlanStep, Task, TaskResult, Value, field_descriptions


class Part(DocumentedFields, Value):
    """A part."""

    model_config = ConfigDict(validate_by_name=True)

    size: int = 0
    """The size,
    in mm."""
    weight: float = Field(default=0.0, description="The weight.")
    """Not this."""
    bare: str = ""
    from_: str = Field(default="", alias="from")
    """The origin."""


class Special(Part):
    """A part with a price."""

    price: float = 0.0
    """The price."""


class Kit(Value):
    """Some parts; its own fields are not described."""

    parts: tuple[Special, ...] = ()
    """The parts."""


def test_schema_has_the_docstrings_of_fields_and_of_base_classes():
    properties = Special.model_json_schema()["properties"]
    assert {name: prop.get("description") for name, prop in properties.items()} == {
        "size": "The size,\nin mm.",
        "weight": "The weight.",
        "bare": None,
        "from": "The origin.",
        "price": "The price.",
    }
    assert Special.model_json_schema(by_alias=False)["properties"]["from_"]["description"] == "The origin."


def test_nested_model_is_described_and_the_outer_one_is_not():
    schema = Kit.model_json_schema()
    assert schema["$defs"]["Special"]["properties"]["price"]["description"] == "The price."
    assert "description" not in schema["properties"]["parts"]


def test_descriptions_are_found_without_a_schema():
    assert field_descriptions(Special) == {
        "size": "The size,\nin mm.",
        "weight": "The weight.",
        "from_": "The origin.",
        "price": "The price.",
    }


def test_class_without_source_has_no_docstrings():
    namespace = {"__name__": "made_in_a_terminal", "DocumentedFields": DocumentedFields, "Value": Value}
    exec("class Typed(DocumentedFields, Value):\n    size: int = 0\n    'The size.'", namespace)  # noqa: S102 - as typed
    assert field_descriptions(namespace["Typed"]) == {}
    assert "size" in namespace["Typed"].model_json_schema()["properties"]


@pytest.mark.parametrize(
    "model", [Check, PlanStep, Task, TaskResult[int], TaskResult], ids=lambda model: model.__name__
)
def test_fields_that_people_write_are_described(model):
    properties = model.model_json_schema()["properties"]
    bare = {name for name, prop in properties.items() if "description" not in prop}
    assert bare <= {"kind"}


def test_every_schema_can_be_written():
    for message in Message.registry.values():
        assert TypeAdapter(message).json_schema()["properties"]


@pytest.mark.parametrize(
    ("make", "form"), [(Task, "Task(request=...)"), (Check, "Check(cells=...)"), (PlanStep, "PlanStep(request=...)")]
)
def test_values_without_names_are_refused_with_the_right_form(make, form):
    with pytest.raises(TypeError) as info:
        make("x")
    assert str(info.value) == f"{make.__name__} takes its fields by name: {form}"
