"""Construct values from validated parts without validating them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from pydantic import BaseModel

from callboard.messages._base import set_extra, set_fields, set_names, set_private

_P = ParamSpec("_P")
_M = TypeVar("_M", bound=BaseModel)

_MOST_FORMS = 1024
"""The most sets of names that a maker remembers; it checks any others at each call."""


class _Form(NamedTuple):
    """The parts of a value that depend on the given names alone."""

    given_names: set[str]
    """Shared by all values with these names: they are frozen, so it never changes."""
    own_defaults: list[tuple[str, Callable[[], Any]]]
    """The fields that were not given and whose defaults are made for each value."""


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
    forms: dict[tuple[str, ...], _Form] = {}

    def form_of(names: tuple[str, ...]) -> _Form:
        """Check the names of a call's values, once for each call site."""
        if not required <= set(names) <= template.keys():
            wrong = sorted(set(names) - template.keys()) or sorted(required.difference(names))
            msg = f"{model.__name__} has other fields, or needs more: {', '.join(wrong)}"
            raise TypeError(msg)
        form = _Form(set(names), [pair for pair in factories.items() if pair[0] not in names])
        if len(forms) < _MOST_FORMS:
            forms[names] = form
        return form

    def make(*_: _P.args, **values: _P.kwargs) -> _M:
        names = tuple(values)
        given_names, own_defaults = forms.get(names) or form_of(names)
        members: dict[str, Any] = {**template, **values}  # in the order of the fields
        for name, factory in own_defaults:
            members[name] = factory()
        value = new(model)
        set_fields(value, members)
        set_names(value, given_names)
        set_extra(value, None)
        set_private(value, None)
        if prepares:
            value.model_post_init(None)
        return value

    return make
