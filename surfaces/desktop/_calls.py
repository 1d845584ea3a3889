"""D-Bus method calls as plain values, for AT-SPI, the desktop's accessibility."""

from __future__ import annotations

from typing import Any, NamedTuple

ATSPI = "org.a11y.atspi."
ANSWER_SECONDS = 4.0
"""The time limit for a program's answer: a program may be stopped or busy for some seconds. A tool names a program that
does not answer within 5 s."""
BUS = "org.freedesktop.DBus"
NOTHING = "/org/a11y/atspi/null"
"""The path of the null object."""


class BusError(Exception):
    """The error answer to a call."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name


class BusClosedError(ConnectionError):
    """The other side, a program or a bus, closed the connection."""


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
    """Build the call that reads a property of an AT-SPI object."""
    return Ask(path, f"{BUS}.Properties", "Get", "ss", (ATSPI + interface, name))


def method(path: str, interface: str, name: str, signature: str | None = None, *body: object) -> Ask:
    """Build the call of a method of an AT-SPI object."""
    return Ask(path, ATSPI + interface, name, signature, body)


def value(answer: Answer | BusError) -> object:
    """Return a property's value from an answer; None for an error.

    Qt returns some values without the variant type that D-Bus requires.
    """
    if isinstance(answer, BusError):
        return None
    return answer[0][1] if isinstance(answer[0], tuple) else answer[0]


def states(answer: Answer | BusError) -> int:
    """Return an object's states from an answer; 0 for an error.

    It is a number with a bit for each state.
    """
    return 0 if isinstance(answer, BusError) else int(answer[0][0]) | int(answer[0][1]) << 32
