"""Requests of pages: their origin, their person, their body."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from starlette.datastructures import Headers
    from starlette.requests import Request

Person: TypeAlias = "Callable[[Request], str | Awaitable[str | None] | None]"
"""Returns the name of the person who is signed in; None for no person."""


async def person_of(person: Person, request: Request) -> str | None:
    """Return who is signed in to the program that mounts an application."""
    name = person(request)
    return await name if inspect.isawaitable(name) else name


def is_same_origin(headers: Headers, others: Collection[str] = ()) -> bool:
    """Return whether a request comes from a page of its own address.

    Origins in `others` count as such.
    """
    host, site, origin = headers.get("host", ""), headers.get("sec-fetch-site"), headers.get("origin")
    if origin is not None and origin.lower() in others:
        return True
    if site is not None and site != "same-origin":
        return False
    return bool(host) and origin is not None and origin.lower() in {f"http://{host}".lower(), f"https://{host}".lower()}


async def json_body(request: Request, most_bytes: int, seconds: float) -> dict[str, Any]:
    """Return the JSON object that a request has.

    Raises:
        HTTPException: If it has none, halves of characters, or too much, or takes too long.
    """
    body = b""
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    raise HTTPException(413)
    except TimeoutError as error:
        raise HTTPException(408) from error
    try:
        fields = json.loads(body)
        json.dumps(fields, ensure_ascii=False).encode()  # halves of characters, which the journal could not store
    except (ValueError, RecursionError) as error:
        raise HTTPException(400) from error
    if not isinstance(fields, dict):
        raise HTTPException(400)
    return fields
