"""Android's own adbd, as these tests run it: it reaches this machine's files alone, and ends with them."""

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest
from real_adbd import adbd

from callboard.testing import Phone, plugged_in
from support import PATIENCE

NAPPING = f"600.{os.getpid()}"
"""A time to sleep that no other program has."""


def napping():
    """Find the processes that sleep for that time."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [each.parent.name] if NAPPING.encode() in each.read_bytes() else []
        except OSError:
            continue  # it has ended meanwhile
    return found


async def until(holds):
    """Wait for other processes' work."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - another program's state
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("socket.socket(socket.AF_VSOCK)", "Address family not supported"),
        ("socket.create_connection(('127.0.0.1', {port}))", "Connection refused"),
    ],
)
@pytest.mark.parametrize("held", ["adbd"], indirect=True)
def test_its_programs_reach_no_other_network(held, made, told):
    with socket.create_server(("127.0.0.1", 0)) as other:
        script = f"import socket; {made.format(port=other.getsockname()[1])}"
        ran = held.wait(held.surface._of(held.serial).device.shell(f'{sys.executable} -c "{script}"'))
    assert told in ran.error


def test_it_ends_with_all_that_it_has_started_though_a_test_fails(new_adb, adbd_program):
    async def work():
        adb = new_adb()
        await adb.start()
        try:
            with contextlib.suppress(RuntimeError), adbd(adbd_program, phone) as serial:
                await adb.connect(serial)
                await adb.shell(serial, f"setsid sleep {NAPPING} < /dev/null > /dev/null 2>&1 &")
                await until(napping)
                msg = "a test fails"
                raise RuntimeError(msg)
        finally:
            await adb.stop()
        await until(lambda: not napping())

    with plugged_in(phone := Phone()):
        asyncio.run(work())
    assert napping() == []


def test_adbd_that_does_not_start_gives_a_clear_error(adbd_program):
    del adbd_program  # without it there may be no namespaces
    with (
        plugged_in(phone := Phone()),
        pytest.raises(RuntimeError, match="adbd does not start: exit code 1"),
        adbd(Path("/bin/false"), phone),
    ):
        pytest.fail("it has started")
