"""Secret values in the settings.

They are the named secrets, and those of providers and MCP servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, SecretStr

from callboard.config._providers import Provider
from callboard.config._redactor import SHORTEST, Redactor
from callboard.config._secrets_in_urls import MASK, like_a_key, secrets_in_arguments, secrets_in_url, with_bare
from callboard.config._sections import McpServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONG = 8


def output_redactor(settings: object) -> Redactor:
    """Create the redactor of log and traces.

    It redacts all secret values, including variables and headers of any name.
    """
    return Redactor(dict.fromkeys(secrets_of(settings), MASK))


def secrets_of(settings: object) -> Iterator[str]:
    """Find all secret values in settings.

    Very short ones are left out, since they would match ordinary text.
    """
    return (secret for secret in _secrets_in(settings, all_names=True) if len(secret) >= SHORTEST)


def keys_of(settings: object) -> Iterator[str]:
    """Find values that are secret in any context.

    They are keys and passwords, but not variables such as ``LANG``.
    """
    return (secret for secret in _secrets_in(settings, all_names=False) if len(secret) >= _LONG)


def _secrets_in(value: object, *, all_names: bool) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield from with_bare(value.get_secret_value())
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(value, BaseModel):
        parts = ((None, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = ((None, item) for item in value)
    for name, part in parts:
        if all_names or name is None or not isinstance(part, SecretStr) or like_a_key(str(name)):
            yield from _secrets_in(part, all_names=all_names)
    if not all_names:
        return  # a part of an address may be an ordinary word
    if isinstance(value, McpServer | Provider):
        yield from secrets_in_url(value.url or "")
    if isinstance(value, McpServer):
        yield from secrets_in_arguments(value.args)
