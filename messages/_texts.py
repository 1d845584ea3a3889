"""Transform the texts of messages, and make them encodable."""

from __future__ import annotations

import dataclasses
import difflib
import re
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pydantic import BaseModel
from pydantic_core import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pydantic import JsonValue

_T = TypeVar("_T")
_LONGEST_NAME = 1_000
"""The most characters of a name for which a similar one is sought: the time grows faster than the length."""

_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, separators of lines, marks of direction, characters without a shape, halves of surrogate pairs.

Format characters with a shape, such as Arabic number signs, stay, and so do the last two variation selectors, which
choose between the two styles of a symbol.
"""


def each_text(
    value: Any,
    change: Callable[[str], str],
    leave: Collection[str] = (),
    members: Mapping[Any, Callable[[Any], Any]] = MappingProxyType({}),
) -> Any:
    """Apply a function to each text of a value.

    The value is a message, a dataclass or JSON. This includes the keys of dictionaries. Fields of messages and
    dataclasses that `leave` names stay as they are; so do numbers, bytes and members of enumerations. Fields and items
    that `members` names are changed by its functions instead.
    """
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, dict):
        return {
            each_text(key, change): members[key](item) if key in members else each_text(item, change, leave, members)
            for key, item in value.items()
        }
    if isinstance(value, tuple | list):
        return type(value)(each_text(item, change, leave, members) for item in value)
    if isinstance(value, BaseModel):
        changed = _members(value, type(value).model_fields, change, leave, members)
        return value.model_copy(update=changed) if changed else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = _members(value, (field.name for field in dataclasses.fields(value)), change, leave, members)
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _members(
    value: object,
    names: Iterable[str],
    change: Callable[[str], str],
    leave: Collection[str],
    members: Mapping[Any, Callable[[Any], Any]],
) -> dict[str, Any]:
    parts = ((name, getattr(value, name)) for name in names if name not in leave)
    if not members:
        return {name: new for name, part in parts if (new := each_text(part, change, leave)) != part}
    changed = (
        (name, part, members[name](part) if name in members else each_text(part, change, leave, members))
        for name, part in parts
    )
    return {name: new for name, part, new in changed if new != part}


def pointed_at(reference: str, schema: Mapping[str, Any]) -> Any:
    """Resolve a ``$ref`` within a JSON Schema.

    None if it leads outside or nowhere.
    """
    if not reference.startswith("#/"):
        return schema if reference == "#" else None
    node: Any = schema
    for step in reference[2:].split("/"):
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node


def did_you_mean(
    name: str, names: Iterable[str], otherwise: str = "", *, show: Callable[[str], str] = repr, cutoff: float = 0.5
) -> str:
    """Suggest a known name similar to a wrong one, ending an error.

    Args:
        name: The wrong name.
        names: The known names.
        otherwise: The end if none of them is similar.
        show: Formats the suggested name.
        cutoff: The least similarity, from 0 (any name) to 1.

    Returns:
        An end such as ``; did you mean 'steps'?``; empty if no name is similar and there is no other end.
    """
    known_names = list(map(str, names)) if len(name) <= _LONGEST_NAME else []
    near = difflib.get_close_matches(name, known_names, n=1, cutoff=cutoff)
    end = f"did you mean {show(near[0])}?" if near else otherwise
    return f"; {end}" if end else ""


def one_line(text: str, limit: int) -> str:
    """Shorten a text to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def visible(text: str) -> str:
    """Escape invisible characters.

    Then no foreign text controls a terminal, or reads differently from its contents.
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def reason_of(error: BaseException) -> str:
    """Return an exception's text; for system errors, without the error number."""
    if isinstance(error, OSError) and error.strerror:
        return encodable(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return encodable(str(error)) or type(error).__name__


def encodable(value: _T) -> _T:
    """Escape halves of surrogate pairs in all texts.

    No file, log or socket could take them. They come from file names that are not UTF-8, and from programs that cut
    texts of another encoding.
    """
    if isinstance(value, str) and value.isascii():
        return value
    try:
        to_json(value, bytes_mode="base64", fallback=repr)
    except ValueError:
        changed: _T = each_text(value, lambda text: text.encode("utf-8", "backslashreplace").decode())
        return changed
    return value


def as_json(value: object) -> JsonValue:
    """Return a value as its JSON is read back: only JSON types.

    Raises:
        ValueError: If the result is not equal to the value, or there is no JSON of it. Some such values, as those with
            halves of surrogate pairs, can be repaired.
    """
    try:
        written = _written(value)
        if written.count(b"[") + written.count(b"{") > SHALLOW:
            check_depth(written)
        read: JsonValue = _read(written)
    except (TypeError, RecursionError, OverflowError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error
    if read != value:
        msg = "its JSON does not read back as an equal value"
        raise ValueError(msg)
    return read


_written = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode


SHALLOW = 150
"""A JSON text with at most this many brackets can't be too deep to be read again; the parser's limit is 200."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(body: bytes) -> None:
    """Refuse a JSON text that is too deep to be read again.

    Raises:
        ValueError: If it has more than 200 levels.
    """
    if body.count(b"[") + body.count(b"{") > SHALLOW and _may_be_deep(body):
        from_json(body, cache_strings="none")


def _may_be_deep(body: bytes) -> bool:
    """Return whether brackets may be nested deeper than `SHALLOW`.

    An unbalanced bracket in a text counts as deep too. Parsing a long list only to check that it can be parsed would
    cost more than writing it.
    """
    brackets = body.translate(None, _NO_BRACKETS)
    for _ in range(SHALLOW):
        outer = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(outer) == len(brackets):
            break
        brackets = outer
    return bool(brackets)
