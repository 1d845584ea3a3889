"""Copies of a part, with the parts that belong to it."""

from __future__ import annotations

import copy
import posixpath
import re
from typing import TYPE_CHECKING

from callboard.surfaces.documents._package import PACKAGE, rels_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from callboard.surfaces.documents._package import Package

_SHARED = frozenset(
    {
        *("slideLayout", "slideMaster", "notesMaster", "handoutMaster", "theme", "slide", "image", "video", "audio"),
        *("media", "font", "hyperlink", "svg"),
    }
)
"""The kinds of links whose parts several slides use together."""
_NUMBERED = re.compile(r"(.*?)\d*(\.[^./]+)")
_UNKNOWN = "application/octet-stream"


def copy_linked(package: Package, part: str, new_part: str, left_out: Collection[str]) -> None:
    """Copy a part with those of its parts that are not shared.

    Args:
        package: The file.
        part: The name of the part.
        new_part: The name of the copy.
        left_out: The kinds of links that the copy does not get.
    """
    _copy(package, part, new_part, left_out, {})


def _copy(package: Package, part: str, new_part: str, left_out: Collection[str], copies: dict[str, str]) -> None:
    copies[part] = new_part
    package.add(new_part, package.bytes_of(part), package.content_type(part) or _UNKNOWN)
    rels = rels_of(part)
    if rels not in package:
        return
    package.add_relationships(new_part, copy.deepcopy(package.tree(rels)))
    tree = package.edit(rels_of(new_part))
    links = {link.id: link for link in package.relationships(part)}
    for element in list(tree.iterchildren(f"{{{PACKAGE}}}Relationship")):
        link = links[element.get("Id", "")]
        if link.type in left_out:
            tree.remove(element)
            continue
        if link.external or link.target not in package:
            continue
        target = copies.get(link.target, link.target)
        if link.type not in _SHARED and link.target not in copies:
            target = package.free_name(_pattern(link.target))
            _copy(package, link.target, target, left_out, copies)
        element.set("Target", f"/{target}")


def _pattern(part: str) -> str:
    """Return the pattern of free names like a part's: ``chart{}.xml`` for ``chart12.xml``."""
    folder, name = posixpath.split(part.replace("{", "").replace("}", ""))
    match = _NUMBERED.fullmatch(name)
    stem, suffix = (match[1], match[2]) if match else (name, "")
    return f"{folder}/{stem}{{}}{suffix}"
