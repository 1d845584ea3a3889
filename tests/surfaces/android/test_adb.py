"""The client of the adb server, with a real adb server and devices that stand in for real ones."""

import asyncio
import contextlib
import os

import pytest

from callboard.surfaces import InDoubtError
from callboard.surfaces.android import Adb, AdbError, DeviceState, Ran, find_adb
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
            with pytest.raises(InDoubtError, match=r"was interrupted: the connection was lost"):
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


def test_unauthorized_device_gives_a_clear_error(new_adb):
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


def test_missing_device_gives_a_clear_error(new_adb):
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
def test_missing_adb_program_gives_a_clear_error():
    assert find_adb() is None
    with pytest.raises(AdbError, match=r"the program adb is missing: apt-get install adb"):
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


@contextlib.asynccontextmanager
async def answering(*parts):
    """Serve as an adb server that answers each request of a connection with one of the parts, and then hangs up."""

    over = asyncio.Event()

    async def serve(reader, writer):
        for part in parts:
            if part is None:  # it gives no answer at all
                await over.wait()
                break
            size = int(await reader.readexactly(4), 16)
            await reader.readexactly(size)
            writer.write(part)
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Adb(None, server.sockets[0].getsockname()[1])
        over.set()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


@pytest.mark.parametrize("answer", [b"", b"FA", b"FAIL0006closed", b"FAILzzzz", b"HTTP/1.1 400"])
def test_a_device_lost_while_it_is_handed_a_command_is_in_doubt(answer):
    async def work():
        async with answering(b"OKAY", answer) as adb:
            with pytest.raises(InDoubtError, match="the connection was lost"):
                await adb.shell("one", "input tap 1 1")

    asyncio.run(work())


@pytest.mark.parametrize("parts", [(b"FAIL000edevice offline",), (b"OKAY", b"FAIL000edevice offline")])
def test_a_command_that_the_server_refuses_was_not_done(parts):
    async def work():
        async with answering(*parts) as adb:
            with pytest.raises(AdbError, match=r"^device offline$"):
                await adb.shell("one", "input tap 1 1")

    asyncio.run(work())


@pytest.mark.parametrize(
    "packet", [b"\1\xff\xff\xff\xff", b"\1\5\0\0\0abc", b"\3\1\0", b"\1" + (50_000_001).to_bytes(4, "little")]
)
def test_an_answer_that_is_cut_or_too_long_is_in_doubt(packet):
    async def work():
        async with answering(b"OKAY", b"OKAY" + packet) as adb:
            with pytest.raises(InDoubtError):
                await adb.shell("one", "input tap 1 1")

    asyncio.run(work())


def test_hanging_server_gives_a_clear_error_and_is_never_replaced(monkeypatch):
    monkeypatch.setattr("callboard.surfaces.android._adb._ASK_SECONDS", 0.01)

    async def work():
        async with answering(None) as adb:
            with pytest.raises(AdbError, match="does not answer 'version'"):
                await adb.start()
        assert not adb.started

    asyncio.run(work())


def test_serials_with_blanks_and_any_states_are_listed():
    lines = (
        "adb-29241JEG (2)._adb-tls-connect._tcp device product:x model:Pixel_7 device:y transport_id:3\n"
        "192.168.1.7:5555       offline transport_id:4\n"
        "emulator-5554          authorizing transport_id:5\n"
        "????????????           no permissions (user in plugdev group); see [http://developer.android.com] usb:1-2\n"
        "junk\n"
    )

    async def work():
        async with answering(b"OKAY" + f"{len(lines):04x}{lines}".encode()) as adb:
            return [(each.serial, each.state, each.text, each.model) for each in await adb.devices()]

    assert asyncio.run(work()) == [
        ("192.168.1.7:5555", DeviceState.OFFLINE, "offline", ""),
        ("????????????", DeviceState.OTHER, "no permissions", ""),
        ("adb-29241JEG (2)._adb-tls-connect._tcp", DeviceState.DEVICE, "device", "Pixel 7"),
        ("emulator-5554", DeviceState.OTHER, "authorizing", ""),
    ]


def test_error_of_a_device_command_is_its_most_telling_line():
    told = (
        b"\nException occurred while executing 'tap':\njava.lang.SecurityException: Injecting input events requires "
        b"INJECT_EVENTS\n\tat android.os.Parcel.create(Parcel.java:1)\n\tat android.os.Binder.exec(Binder.java:2)\n"
    )
    assert Ran(255, b"", told).error == "java.lang.SecurityException: Injecting input events requires INJECT_EVENTS"
    assert Ran(1, b"", b"one\ntwo\n").error == "two"
    assert Ran(1, b"", b"x" * 9_000).error == "x" * 500


def test_server_is_started_by_only_one_of_two_concurrent_starts(new_adb):
    async def work():
        first = new_adb()
        await first.start()  # makes the key of this home, which two must not do at once
        await first.stop()
        second = Adb(first._program, first.port, first._environment)
        await asyncio.gather(first.start(), second.start())
        assert [first.started, second.started].count(True) == 1
        mine, other = (first, second) if first.started else (second, first)
        await other.stop()
        assert await mine.ask("host:version")
        await mine.stop()

    asyncio.run(work())


def test_a_server_that_another_program_has_ended_is_started_again(new_adb):
    async def work():
        adb = new_adb()
        await adb.start()
        await adb.ask("host:kill")
        async with asyncio.timeout(PATIENCE):
            while adb.started:  # noqa: ASYNC110 - another program's end
                await asyncio.sleep(0.01)
        assert await adb.ask("host:version")
        assert adb.started
        await adb.stop()
        with pytest.raises(AdbError, match="can't be reached"):
            await adb.ask("host:version")

    asyncio.run(work())


def test_unusable_adb_program_gives_a_clear_error(tmp_path):
    assert find_adb(tmp_path) is None
    program = tmp_path / "adb"
    program.write_bytes(b"\0")
    program.chmod(0o755)
    with pytest.raises(AdbError, match="can't be started: "):
        asyncio.run(Adb(program, 1).start())


def test_a_device_that_was_lost_is_connected_again(new_adb):
    async def work():
        async with plugged(new_adb) as (adb, device):
            await device.stop()
            await until(adb, DeviceState.OFFLINE)
            await device.start()
            await adb.connect(device.serial)
            await until(adb, DeviceState.DEVICE)
            assert (await adb.shell(device.serial, "echo x")).text == "x\n"

    asyncio.run(work())


def test_a_lost_device_may_count_as_connected_for_longer(monkeypatch):
    """An adb server takes a moment to give up a connection, and refuses to make it again until then."""
    connected, listed = "already connected to x:1", "x:1 offline model:M transport_id:1\n"
    script = [
        ("host:connect:x:1", connected),
        ("host:devices-l", listed),
        ("host:disconnect:x:1", "disconnected x:1"),
        ("host:connect:x:1", connected),
        ("host:devices-l", ""),
        ("host:connect:x:1", "connected to x:1"),
        ("host:devices-l", listed.replace("offline", "device")),
    ]
    answers = iter(script)

    async def ask(_adb, service):
        expected, answer = next(answers)
        assert service == expected
        return answer

    monkeypatch.setattr(Adb, "ask", ask)
    asyncio.run(Adb("adb", 1).connect("x:1"))
    assert next(answers, None) is None
