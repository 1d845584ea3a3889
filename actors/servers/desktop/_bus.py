"""Calls over D-Bus, many in flight at once: a look at a window asks an application some hundred questions."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from typing import TYPE_CHECKING, Self

from jeepney import DBusAddress, HeaderFields, Message, MessageType, Parser, new_method_call
from jeepney.auth import BEGIN, AuthenticationError, Authenticator
from jeepney.bus import get_connectable_addresses

from callboard.actors.servers.desktop._calls import BUS, Answer, Ask, BusClosedError, BusError

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCH = 200
"""The most calls in flight: what they send must fit into the sockets' buffers before their answers are read."""
_NOBODY = "nobody.here"
"""The destination of a message before it is taken out: on a connection without a bus there is none."""


class BusConnection:
    """A connection to a bus, or straight to a program. Threads take turns on it, a batch of calls each.

    Args:
        address: Of the socket, as D-Bus writes it: ``unix:path=/tmp/bus``.
        hello: Whether a bus is at the other end, which wants to be greeted.
        timeout: The seconds to wait for the connection.

    Raises:
        BusClosedError: If nothing answers there.
    """

    def __init__(self, address: str, *, hello: bool = True, timeout: float = 5.0) -> None:
        self.address = address
        self._parser = Parser()
        self._serials = itertools.count(1)
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._authenticate(address, timeout)
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
        """Close the connection; whoever waits for an answer on it gets a `BusClosedError`."""
        self._socket.close()

    def call(self, destination: str | None, ask: Ask, *, timeout: float = 5.0) -> Answer:
        """Make one call, and give its answer.

        Raises:
            BusError: If it is refused.
            BusClosedError: If the other side goes away.
            TimeoutError: If there is no answer in time.
        """
        answer = self.calls(destination, [ask], timeout=timeout)[0]
        if isinstance(answer, BusError):
            raise answer
        return answer

    def calls(self, destination: str | None, asks: Sequence[Ask], *, timeout: float = 5.0) -> list[Answer | BusError]:
        """Make many calls, and give their answers in the same order.

        Args:
            destination: Who is asked, by its name on the bus; None on a connection without one.
            asks: The calls.
            timeout: The seconds that all of them may take together.

        Raises:
            BusClosedError: If the other side goes away.
            TimeoutError: If not all have been answered in time.
        """
        end = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise TimeoutError
        try:
            answers: list[Answer | BusError] = []
            for start in range(0, len(asks), _BATCH):
                answers += self._received(self._sent(destination, asks[start : start + _BATCH], end), end)
            return answers
        finally:
            self._lock.release()

    def send(self, destination: str | None, ask: Ask, *, timeout: float = 5.0) -> int:
        """Send one call, and give the number by which `answer` knows it. For a connection that one thread uses.

        Raises:
            BusClosedError: If the other side has gone away.
            TimeoutError: If it takes nothing more.
        """
        return self._sent(destination, [ask], time.monotonic() + timeout)[0]

    def answer(self, serial: int, *, timeout: float = 5.0) -> Answer:
        """Wait for the answer of a call that was sent.

        Raises:
            BusError, BusClosedError, TimeoutError: As `call`.
        """
        answer = self._received([serial], time.monotonic() + timeout)[0]
        if isinstance(answer, BusError):
            raise answer
        return answer

    def _sent(self, destination: str | None, asks: Sequence[Ask], end: float) -> list[int]:
        serials = [next(self._serials) for _ in asks]
        self._send(b"".join(map(self._serialised, itertools.repeat(destination), asks, serials)), end)
        return serials

    def _received(self, serials: Sequence[int], end: float) -> list[Answer | BusError]:
        awaited, answers = set(serials), dict[int, Answer | BusError]()
        while awaited:
            message = self._receive(end)
            serial = message.header.fields.get(HeaderFields.reply_serial)
            if serial in awaited:  # else a signal, or the late answer to a call that was given up
                awaited.remove(serial)
                answers[serial] = _told(message)
        return [answers[serial] for serial in serials]

    def _serialised(self, destination: str | None, ask: Ask, serial: int) -> bytes:
        address = DBusAddress(ask.path, destination or _NOBODY, ask.interface)
        message = new_method_call(address, ask.method, ask.signature, ask.body)
        if destination is None:
            del message.header.fields[HeaderFields.destination]
        data: bytes = message.serialise(serial=serial)
        return data

    def _send(self, data: bytes, end: float) -> None:
        try:
            self._socket.settimeout(max(0.001, end - time.monotonic()))
            self._socket.sendall(data)
        except TimeoutError:
            self.close()  # half a message may be on its way: nothing can follow it
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

    def _authenticate(self, address: str, timeout: float) -> None:
        self._socket.settimeout(timeout)
        self._socket.connect(next(iter(get_connectable_addresses(address))))
        self._socket.sendall(b"\0")
        steps = Authenticator(enable_fds=False, inc_null_byte=False)
        for step in steps:
            self._socket.sendall(step)
            steps.feed(self._socket.recv(1024))
        self._socket.sendall(BEGIN)


def _told(message: Message) -> Answer | BusError:
    if message.header.message_type is MessageType.error:
        text = message.body[0] if message.body and isinstance(message.body[0], str) else ""
        return BusError(str(message.header.fields.get(HeaderFields.error_name, "error")), text)
    return tuple(message.body)
