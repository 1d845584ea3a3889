"""Find and replace the parts of messages by their type."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Collection

Exchanges = Mapping[type, Callable[[Any], object]]
"""Replacement functions, by the type of the part they replace."""


def exchanged(value: Any, exchanges: Exchanges) -> Any:
    """Replace all parts of some types in a message.

    A message without such parts is returned as the same object.

    The fields to search are derived from the types, once per class. Replacements are not searched.

    Args:
        value: The message, or a part of one.
        exchanges: The replacement functions. An item of a tuple is removed if its replacement is None.
    """
    exchange = exchanges.get(type(value))
    if exchange is not None:
        return exchange(value)
    if isinstance(value, BaseModel):
        changes = {}
        for name in holders(type(value), *exchanges):
            part = getattr(value, name)
            if not part:
                continue
            exchange = exchanges.get(type(part))
            new = exchange(part) if exchange is not None else exchanged(part, exchanges)
            if new is not part:
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
def holders(model: type[BaseModel], *kinds: type[Any], beside: type[BaseModel] | None = None) -> tuple[str, ...]:
    """List a model's fields that can contain some types at any depth.

    The parts of the type `beside` are not searched.
    """
    fields, searched = model.model_fields.items(), frozenset({beside})
    return tuple(name for name, field in fields if _can_hold(field.annotation, kinds, searched))


def _can_hold(annotation: object, kinds: Collection[type], within: frozenset[object]) -> bool:
    if annotation in kinds:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = [] if annotation in within else annotation.model_fields.values()
        return any(_can_hold(field.annotation, kinds, within | {annotation}) for field in fields)
    return any(_can_hold(argument, kinds, within) for argument in get_args(annotation))
