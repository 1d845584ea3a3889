"""Find and exchange the parts of messages, and limit the depth of their JSON."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import pydantic_core
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

SHALLOW = 150
"""So many brackets in a JSON text, and it can't be too deep to be read again; that ends at 200."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

_V = TypeVar("_V")
_P = TypeVar("_P")


def exchanged(value: _V, kind: type[_P], exchange: Callable[[_P], _P | None]) -> _V:
    """Give a message with each part of a type exchanged; the same object where there is none.

    Which fields can have one is read from the types, once a class, so that a message that can't have one costs nothing.

    Args:
        value: The message, or a part of one.
        kind: The type of the parts.
        exchange: Gives what stands in a part's place; of a tuple's parts, those that become None are left out.
    """
    found: _V = _exchanged(value, kind, exchange)
    return found


def _exchanged(value: Any, kind: type[Any], exchange: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any part of a message
    if isinstance(value, kind):
        return exchange(value)
    match value:
        case BaseModel():
            changes = {}
            for name in holders(type(value), kind):  # type: ignore[arg-type]  # a class can be hashed
                part = getattr(value, name)
                if part is None or (type(part) is tuple and not part):
                    continue
                if (new := _exchanged(part, kind, exchange)) is not part:
                    changes[name] = new
            return value.model_copy(update=changes) if changes else value
        case tuple():
            items = tuple(_exchanged(item, kind, exchange) for item in value)
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return tuple(new for new, old in zip(items, value, strict=True) if new is not None or old is None)
        case _:
            return value


@functools.cache
def holders(model: type[BaseModel], kind: type[Any]) -> tuple[str, ...]:
    """Name the fields of a model that can have a part of a type in them, at whatever depth."""
    return tuple(name for name, field in model.model_fields.items() if _can_hold(field.annotation, kind, frozenset()))


def _can_hold(annotation: object, kind: type, within: frozenset[object]) -> bool:
    if annotation is kind:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = [] if annotation in within else annotation.model_fields.values()
        return any(_can_hold(field.annotation, kind, within | {annotation}) for field in fields)
    return any(_can_hold(argument, kind, within) for argument in get_args(annotation))


def check_depth(body: str) -> None:
    """Refuse a JSON text that is too deep to be read again.

    Raises:
        ValueError: If it has more than 200 levels.
    """
    if body.count("[") + body.count("{") > SHALLOW and _may_be_deep(body):
        pydantic_core.from_json(body, cache_strings="none")


def _may_be_deep(body: str) -> bool:
    """Say whether brackets may be nested deeper than `SHALLOW`; an odd one in a text is taken for that too.

    To read a long list again, only to know that it can be read, would cost more than to write it.
    """
    brackets = body.encode().translate(None, _NO_BRACKETS)
    for _ in range(SHALLOW):
        outer = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(outer) == len(brackets):
            break
        brackets = outer
    return bool(brackets)
