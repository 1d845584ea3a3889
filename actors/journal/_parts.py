"""Find and exchange the parts of messages, and limit the depth of their JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

import pydantic_core
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Collection

Exchanges = Mapping[type, Callable[[Any], object]]
"""Functions by the types of the parts that they get; each gives what stands in a part's place."""

SHALLOW = 150
"""So many brackets in a JSON text, and it can't be too deep to be read again; that ends at 200."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def exchanged(value: Any, exchanges: Exchanges) -> Any:  # noqa: ANN401 - any part of a message
    """Give a message with each part of some types exchanged; the same object where there is none.

    Which fields can have one is read from the types, once a class. What stands in a part's place is not searched.

    Args:
        value: The message, or a part of one.
        exchanges: Functions by the types of the parts. Of a tuple's parts, those that become None are left out.
    """
    exchange = exchanges.get(type(value))
    if exchange is not None:
        return exchange(value)
    if isinstance(value, BaseModel):
        changes = {}
        for name in holders(type(value), *exchanges):
            part = getattr(value, name)
            if part and (new := exchanged(part, exchanges)) is not part:
                changes[name] = new
        return value.model_copy(update=changes) if changes else value
    if isinstance(value, tuple):
        items, same = [], True
        for item in value:
            new = exchanged(item, exchanges)
            same = same and new is item
            if new is not None or item is None:
                items.append(new)
        return value if same else tuple(items)
    return value


@functools.cache
def holders(model: type[BaseModel], *kinds: type[Any]) -> tuple[str, ...]:
    """Name the fields of a model that can have a part of some types in them, at whatever depth."""
    fields = model.model_fields.items()
    return tuple(name for name, field in fields if _can_hold(field.annotation, kinds, frozenset()))


def _can_hold(annotation: object, kinds: Collection[type], within: frozenset[object]) -> bool:
    if annotation in kinds:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = [] if annotation in within else annotation.model_fields.values()
        return any(_can_hold(field.annotation, kinds, within | {annotation}) for field in fields)
    return any(_can_hold(argument, kinds, within) for argument in get_args(annotation))


def check_depth(body: bytes) -> None:
    """Refuse a JSON text that is too deep to be read again.

    Raises:
        ValueError: If it has more than 200 levels.
    """
    if body.count(b"[") + body.count(b"{") > SHALLOW and _may_be_deep(body):
        pydantic_core.from_json(body, cache_strings="none")


def _may_be_deep(body: bytes) -> bool:
    """Say whether brackets may be nested deeper than `SHALLOW`; an odd one in a text is taken for that too.

    To read a long list again, only to know that it can be read, would cost more than to write it.
    """
    brackets = body.translate(None, _NO_BRACKETS)
    for _ in range(SHALLOW):
        outer = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(outer) == len(brackets):
            break
        brackets = outer
    return bool(brackets)
