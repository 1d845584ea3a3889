"""The root's dispatch table: one handler for each message type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_M = TypeVar("_M")


class Dispatch:
    """The handlers of messages, by type.

    Each part of the root adds its own with `on`. A subclass is handled like its base, unless it has its own handler.
    """

    def __init__(self, *parts: RootPart) -> None:
        """Create the table of some parts."""
        self._handlers: dict[type, Callable[[Any], object]] = {}
        for part in parts:
            part.register(self)

    def on(self, message_type: type[_M], handler: Callable[[_M], object]) -> None:
        """Add the handler of a type.

        Raises:
            ValueError: If the type has one.
        """
        if message_type in self._handlers:
            msg = f"two parts of the root handle {message_type.__name__}"
            raise ValueError(msg)
        self._handlers[message_type] = handler

    def handle(self, message: object) -> Any:
        """Call the handler of a message, and return its answer.

        Raises:
            TypeError: If no part handles such a message.
        """
        for message_type in type(message).__mro__:
            handler = self._handlers.get(message_type)
            if handler is not None:
                return handler(message)
        msg = f"the root does not handle {type(message).__name__}"
        raise TypeError(msg)


class RootPart(Protocol):
    """A part of the root that handles messages."""

    def register(self, dispatch: Dispatch) -> None:
        """Add a handler for each type of message that the part takes."""
        ...
