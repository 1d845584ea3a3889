"""The types of tasks' outputs: classes, or JSON Schemas."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Generic

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError

from callboard.messages import OutputT, OutputTypeError, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

MOST_PROBLEMS = 10
"""The most problems of an output that are listed for a model."""
MOST_CHARACTERS = 300
"""The most characters of a problem; the message of a schema's error quotes the value."""


class OutputType(Generic[OutputT]):
    """A type of output: a model, or another type that pydantic validates."""

    def __init__(self, output_type: type[OutputT]) -> None:
        """Prepare the type.

        Raises:
            TypeError: If pydantic can't validate it, or it has no JSON Schema that a task may have.
        """
        self.name = getattr(output_type, "__name__", None) or str(output_type)
        try:
            self._adapter: TypeAdapter[OutputT] = TypeAdapter(output_type)
            self.schema: dict[str, JsonValue] = self._adapter.json_schema()
            Task(request=self.name, output_schema=self.schema)  # its schema is checked
        except (PydanticUserError, PydanticUndefinedAnnotation, KeyError, ValidationError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
            msg = f"output_type: {self.name} can't be used, give a pydantic model or a type with a JSON Schema: {why}"
            raise TypeError(msg) from error

    def of(self, value: JsonValue) -> OutputT:
        """Return the instance that a JSON value stands for.

        Raises:
            OutputTypeError: If the value does not fit, or a validator of the type raises another error.
        """
        try:
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            raise OutputTypeError("; ".join(_listed(_of_pydantic(error)))) from error
        except Exception as error:  # an edge: the program's validators run here
            why = _said((), f"the output_type {self.name} raised {type(error).__name__}: {error}")
            raise OutputTypeError(why) from error

    def output_of(self, task_id: str, value: JsonValue) -> OutputT:
        """Return the output of a task that finished.

        Raises:
            OutputTypeError: If it does not fit, since the task was submitted with another type, or with none.
        """
        try:
            return self.of(value)
        except OutputTypeError as error:
            msg = f"the output of {task_id} is no {self.name}: {error}"
            raise OutputTypeError(msg) from error


class OutputTypes:
    """The types that the program gave for unfinished tasks. Thread-safe.

    It needs no lock: each operation on its dictionary is atomic. A task of an earlier process has none until the
    program gives it again.
    """

    def __init__(self) -> None:
        self._types: dict[str, OutputType[Any]] = {}

    def keep(self, task_id: str, schema: dict[str, JsonValue] | None, output_type: OutputType[Any] | None) -> None:
        """Keep the type of a task, if its schema is the task's."""
        if output_type is not None and output_type.schema == schema:
            self._types[task_id] = output_type

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._types.pop(task_id, None)

    def problem(self, task_id: str, schema: dict[str, JsonValue], value: JsonValue) -> str:
        """Return why a value is no output, or an empty text.

        The reason is for its model. The program's class decides, where there is one, else the schema.
        """
        output_type = self._types.get(task_id)
        if output_type is None:
            return "; ".join(_listed(_of_schema(schema, value)))
        try:
            output_type.of(value)
        except OutputTypeError as error:
            return str(error)
        return ""


def _of_pydantic(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        yield _said(detail["loc"], detail["msg"])


def _of_schema(schema: dict[str, JsonValue], value: JsonValue) -> Iterator[str]:
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = jsonschema.Draft202012Validator(schema, registry=Registry())  # fetches no references
    try:
        for error in validator.iter_errors(value):
            yield _said(error.absolute_path, error.message)
    except (re.error, RecursionError, Unresolvable) as error:
        yield _said((), f"can't be checked, submit the task again with its output_type: the schema is broken: {error}")


def _said(path: Iterable[int | str], what: str) -> str:
    return f"{'.'.join(['Result', *map(str, path)])}: {what[:MOST_CHARACTERS]}"


def _listed(problems: Iterator[str]) -> list[str]:
    """Return the first problems, and the number of the others."""
    texts = list(problems)
    more = [f"and {len(texts) - MOST_PROBLEMS} more"] if len(texts) > MOST_PROBLEMS else []
    return texts[:MOST_PROBLEMS] + more
