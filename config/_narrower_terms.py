"""Terms of others, which only narrow those of the settings."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from callboard.messages import TaskLimits, TermSection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.config._settings import Settings

_TermsT = TypeVar("_TermsT", bound=TermSection)


def least(first: _TermsT | None, second: _TermsT | None) -> _TermsT | None:
    """Return the smaller one of each limit."""
    if first is None or second is None:
        return first or second
    limits = {
        name: min((value for value in (getattr(first, name), getattr(second, name)) if value is not None), default=None)
        for name in type(first).model_fields
    }
    return first.model_copy(update=limits)


def narrower(limits: TaskLimits | None, settings: Settings) -> TaskLimits | None:
    """Return limits, none larger than that of the settings."""
    if limits is None:
        return None
    return least(
        limits, TaskLimits(**{name: getattr(settings.limits, name) for name, value in limits if value is not None})
    )


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of some patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
