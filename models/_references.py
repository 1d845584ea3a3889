"""References to earlier results.

An answer can pass on a value without copying it. ``${subtasks.1.output.rows}`` stands for the member ``rows`` of the
first subtask's output, and ``${steps.2.results.0.value}`` for the value returned by the first action of the agent's
second step. A reference must be a whole argument or result. It is replaced by the value, of any type; references inside
the value are not replaced.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from callboard.messages import InvalidAnswerError, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import CommandResult, Observation, StepRecord, SubtaskResult

LONG = 200
"""Minimum length of a text that gets a reference; lists always get one."""
MOST = 12
"""Maximum number of references listed to a model, newest first; others are valid, too."""
_DEEPEST = 3
_SAMPLE = 20
"""Number of items validated before a list is offered; the call is validated with all items."""
_NOTHING: tuple[JsonValue, ...] = (None, "", [], {})
_SECRET = "${secret:"  # noqa: S105 - the prefix, no secret
_REFERENCE = re.compile(r"\$\{((?:subtasks|steps)\.[^{}]*)\}")
_ANY_REFERENCE = re.compile(r"\$\{((?!secret:)[^}]*)\}")
_PART = re.compile(r"\$\$\{|\$\{((?!secret:)[^}]*)\}")
_INDEX = re.compile(r"\d{1,9}")
"""The place of an item in a list; Python makes no number of thousands of digits."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
"""Allowed member names in references: they may come from a document, and appear in a schema."""


class References:
    """The outputs and results that an answer can refer to."""

    def __init__(
        self, memory: Sequence[StepRecord], subtasks: Sequence[SubtaskResult], observation: Observation | None = None
    ) -> None:
        """Collect the results, and the observations up to `observation`.

        The answer is based on `observation`.
        """
        self._seen = [*(record.observation for record in memory), *([] if observation is None else [observation])]
        self._tree: dict[str, Any] = {
            "subtasks": {str(done.number): {"output": done.output} for done in subtasks if done.output is not None},
            "steps": {
                str(number): results_tree(record.results) for number, record in enumerate(memory, 1) if record.results
            },
        }

    def results(self) -> dict[str, JsonValue]:
        """Return all whole results by reference, newest first."""
        return {
            **{
                f"${{steps.{number}.results.{index}.value}}": result["value"]
                for number, step in reversed(self._tree["steps"].items())
                for index, result in reversed(list(enumerate(step["results"])))
                if "value" in result
            },
            **{
                f"${{subtasks.{number}.output}}": done["output"]
                for number, done in reversed(self._tree["subtasks"].items())
            },
        }

    def parts(self) -> dict[str, JsonValue]:
        """Return lists and long texts within the results by reference, newest first."""
        all_parts = (part for name, value in self.results().items() for part in _parts(name[2:-1], value, 0))
        named = {f"${{{name}}}": value for name, value in all_parts if not _holds_secret(value)}
        return dict(list(named.items())[:MOST])

    def put_in(self, value: JsonValue, *, result: bool = False) -> JsonValue:
        """Return the referenced value if `value` is a reference, else `value` itself.

        A reference that was not offered and occurs in an observation or a result was copied from there, and stays text.
        Those offered are `parts`, and for a `result` also `results`.

        Raises:
            InvalidAnswerError: If the reference can't be resolved, its value contains the name of a secret, which would
                be disclosed, or an offered reference is only a part of a text, where it is not replaced.
        """
        if not isinstance(value, str) or not _REFERENCE.search(value):
            return value
        match = _REFERENCE.fullmatch(value.strip())
        if match is None:
            self._refuse_parts(value)
            return value
        offered = {*self.parts(), *(self.results() if result else ())}
        if match[0] not in offered and self._stands(match[0]):
            return value
        try:
            referent: JsonValue = look_up(match[1], self._tree)
        except LookupError as error:
            there = ", ".join((*self.parts(), *self.results()))
            what = f"you can refer to: {there}" if there else "there is nothing to refer to yet: call a tool first"
            msg = f"{error.args[0]}; {what}"
            raise InvalidAnswerError(msg) from error
        if _holds_secret(referent):
            msg = f"{value} holds the name of a secret, and can't be passed on as a whole; write what you need of it"
            raise InvalidAnswerError(msg)
        return referent

    def _refuse_parts(self, text: str) -> None:
        there = {*self.parts(), *self.results()}
        inside = (match[0] for match in _REFERENCE.finditer(text))
        reference = next((name for name in inside if name in there and not self._stands(name)), None)
        if reference is not None:
            alone = ", ".join(list(self.results())[:MOST])
            msg = (
                f"{reference} stands for the data only where it is the whole value, and nothing beside it: "
                f"one of {alone}"
            )
            raise InvalidAnswerError(msg)

    def _stands(self, text: str) -> bool:
        """Return whether a text occurs in an observation or in a result."""
        observations = (observation.model_dump(exclude={"picture", "notes"}) for observation in self._seen)
        return any(text in part for source in (*observations, self._tree) for part in _texts(source))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (*_texts(key), *_texts(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def results_tree(results: Sequence[CommandResult]) -> dict[str, Any]:
    """Return the results of a step, as references see them.

    The only result is also available as `output`, as in subtasks.
    """
    values: list[dict[str, JsonValue]] = [
        {"value": result.value} if result.status is ResultStatus.SUCCESS and result.value is not None else {}
        for result in results
    ]
    alone = values[0] if len(values) == 1 else {}
    return {"results": values, **({"output": alone["value"]} if "value" in alone else {})}


def _parts(name: str, value: JsonValue, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if (isinstance(value, list) and any(item not in _NOTHING for item in value)) or (
        isinstance(value, str) and len(value) >= LONG
    ):
        yield name, value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, part in value.items():
            if is_plain(key):
                yield from _parts(f"{name}.{key}", part, depth + 1)


def is_plain(key: str) -> bool:
    """Return whether a member's name is allowed in a reference."""
    return _PLAIN.fullmatch(key) is not None


def _holds_secret(value: JsonValue) -> bool:
    return _SECRET in json.dumps(value, ensure_ascii=False)


def fitting(named: Mapping[str, JsonValue], part: object, root: Mapping[str, Any]) -> list[str]:
    """Return the references to lists that match a tool's parameter."""
    if not isinstance(part, dict):
        return []
    schema = {**part, "$defs": root.get("$defs", {})}
    return [name for name, value in named.items() if isinstance(value, list) and _fits(schema, _sample(value))]


def _fits(schema: dict[str, Any], value: JsonValue) -> bool:
    import jsonschema
    from referencing import Registry

    try:
        return jsonschema.Draft202012Validator(schema, registry=Registry()).is_valid(value)
    except Exception:  # any error: a third-party schema may be invalid
        return False


def _sample(value: JsonValue) -> JsonValue:
    return [_sample(item) for item in value[:_SAMPLE]] if isinstance(value, list) else value


def resolve(value: Any, tree: Mapping[str, Any]) -> Any:
    """Replace the references in a value of any form.

    A text that is one reference as a whole becomes the value that it refers to; within a longer text the reference
    becomes the value's text. ``$${`` stands for ``${``, and the name of a secret stays as it is.

    Raises:
        LookupError: If a reference leads nowhere, or its value holds the name of a secret: a document could have the
            secret put anywhere. The message names the reference.
    """
    if isinstance(value, dict):
        return {key: resolve(item, tree) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, tree) for item in value]
    if not isinstance(value, str):
        return value
    match = _ANY_REFERENCE.fullmatch(value)
    if match:
        found = look_up(match[1], tree)
        has_secret = _holds_secret(found)
    else:
        found = _PART.sub(lambda part: "${" if part[1] is None else str(look_up(part[1], tree)), value)
        has_secret = found.count(_SECRET) > value.count(_SECRET)
    if has_secret:
        msg = f"{value} holds the name of a secret, and can't be passed on"
        raise LookupError(msg)
    return found


def look_up(path: str, tree: Mapping[str, Any]) -> Any:
    """Resolve the path of a reference.

    Raises:
        LookupError: If a part is missing; the message names it.
    """
    current: Any = tree
    done: list[str] = []
    for part in path.strip().split("."):
        if isinstance(current, dict) and part in current:
            current = current[part]
        elif isinstance(current, list) and _INDEX.fullmatch(part) and int(part) < len(current):
            current = current[int(part)]
        else:
            there = (
                f"has {', '.join(map(str, current)) or 'nothing'}"
                if isinstance(current, dict)
                else f"is {current!r:.80}"
            )
            msg = f"${{{path}}} leads nowhere: {'.'.join(done) or 'what the agent sees'} {there}, not {part!r}"
            raise LookupError(msg)
        done.append(part)
    return current
