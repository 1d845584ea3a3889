"""YAML files.

Settings, tasks and scripts are read in the same way, and duplicate keys are errors.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path


_MOST_PARTS = 1_000_000


_TYPES = {"bool": "true or false", "float": "a number", "int": "a whole number", "timestamp": "a date"}
"""The types of scalars, by the last part of their tags."""


class YamlError(Exception):
    """A file can't be read, or is invalid.

    The message gives the position, but no value, since it may be a secret.
    """


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with a check for duplicate keys.

    Without it, the last of two equal keys would silently be used. Values that are none of their type have a line, too.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - as PyYAML's
        """Build a value.

        Raises:
            YamlError: If it is none of its type, such as a date in a 13th month.
        """
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, ValueError):  # as PyYAML's parsers of scalars fail
            form = _TYPES.get(node.tag.rpartition(":")[2], "another type")
            line = node.start_mark.line + 1
            msg = f"is not valid YAML: the value in line {line} reads as {form}, but is not: put it in quotes"
            raise YamlError(msg) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002 - as PyYAML's
        """Build a mapping.

        Raises:
            YamlError: If it has a duplicate key.
        """
        lines: dict[object, int] = {}
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                name, line = self.construct_object(key), key.start_mark.line + 1
                if not isinstance(name, Hashable):
                    break  # PyYAML refuses it
                if name in lines:
                    msg = f"the key {key.value!r} appears twice, in lines {lines[name]} and {line}: merge them"
                    raise YamlError(msg)
                lines[name] = line
        return super().construct_mapping(node, deep)


class _PlainLoader(_Loader):
    """The loader for files that may not repeat parts."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node.

        Raises:
            YamlError: If it is an alias.
        """
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call] # as all of PyYAML's parser
            msg = f"has an alias (`*`) in line {event.start_mark.line + 1}: write the part out"
            raise YamlError(msg)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def load_yaml(file: Path, *, aliases: bool = True, most_bytes: int | None = None) -> Any:
    """Read a YAML file.

    Args:
        file: The file.
        aliases: Whether a part may be repeated by an alias.
        most_bytes: Its largest size; None for any.

    Raises:
        YamlError: If it can't be read, is too large, is not valid YAML, has a duplicate key, or an alias that is not
            allowed. The message begins with the file.
    """
    try:
        size = file.stat().st_size
        if most_bytes is None or size <= most_bytes:
            return parse_yaml(file.read_text(encoding="utf-8"), aliases=aliases)
        reason = f"has {size:,} bytes, and at most {most_bytes:,} are possible"
    except OSError as error:
        reason = f"can't be read: {error.strerror}"
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start + 1}): save it as UTF-8"
    except YamlError as error:
        reason = str(error)
    msg = f"{file}: {reason}"
    raise YamlError(msg)


def parse_yaml(text: str, *, aliases: bool = True) -> Any:
    """Parse a text as YAML.

    Raises:
        YamlError: If it is not valid YAML, has a duplicate key, or an alias that is not allowed.
    """
    try:
        content = yaml.load(text, Loader=_Loader if aliases else _PlainLoader)  # noqa: S506 - they are safe loaders
        _size(content, {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        msg = f"is not valid YAML: {error.problem or error.context}{position}"
        raise YamlError(msg) from None
    except (yaml.YAMLError, OverflowError, ValueError):  # the last ones of an escaped character that does not exist
        msg = "is not valid YAML: it has a character that YAML does not allow"
        raise YamlError(msg) from None
    except RecursionError:
        msg = "is not valid YAML: it is nested too deeply"
        raise YamlError(msg) from None
    return content


def _size(value: object, sizes: dict[int, int]) -> int:
    """Count the parts of a value, with those that aliases repeat.

    Raises:
        YamlError: If there are too many: later code would not end.
    """
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in sizes:
        parts = value if isinstance(value, list) else (*value, *value.values())
        sizes[id(value)] = 1 + sum(_size(part, sizes) for part in parts)
    if sizes[id(value)] > _MOST_PARTS:
        msg = f"has more than {_MOST_PARTS:,} parts, with those that its aliases repeat"
        raise YamlError(msg)
    return sizes[id(value)]
