"""A phone, and a person who sees only its hierarchy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from callboard.testing import Phone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Person:
    """A person who holds a phone."""

    phone: Phone

    def nodes(self) -> Iterator[ET.Element]:
        """Give all nodes of the hierarchy."""
        return ET.fromstring(self.phone.hierarchy()).iter("node")  # noqa: S314 - the phone's own

    def texts(self) -> list[str]:
        """Give all texts."""
        return [node.get("text", "") for node in self.nodes() if node.get("text")]

    def find(self, name: str) -> ET.Element:
        """Find a node by its text, description, or end of its id."""
        for node in self.nodes():
            if name in (node.get("text"), node.get("content-desc"), node.get("resource-id", "").rpartition("/")[2]):
                return node
        pytest.fail(f"no {name!r} in {self.texts()}")

    def middle(self, name: str) -> tuple[int, int]:
        """Give the centre of a node."""
        left, top, right, bottom = map(int, re.findall(r"\d+", self.find(name).get("bounds", "")))
        return (left + right) // 2, (top + bottom) // 2

    def tap(self, *names: str, long: bool = False) -> None:
        """Tap nodes, one after the other."""
        for name in names:
            self.phone.tap(*self.middle(name), long=long)

    def fill(self, name: str, text: str) -> None:
        """Type into a field."""
        self.tap(name)
        self.phone.type(text)


@pytest.fixture
def hold() -> Callable[..., Person]:
    """Make phones held by persons."""
    return lambda **options: Person(Phone(**options))


@pytest.fixture
def person(hold: Callable[..., Person]) -> Person:
    """Give a phone to a person."""
    return hold()
