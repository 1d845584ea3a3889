"""The docstrings of a model's fields as descriptions in its JSON schema."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from pydantic import BaseModel, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

_GENERATED = {"kind", "schema_version", "id"}
"""Fields that a program seldom sets."""


class DocumentedFields:
    """A base of models whose fields have docstrings as descriptions.

    The source is read when a JSON schema is made. pydantic's `use_attribute_docstrings` reads it when the class is
    made, which would be an eighth of the time of a short command.
    """

    if not TYPE_CHECKING:  # type checkers read the signature of the fields

        def __new__(cls, *values: object, **_: object) -> Self:
            """Refuse values without names.

            Raises:
                TypeError: With the name of the first field.
            """
            if values:
                name = next(name for name in cls.model_fields if name not in _GENERATED)
                msg = f"{cls.__name__} takes its fields by name: {cls.__name__}({name}=...)"
                raise TypeError(msg)
            return super().__new__(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with a description of each field."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        descriptions = field_descriptions(cls)  # type: ignore[arg-type] # a base of models only
        for name, field in cls.model_fields.items():  # type: ignore[attr-defined]
            prop = properties.get(name, properties.get(field.alias))
            if prop is not None and name in descriptions:
                prop.setdefault("description", descriptions[name])
        return schema


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the descriptions of a model's fields, by name.

    They are those given to `Field`, and else the docstrings, also those of base classes. Without the source there are
    no docstrings.
    """
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, DocumentedFields):
            descriptions |= _docstrings(base.__module__).get(base.__qualname__, {})
    explicit = {name: field.description for name, field in model.model_fields.items() if field.description}
    return {**descriptions, **explicit}


@functools.cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Read the docstrings of all annotated attributes in a module, by class."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):  # the source was not installed, or the class was made in a terminal
        return {}
    return {node.name: dict(_of_class(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in itertools.pairwise(node.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                yield name, inspect.cleandoc(text)
