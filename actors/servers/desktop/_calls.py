"""Calls of D-Bus methods, as plain values: the accessibility of a desktop is asked for with them."""

from __future__ import annotations

from typing import Any, NamedTuple

ATSPI = "org.a11y.atspi."
BUS = "org.freedesktop.DBus"
NOTHING = "/org/a11y/atspi/null"
"""The path of an object that is not there."""


class BusError(Exception):
    """The answer of a call that was refused."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name


class BusClosedError(ConnectionError):
    """The other side has closed the connection: a program has ended, or its bus."""


class Ask(NamedTuple):
    """One call of a method of an object."""

    path: str
    interface: str
    method: str
    signature: str | None = None
    body: tuple[object, ...] = ()


Answer = tuple[Any, ...]
"""The return values of a method."""


def attribute(path: str, interface: str, name: str) -> Ask:
    """Ask an object of AT-SPI for a property."""
    return Ask(path, f"{BUS}.Properties", "Get", "ss", (ATSPI + interface, name))


def method(path: str, interface: str, name: str, signature: str | None = None, *body: object) -> Ask:
    """Ask an object of AT-SPI to do something."""
    return Ask(path, ATSPI + interface, name, signature, body)


def value(answer: Answer | BusError) -> object:
    """Give the value of a property; None if it was refused. Qt gives some without the type that D-Bus wants."""
    if isinstance(answer, BusError):
        return None
    return answer[0][1] if isinstance(answer[0], tuple) else answer[0]


def states(answer: Answer | BusError) -> int:
    """Give the states that an object says it is in, as a number with a bit for each; 0 if it does not say."""
    return 0 if isinstance(answer, BusError) else int(answer[0][0]) | int(answer[0][1]) << 32
