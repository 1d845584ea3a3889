"""Construct values from validated parts without validating them again."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable


_P = ParamSpec("_P")
_M = TypeVar("_M", bound=BaseModel)

_set = object.__setattr__

_shared_set = lru_cache(maxsize=1024)(cast("Callable[[tuple[str, ...]], set[str]]", set))
"""Return the set of some fields' names, shared by all values that have these: they are frozen, so it never changes."""


def maker(model: Callable[_P, _M]) -> Callable[_P, _M]:
    """Return a constructor of a model class that validates nothing.

    It is for values that this package makes itself, from parts that already have the fields' types. It converts and
    copies nothing, and runs no validator of the class. Data from outside goes through the class.

    Raises:
        TypeError: If the class is no model, or has fields that only its validator can fill: with an alias, or with a
            default that depends on other fields.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        msg = f"{model!r} is not a model class"
        raise TypeError(msg)
    fields = model.model_fields
    unfit = sorted(
        name
        for name, field in fields.items()
        if field.alias is not None or field.validation_alias is not None or field.default_factory_takes_validated_data
    )
    if unfit:
        msg = f"{model.__name__}: fields that only its validator can fill: {', '.join(unfit)}"
        raise TypeError(msg)
    required = frozenset(name for name, field in fields.items() if field.is_required())
    factories = {  # defaults that each value needs its own copy of: they come from a function, or are mutable
        name: cast("Callable[[], Any]", field.default_factory or partial(deepcopy, field.default))
        for name, field in fields.items()
        if name not in required and (field.default_factory or not isinstance(field.default, Hashable))
    }
    template = {name: None if name in {*required, *factories} else field.default for name, field in fields.items()}
    prepares = model.__pydantic_post_init__ is not None  # private attributes, or a hook of its own
    new = cast("Callable[[type[BaseModel]], _M]", model.__new__)

    def make(*_: _P.args, **values: _P.kwargs) -> _M:
        members: dict[str, Any] = {**template, **values}  # in the order of the fields
        if len(members) != len(template) or not required <= values.keys():
            wrong = sorted(values.keys() - template.keys()) or sorted(required - values.keys())
            msg = f"{model.__name__} has other fields, or needs more: {', '.join(wrong)}"
            raise TypeError(msg)
        for name, factory in factories.items():
            if name not in values:
                members[name] = factory()
        value = new(model)
        _set(value, "__dict__", members)
        _set(value, "__pydantic_fields_set__", _shared_set(tuple(values)))
        _set(value, "__pydantic_extra__", None)
        _set(value, "__pydantic_private__", None)
        if prepares:
            value.model_post_init(None)
        return value

    return make
