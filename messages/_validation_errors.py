"""Validation errors of pydantic, in plain English.

Neither its words nor the names of classes are shown.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from callboard.messages._texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_KEY = "[key]"
"""The last part of the place of a wrong key."""
_FORMS = {
    "bool": "true or false",
    "bytes": "text",
    "date": "a date, such as 2030-12-31",
    "datetime": "a date and time with its time zone, such as 2030-12-31T18:00:00+01:00",
    "dict": "a mapping of keys to values",
    "finite_number": "a finite number",
    "float": "a number",
    "frozen_set": "a list",
    "int": "a whole number",
    "list": "a list",
    "mapping": "a mapping of keys to values",
    "model": "a mapping of keys to values",
    "path": "text",
    "set": "a list",
    "string": "text",
    "time_delta": "a number of seconds",
    "timezone": "a date and time with its time zone, such as 2030-12-31T18:00:00+01:00",
    "tuple": "a list",
}
"""The expected forms, by the first words of the types of errors."""
_BOUNDS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "missing": "is missing",
    "json_invalid": "is not valid JSON: {error}",
}
_NO_JSON = "must be text, a number, true or false, a list or a mapping"
_LONGEST_PATTERN = 60
"""The most characters of a pattern that helps a person."""
_LONGEST_PART = 200
"""The most characters of a key that are shown."""
_OF_UNION = re.compile(
    r"(?:constrained-|function-|literal\[|tuple\[|list\[|dict\[|lax-or-strict\[|json-or-python\[|is-instance\[|union\[).*"
    r"|str|int|float|bool|list|dict"
)
"""The parts of an error's place that name a possible type of the value, and no key."""
_PREFIXES = ("Value error, ", "Assertion failed, ")


def plain_problems(problems: Iterable[Any], keys: Callable[[Sequence[Any]], Sequence[str]] = lambda _: ()) -> list[str]:
    """Describe the errors of a validation, a line for each place.

    Args:
        problems: The items of `ValidationError.errors()`. Values are not shown, since they may be secrets.
        keys: Lists the known keys at the place of an unknown one; `keys_of` makes it of a model.
    """
    reasons: dict[str, list[str]] = {}
    located = [(_without_types(problem["loc"]), problem) for problem in problems]
    around = {tuple(loc[:size]) for loc, _ in located for size in range(len(loc))}
    for loc, problem in located:
        kind = problem["type"]
        if tuple(loc) in around and (kind == "too_short" or kind.endswith("_type")):
            continue  # the problems are in its entries, which are not counted or have the form of another type
        if loc[-1:] == [_KEY] and isinstance(problem["input"], str):
            place, reason = loc[:-1], f"the key {_reason(problem)}"
        elif loc[-1:] == [_KEY]:
            place, reason = loc[:-2], f"the key {_key(problem['input'])}{_reason(problem)}"
        elif kind == "invalid_key":
            key = problem["input"]
            place, reason = loc[:-1], f"the key {_key(key)}must be text{_advice('text', key)}"
        elif kind == "extra_forbidden":
            known = keys(problem["loc"])
            hint = did_you_mean(str(loc[-1]), known, f"known: {', '.join(known)}" if known else "")
            place, reason = loc, f"unknown key{hint}"
        else:
            place, reason = loc, _reason(problem)
        reasons.setdefault(".".join(map(_short, place)), []).append(reason)
    return [": ".join(filter(None, (place, _either(texts)))) for place, texts in reasons.items()]


def keys_of(model: type[BaseModel]) -> Callable[[Sequence[Any]], list[str]]:
    """Return a function that lists the known keys at a place."""

    def keys(loc: Sequence[Any]) -> list[str]:
        models = [model]
        for part in loc[:-1]:
            if isinstance(part, str) and _OF_UNION.fullmatch(part):
                models = [other for other in models if other.__name__ in part] or models
                continue
            fields = [other.model_fields.get(str(part)) for other in models]
            annotations = [field.annotation for field in fields if field is not None]
            models = (
                [inner for annotation in annotations for inner in _models_in(annotation)] if annotations else models
            )
        return [field.alias or name for other in models for name, field in other.model_fields.items()]

    return keys


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]


def _without_types(loc: Sequence[Any]) -> list[Any]:
    """Leave out the parts of a place that name possible types."""
    return [part for part in loc if not (isinstance(part, str) and _OF_UNION.fullmatch(part))]


def _short(part: object) -> str:
    text = str(part)
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}…"


def _either(reasons: Sequence[str]) -> str:
    """Join the reasons why a value has none of its possible types."""
    first, *others = dict.fromkeys(reasons)
    return ", or ".join([first, *(reason.removeprefix("must be ") for reason in others)])


def _key(key: object) -> str:
    """Show a key that is not text.

    YAML reads several words as true, and as false.
    """
    return "" if isinstance(key, bool) or key is None else f"{key} "


def form_of(value: object) -> str:
    """Describe a value by its form in a file, without showing it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case dt.date():
            return "a date"
        case dict():
            return "a mapping of keys to values"
        case list() | tuple() | set():
            return "a list"
        case _:
            return "another type"


def _reason(problem: Any) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in {"literal_error", "enum"}:
        return f"must be {context['expected']}"
    if kind in {"string_too_short", "too_short"} and context["min_length"] == 1:
        return "is empty"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return "has the wrong form" + (f": it must match {pattern}" if len(pattern) <= _LONGEST_PATTERN else "")
    if kind == "invalid-json-value":
        value = problem["input"]
        return _reason({**problem, "type": "string_type"}) if isinstance(value, dt.date) else _NO_JSON
    if kind in _BOUNDS:
        numbers = {name: f"{bound:,g}" if isinstance(bound, float) else bound for name, bound in context.items()}
        return _BOUNDS[kind].format_map(numbers)
    form = next((_FORMS[name] for name in _beginnings(kind) if name in _FORMS), None)
    if form is not None:
        return f"must be {form}{_advice(form, problem.get('input'))}"
    text = str(problem["msg"])
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return text.replace("Input should", "it should", 1)


def _advice(form: str, value: object) -> str:
    """Say what to do about a value of another form."""
    if form == "text" and isinstance(value, bool | int | float | dt.date):
        return f", and is read as {form_of(value)}: put it in quotes"
    if form == "text":
        return f", not {form_of(value)}"
    if form == "a list" and isinstance(value, str):
        return ": put it in brackets, as in [one, two]"
    return ""


def _beginnings(kind: str) -> list[str]:
    """List the beginnings of an error's type, the longest first."""
    words = kind.split("_")
    return ["_".join(words[:count]) for count in range(len(words), 0, -1)]
