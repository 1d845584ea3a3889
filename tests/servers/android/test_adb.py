"""The client of the adb server, with a real adb server and devices that stand in for real ones."""

import asyncio
import contextlib
import os

import pytest

from callboard.actors.servers import InDoubtError
from callboard.actors.servers.android import Adb, AdbError, DeviceState, find_adb
from callboard.testing import AdbDevice
from support import PATIENCE


async def shell(command, data):
    """Run a command in this machine's shell, as a device does in its own."""
    process = await asyncio.create_subprocess_exec("sh", "-c", command, stdin=-1, stdout=-1, stderr=-1)
    try:
        out, err = await process.communicate(await data.read())
    finally:
        if process.returncode is None:  # the device was pulled off
            process.kill()
            await process.communicate()
    return process.returncode, out, err


@contextlib.asynccontextmanager
async def plugged(new_adb, run=shell):
    """Start an adb server, and connect it to a device."""
    adb, device = new_adb(), AdbDevice(run)
    await device.start()
    try:
        await adb.start()
        await adb.connect(device.serial)
        await until(adb, DeviceState.DEVICE)
        yield adb, device
    finally:
        await adb.stop()
        await device.stop()


async def until(adb, state):
    """Wait until its one device is in a state."""
    async with asyncio.timeout(PATIENCE):
        while [each.state for each in await adb.devices()] != [state]:  # noqa: ASYNC110 - another program's state
            await asyncio.sleep(0.01)


def test_a_command_gives_its_code_and_both_outputs(new_adb):
    async def work():
        async with plugged(new_adb) as (adb, device):
            ran = await adb.shell(device.serial, "cat; echo no >&2; exit 3", "grüße\n".encode())
            assert (ran.code, ran.text, ran.err) == (3, "grüße\n", b"no\n")
            assert len((await adb.shell(device.serial, "head -c 3000000 /dev/zero")).out) == 3_000_000
            ran = await adb.shell(device.serial, "wc -c", b"x" * 1_000_000)
            assert ran.text.strip() == "1000000"
            (listed,) = await adb.devices()
            assert (listed.serial, listed.model) == (device.serial, "Stand in")

    asyncio.run(work())


def test_commands_run_side_by_side(new_adb):
    async def work():
        async with plugged(new_adb) as (adb, device):
            ran = await asyncio.gather(*(adb.shell(device.serial, f"echo {number}") for number in range(20)))
            assert [each.text.strip() for each in ran] == [str(number) for number in range(20)]

    asyncio.run(work())


def test_a_device_that_is_pulled_off_leaves_the_doubt(new_adb):
    async def work():
        begun = asyncio.Event()

        async def hang(_command, _data):
            begun.set()
            await asyncio.Event().wait()

        async with plugged(new_adb, hang) as (adb, device):
            asked = asyncio.ensure_future(adb.shell(device.serial, "input tap 1 1"))
            await begun.wait()
            await device.stop()
            with pytest.raises(InDoubtError, match=r"was lost while it was asked for something: it is gone"):
                await asked
            await until(adb, DeviceState.OFFLINE)
            with pytest.raises(AdbError, match="offline"):
                await adb.shell(device.serial, "true")

    asyncio.run(work())


def test_a_command_that_takes_too_long_is_in_doubt(new_adb):
    async def work():
        async with plugged(new_adb) as (adb, device):
            with pytest.raises(InDoubtError, match=r"it took longer than 0.1 s"):
                await adb.shell(device.serial, "sleep 1", seconds=0.1)

    asyncio.run(work())


def test_a_device_that_has_not_allowed_this_machine_is_told(new_adb):
    async def work():
        adb, device = new_adb(), AdbDevice(shell)
        device.authorized = False
        await device.start()
        try:
            await adb.start()
            with contextlib.suppress(AdbError):
                await adb.connect(device.serial)
            await until(adb, DeviceState.UNAUTHORIZED)
            with pytest.raises(AdbError, match="unauthorized"):
                await adb.shell(device.serial, "true")
        finally:
            await adb.stop()
            await device.stop()

    asyncio.run(work())


def test_a_device_that_there_is_not_is_told(new_adb):
    async def work():
        async with plugged(new_adb) as (adb, _):
            with pytest.raises(AdbError, match="device 'none' not found"):
                await adb.shell("none", "true")
            with pytest.raises(AdbError, match=r"127.0.0.1:1"):
                await adb.connect("127.0.0.1:1")

    asyncio.run(work())


def test_a_server_that_runs_already_is_used_and_left_alone(new_adb):
    async def work():
        first = new_adb()
        await first.start()
        second = Adb(None, first.port)
        await second.start()
        assert (first.started, second.started) == (True, False)
        await second.stop()
        assert await first.ask("host:version")
        await first.stop()
        with pytest.raises(AdbError, match="can't be reached"):
            await first.ask("host:version")

    asyncio.run(work())


@pytest.mark.usefixtures("without_adb")
def test_a_missing_program_is_told():
    assert find_adb() is None
    with pytest.raises(AdbError, match=r"there is no program adb: apt-get install adb"):
        asyncio.run(Adb(None, 1).start())


@pytest.mark.usefixtures("without_adb")
def test_the_program_of_the_sdk_is_found(tmp_path, monkeypatch):
    program = tmp_path / "platform-tools" / "adb"
    program.parent.mkdir()
    program.touch(mode=0o755)
    assert os.access(program, os.X_OK)
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path))
    assert find_adb() == program
    assert find_adb(tmp_path / "none") is None
