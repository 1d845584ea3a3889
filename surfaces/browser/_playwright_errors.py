"""Errors of Playwright, for models."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def as_tool_error() -> Iterator[None]:
    """Turn an error of Playwright into a `ToolError`."""
    from playwright.async_api import Error

    try:
        yield
    except Error as error:
        raise ToolError(reason_for_model(str(error))) from error


def reason_for_model(message: str) -> str:
    """Return the first line of an error, without the method's name."""
    line = message.strip().splitlines()[0]
    head, separator, reason = line.partition(": ")
    return reason if separator and "." in head and " " not in head else line
