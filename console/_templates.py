"""The templates of the console's pages and of reports."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from callboard.console._english import TEXTS
from callboard.console._task_view import SCALE, pretty
from callboard.history import cut, described, numbered, used
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


def templates(finalize: Callable[[object], object] = shown, **values: Any) -> Environment:
    """Make the environment of the templates.

    Args:
        finalize: Changes each value before it is escaped.
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
    environment.globals.update(
        t=SimpleNamespace(**TEXTS),
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
        counted=numbered,
        on_one_line=visible,
    )
    return environment


def _iso(at: float) -> str:
    """Format a moment for the browser's clock."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()


def _moment(at: float) -> str:
    """Format a moment in this machine's zone, with its offset."""
    text = dt.datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")
    return f"{text[:19]} UTC{text[19:]}"


def _span(seconds: float) -> str:
    """Format a duration."""
    return f"{max(0.0, seconds):.1f} s" if seconds < _MINUTE else str(dt.timedelta(seconds=round(seconds)))
