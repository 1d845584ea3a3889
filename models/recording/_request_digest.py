"""The canonical form of a request in a recording.

It does not depend on time and place.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from callboard.messages import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic.fields import FieldInfo

    from callboard.models._model import ModelRequest


BASE = "${base}"
"""Placeholder in recordings for the base folder of the settings' relative paths."""

_KEYS = {"address", "call", "response"}
"""The lookup keys of a request and the class of its answer; not part of the fingerprint."""
_UNSEEN = {"task_id", "run_id", "call_id", "seconds", "usage", "fingerprint", "binds", "server", "token", "program"}
_UNSEEN |= {"group", "owner", "kinds", "box", "picture", "annotated", "pictures", "before", "after"}
"""Fields that do not affect a decision or differ in each run. With pictures, a single pixel would change the
fingerprint."""
_VARIES = {"modified", "size"}
"""Facts about a document that differ in each run: the file contains its time of writing."""
_LONG_TEXT, _LONG_LINE, _MANY = 8000, 400, 200
_DIGITS = 16


class RequestDigest:
    """The content of a request as shown to the model, without pictures.

    ``base`` is the folder of this run; its path is replaced by `BASE`.
    """

    def __init__(self, request: ModelRequest, base: Path) -> None:
        self.address = "host" if request.is_host else "judge" if request.evidence is not None else request.address
        """The agent's address; ``host`` and ``judge`` where the address contains the task's id."""
        self.call = request.call
        self._content: dict[str, Any] = {
            name: value for name, value in _fields(request, RunFolder(base)) if name not in _KEYS
        }

    @property
    def fingerprint(self) -> str:
        """The hash of the content."""
        return _hash(self._content)

    def digest(self) -> list[str]:
        """Format the content as lines.

        Long values are cut and followed by a hash.
        """
        return [line for name, value in self._content.items() for line in _lines(name, value, "")]


class RunFolder:
    """The folder of a run, hidden in recordings; escapes a literal `BASE`."""

    def __init__(self, base: Path) -> None:
        names = sorted({str(base), str(base.resolve())}, key=len, reverse=True)
        alternatives = "|".join(re.escape(name) for name in names if len(base.parts) > 1)
        self._base = str(base.resolve())
        folder = rf"|(?<![\w.-])(?:{alternatives})(?![\w-]|\.\w)" if alternatives else ""
        self._named = re.compile(_MARK.pattern + folder)

    def hide(self, value: Any) -> Any:
        """Replace the folder's path by `BASE`."""
        return _each_text(value, lambda text: self._named.sub(_hidden, text))

    def show(self, value: Any) -> Any:
        """Replace `BASE` by the folder's path."""
        return _each_text(value, lambda text: _MARK.sub(self._restored_text, text))

    def _restored_text(self, match: re.Match[str]) -> str:
        return _mark(match[1][1:]) if match[1] else self._base


_MARK = re.compile(r"\$\{base(:*)\}")


def _mark(colons: str) -> str:
    return f"{BASE[:-1]}{colons}}}"


def _hidden(match: re.Match[str]) -> str:
    return BASE if match[1] is None else _mark(f"{match[1]}:")


def _each_text(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value


def _plain(value: Any, folder: RunFolder) -> Any:
    """Convert a part of a request to JSON.

    Defaults and irrelevant fields are left out.
    """
    if isinstance(value, Observation):
        window = {name: fact for name, fact in value.window.items() if name not in _VARIES}
        value = value.model_copy(update={"window": window})
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return dict(_fields(value, folder))
    if isinstance(value, bytes):
        return f"sha256:{hashlib.sha256(value).hexdigest()}"
    if isinstance(value, dict):
        return {folder.hide(str(name)): _plain(item, folder) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, folder) for item in value]
    return folder.hide(value)


def _fields(value: Any, folder: RunFolder) -> Iterator[tuple[str, Any]]:
    if isinstance(value, BaseModel):
        fields: dict[str, FieldInfo] = type(value).model_fields
        defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    else:
        defaults = {field.name: field.default for field in dataclasses.fields(value)}
    for name, default in defaults.items():
        field_value = getattr(value, name)
        if name not in _UNSEEN and field_value != default:
            yield name, _plain(field_value, folder)


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _lines(name: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and not indent:
        yield f"{name}:"
        for key, item in value.items():
            yield from _lines(key, item, "  ")
    elif isinstance(value, list):
        yield f"{indent}{name}:"
        yield from (f"{indent}  - {_line(item)}" for item in value[:_MANY])
        if len(value) > _MANY:
            yield f"{indent}  … {len(value)} in all, {_hash(value)[:_DIGITS]}"
    elif isinstance(value, str) and "\n" in value:
        yield f"{indent}{name}: |"
        yield from (f"{indent}  {line}" for line in value[:_LONG_TEXT].splitlines())
        if len(value) > _LONG_TEXT:
            yield f"{indent}  … {len(value)} characters in all, {_hash(value)[:_DIGITS]}"
    else:
        yield f"{indent}{name}: {_line(value)}"


def _line(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = json.dumps(text, ensure_ascii=False) if "\n" in text else text
    return text if len(text) <= _LONG_LINE else f"{text[:_LONG_LINE]} … {_hash(value)[:_DIGITS]}"
