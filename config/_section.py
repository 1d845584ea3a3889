"""The base class of all sections of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from callboard.messages import Span, TermSection

__all__ = ["HttpAddress", "NamedPath", "Section", "Span"]

_T = TypeVar("_T")


def _address(url: str) -> str:
    """Refuse a text that is no address.

    It may hold a secret, and is not shown.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # an open bracket
        is_address = False
    if not is_address:
        msg = "is no address: write http://HOST:PORT/PATH or https://…, such as http://127.0.0.1:8080/v1"
        raise ValueError(msg)
    return url


HttpAddress = Annotated[str, AfterValidator(_address)]
"""The address of a server, by HTTP."""


def _named(path: _T) -> _T:
    """Refuse an empty path, which would be the folder of the settings."""
    if path == "":
        msg = "is empty: name a path, or leave the setting out"
        raise ValueError(msg)
    return path


NamedPath = Annotated[Path, BeforeValidator(_named)]
"""The path of a file or folder."""


class Section(TermSection):
    """A frozen section of the settings; unknown keys are errors."""
