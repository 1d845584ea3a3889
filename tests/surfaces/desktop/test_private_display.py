"""The messages between the holder of a private desktop and its display."""

import os
import socket
import struct
import threading
from pathlib import Path

import pytest

from callboard.surfaces.desktop._private_display import _admit

CHANGE_HOSTS = 109
GET_INPUT_FOCUS = struct.pack("<BxH", 43, 1)
COOKIE = 16 * b"c"


@pytest.fixture
def display():
    """Listen in place of an X server, under a number that none has."""
    number = f"{os.getpid()}-test"
    path = Path("/tmp/.X11-unix", f"X{number}")  # noqa: S108 - where X servers listen
    path.parent.mkdir(mode=0o1777, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield number, server
    path.unlink()


def answer(server, asked, last):
    """Admit a client, in an answer of several parts, and answer its requests."""
    client, _ = server.accept()
    with client:
        setup_size = 12 + 20 + len(COOKIE)
        while setup_size > 0:
            setup_size -= len(client.recv(setup_size))
        setup = struct.pack("<BxHHH", 1, 11, 0, 25) + bytes(100)
        for start, end in ((0, 8), (8, 50), (50, 108)):
            client.sendall(setup[start:end])
        while not b"".join(asked).endswith(GET_INPUT_FOCUS):
            asked.append(client.recv(1 << 16))
        client.sendall(last + bytes(31))


def test_this_user_is_admitted_also_if_the_answer_comes_in_parts(display):
    number, server = display
    asked = []
    thread = threading.Thread(target=answer, args=(server, asked, b"\1"))
    thread.start()
    _admit(number, COOKIE)
    thread.join()
    assert b"".join(asked)[0] == CHANGE_HOSTS
    assert b"localuser\0" in b"".join(asked)


def test_display_that_refuses_this_user_gives_a_clear_error(display):
    number, server = display
    thread = threading.Thread(target=answer, args=(server, [], b"\0"))
    thread.start()
    with pytest.raises(RuntimeError, match="Xvfb does not admit this user"):
        _admit(number, COOKIE)
    thread.join()
