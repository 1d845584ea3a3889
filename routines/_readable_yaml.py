"""Write routines as YAML for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from callboard.messages import Routine

SCHEMA = "schemas/routine.json"
"""The address of the JSON Schema in a file, as in the projects of `callboard init`."""

_WIDTH = 110
_ONE_LINE = 80
"""The most characters of a collection that is written in one line."""
_WORD, _WORDS = 24, 300
"""The most characters of each item, and of all, in a list that is written in a few lines."""
_SEPARATORS = re.compile("[\\r\\x85\\u2028\\u2029\\ufeff]")


class _Dumper(yaml.SafeDumper):
    """Writes short collections of scalars in one line, and indents lists."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:  # noqa: FBT001 - as PyYAML's
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = _is_short([part for pair in node.value for part in pair])
        return node

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:  # noqa: FBT001 - as PyYAML's
        node = super().represent_sequence(tag, sequence, flow_style)
        node.flow_style = _is_short(node.value) or _has_words(node.value)
        return node

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Quote texts with line separators that PyYAML would change."""
        node = super().represent_str(data)
        node.style = '"' if _SEPARATORS.search(data) else None
        return node

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_str)


def _is_short(parts: list[yaml.Node]) -> bool:
    scalars = [part.value for part in parts if isinstance(part, yaml.ScalarNode)]
    return len(scalars) == len(parts) and sum(map(len, scalars)) + 2 * len(parts) <= _ONE_LINE


def _has_words(parts: list[yaml.Node]) -> bool:
    sizes = [len(part.value) for part in parts if isinstance(part, yaml.ScalarNode)]
    return len(sizes) == len(parts) and max(sizes) <= _WORD and sum(sizes) <= _WORDS


def dump(routine: Routine) -> str:
    """Write a routine as YAML, without defaults."""
    content = routine.model_dump(mode="json", exclude_defaults=True)
    first = {"routine": content.pop("routine"), "version": routine.version, "request": content.pop("request")}
    text: str = yaml.dump(
        {**first, **content}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, indent=2
    )
    return f"# yaml-language-server: $schema={SCHEMA}\n{text}"
