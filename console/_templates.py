"""The templates of the console's pages and of reports."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from callboard.config import current_language, term, text
from callboard.console._task_view import SCALE, pretty
from callboard.history import cut, described, used
from callboard.messages import visible

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = Path(__file__).parent / "templates"
_MINUTE = 60
_MOST_TEXT = 200_000
"""The most characters of an output that a page shows; `callboard show --json` has all."""
_MOST_FILES = 500
"""The most changed files that a page lists."""


def shown(value: object) -> object:
    """Make invisible characters of others' texts visible, line by line."""
    return "\n".join(map(visible, value.split("\n"))) if type(value) is str else value


class _PlainTexts:
    """The texts without values, as attributes."""

    def __init__(self, write: Callable[..., Markup]) -> None:
        """Take the function that writes a text."""
        self._write = write

    def __getattr__(self, name: str) -> Markup:
        """Return a text in the language in use."""
        if name not in current_language():
            raise AttributeError(name)
        return self._write(name)


def templates(finalize: Callable[[object], object] = shown, *, markdown: bool = False, **values: Any) -> Environment:
    """Make the environment of the templates.

    A template has the texts without values as attributes of `t`, and the others as calls of `text`.

    Args:
        finalize: Changes each value before it is escaped.
        markdown: Write the texts as they are, for Markdown.
        values: Values that all templates have, beside the texts: `live`, whether people can answer here, and `report`,
            the report that is made, or None.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=finalize,
    )

    def write(name: str, /, **values: object) -> Markup:
        pattern = current_language().pattern(name, values.get("count"))
        safe = Markup(pattern) if markdown else escape(pattern)  # noqa: S704 - a text of our own
        return safe.format(**{key: finalize(value) for key, value in values.items()})

    environment.globals.update(
        t=_PlainTexts(write),
        text=write,
        scale=SCALE,
        live=False,
        report=None,
        most_text=_MOST_TEXT,
        most_files=_MOST_FILES,
    )
    environment.globals.update(values)
    environment.filters.update(
        cut=cut,
        json=pretty,
        iso=_iso,
        moment=_moment,
        span=_span,
        described=described,
        used=used,
        term=lambda value, group: term(group, value),
        on_one_line=visible,
    )
    return environment


def _iso(at: float) -> str:
    """Format a moment for the browser's clock."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()


def _moment(at: float) -> str:
    """Format a moment in this machine's zone, with its offset."""
    iso = dt.datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")
    return text("moment", time=iso[:19], offset=iso[19:])


def _span(seconds: float) -> str:
    """Format a duration."""
    if seconds < _MINUTE:
        return text("seconds", seconds=max(0.0, seconds))
    return str(dt.timedelta(seconds=round(seconds)))
