"""D-Bus calls, many in flight at once: one observation takes hundreds."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

from jeepney import DBusAddress, HeaderFields, Message, MessageType, Parser, new_method_call
from jeepney.auth import BEGIN, AuthenticationError, Authenticator
from jeepney.bus import get_connectable_addresses

from callboard.surfaces.desktop._calls import BUS, Answer, Ask, BusClosedError, BusError

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCH = 200
"""The most calls in flight: their data must fit into the sockets' buffers before the answers are read."""
_PLACEHOLDER = "nobody.here"
"""The destination of a message before it is removed: a connection without a bus has no destinations."""


class BusConnection:
    """A connection to a bus, or directly to a program.

    Threads take turns on it, one batch of calls each.

    Args:
        address: The socket's address in D-Bus form: ``unix:path=/tmp/bus``.
        hello: Whether the other end is a bus, which expects a Hello call.
        timeout: The seconds to wait for the connection.

    Raises:
        BusClosedError: If nothing answers at the address.
    """

    def __init__(self, address: str, *, hello: bool = True, timeout: float = 5.0) -> None:
        self.address = address
        self._parser = Parser()
        self._serials = itertools.count(1)
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(next(iter(get_connectable_addresses(address))))
            self._socket.sendall(b"\0")
            steps = Authenticator(enable_fds=False, inc_null_byte=False)
            for step in steps:
                self._socket.sendall(step)
                steps.feed(self._socket.recv(1024))
            self._socket.sendall(BEGIN)
            if hello:
                self.call(BUS, Ask("/org/freedesktop/DBus", BUS, "Hello"), timeout=timeout)
        except (AuthenticationError, OSError, RuntimeError, StopIteration) as error:
            self.close()
            msg = f"nothing answers at {address}: {error}"
            raise BusClosedError(msg) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; waiting callers get a `BusClosedError`."""
        self._socket.close()

    def call(self, destination: str | None, ask: Ask, *, timeout: float = 5.0) -> Answer:
        """Make one call, and return its answer.

        Raises:
            BusError: If the call is refused.
            BusClosedError: If the other side closes the connection.
            TimeoutError: If there is no answer in time.
        """
        answer = self.calls(destination, [ask], timeout=timeout)[0]
        if isinstance(answer, BusError):
            raise answer
        return answer

    def calls(self, destination: str | None, asks: Sequence[Ask], *, timeout: float = 5.0) -> list[Answer | BusError]:
        """Make many calls, and return their answers in the same order.

        Args:
            destination: The recipient's name on the bus; None on a connection without a bus.
            asks: The calls.
            timeout: The seconds for all of them together.

        Raises:
            BusClosedError: If the other side closes the connection.
            TimeoutError: If not all calls are answered in time.
        """
        end = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise TimeoutError
        try:
            answers: list[Answer | BusError] = []
            for start in range(0, len(asks), _BATCH):
                answers += self._receive_answers(self._sent(destination, asks[start : start + _BATCH], end), end)
            return answers
        finally:
            self._lock.release()

    def send(self, destination: str | None, ask: Ask, *, timeout: float = 5.0) -> int:
        """Send one call, and return its serial number for `answer`.

        Only one thread may use the connection.

        Raises:
            BusClosedError: If the other side has closed the connection.
            TimeoutError: If the other side does not accept the data in time.
        """
        return self._sent(destination, [ask], time.monotonic() + timeout)[0]

    def answer(self, serial: int, *, timeout: float = 5.0) -> Answer:
        """Wait for the answer to a call that was sent.

        Raises:
            BusError, BusClosedError, TimeoutError: As `call`.
        """
        answer = self._receive_answers([serial], time.monotonic() + timeout)[0]
        if isinstance(answer, BusError):
            raise answer
        return answer

    def _sent(self, destination: str | None, asks: Sequence[Ask], end: float) -> list[int]:
        serials = [next(self._serials) for _ in asks]
        data = b""
        for ask, serial in zip(asks, serials, strict=True):
            address = DBusAddress(ask.path, destination or _PLACEHOLDER, ask.interface)
            message = new_method_call(address, ask.method, ask.signature, ask.body)
            if destination is None:
                del message.header.fields[HeaderFields.destination]
            data += message.serialise(serial=serial)
        self._send(data, end)
        return serials

    def _receive_answers(self, serials: Sequence[int], end: float) -> list[Answer | BusError]:
        awaited, answers = set(serials), dict[int, Answer | BusError]()
        while awaited:
            message = self._receive(end)
            serial = message.header.fields.get(HeaderFields.reply_serial)
            if serial in awaited:  # otherwise a signal, or the late answer to an abandoned call
                awaited.remove(serial)
                answers[serial] = _answer(message)
        return [answers[serial] for serial in serials]

    def _send(self, data: bytes, end: float) -> None:
        try:
            self._socket.settimeout(max(0.001, end - time.monotonic()))
            self._socket.sendall(data)
        except TimeoutError:
            self.close()  # a message may be half sent, so no other one can follow
            raise
        except OSError as error:
            raise BusClosedError(str(error)) from error

    def _receive(self, end: float) -> Message:
        while (message := self._parser.get_next_message()) is None:
            try:
                self._socket.settimeout(max(0.001, end - time.monotonic()))
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                raise
            except OSError as error:
                raise BusClosedError(str(error)) from error
            if not data:
                msg = "the other side has closed the connection"
                raise BusClosedError(msg)
            self._parser.add_data(data)
        return message


def _answer(message: Message) -> Answer | BusError:
    if message.header.message_type is MessageType.error:
        text = message.body[0] if message.body and isinstance(message.body[0], str) else ""
        return BusError(str(message.header.fields.get(HeaderFields.error_name, "error")), text)
    return tuple(message.body)
