"""The device's side of adb, as the program `adb` and other clients use it."""

import asyncio
import contextlib
import os
import socket
import subprocess

import pytest

from callboard.testing import AdbDevice, Phone, plugged_in

MINUTE = 60


@pytest.fixture
def adb(adb_program, adb_port):
    """Run the program adb on a phone, and give the result."""
    with plugged_in(Phone()) as device:

        def run(*words, **options):
            command = [adb_program, "-P", str(adb_port), *words]
            return subprocess.run(command, capture_output=True, timeout=MINUTE, check=False, **options)

        run("connect", device.serial)
        yield lambda *words, **options: run("-s", device.serial, *words, **options)
        run("disconnect", device.serial)


@contextlib.contextmanager
def service(port, serial, name, answer=b"OKAY"):
    """Open a service of a device, as clients do that speak the protocol themselves."""
    with socket.create_connection(("127.0.0.1", port), MINUTE) as stream:
        for each, expected in ((f"host:transport:{serial}", b"OKAY"), (name, answer)):
            stream.sendall(f"{len(each):04x}{each}".encode())
            assert stream.recv(4) == expected
        yield stream


def test_a_command_that_reads_gets_what_is_sent(adb):
    told = adb("shell", "cat; echo no >&2; exit 3", input=b"words")
    assert (told.returncode, told.stdout, told.stderr) == (3, b"words", b"no\n")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shell,v2:echo x; exit 3", b"\1\2\0\0\0x\n\3\1\0\0\0\3"),
        ("shell:echo x; echo y >&2", b"x\ny\n"),
        ("exec:head -c 1", b"s"),
    ],
)
def test_a_command_ends_though_what_it_reads_does_not(adb, adb_port, name, told):
    with service(adb_port, adb("get-serialno").stdout.decode().strip(), name) as stream:
        if name.startswith("exec"):
            stream.sendall(b"sent")
        answer = b"".join(iter(lambda: stream.recv(4096), b""))
    assert answer == told


def test_a_service_that_a_device_has_not_is_refused(adb, adb_port):
    serial = adb("get-serialno").stdout.decode().strip()
    with service(adb_port, serial, "jdwp:1", b"FAIL") as stream:
        assert stream.recv(4096) == b"0006closed"


@pytest.mark.parametrize(
    ("request_", "told"),
    [(b"RECV" + b"\xff" * 4, b"the path is too long"), (b"NONE\1\0\0\0x", b"the request is not known")],
)
def test_a_request_for_files_that_makes_no_sense_is_refused(adb, adb_port, request_, told):
    with service(adb_port, adb("get-serialno").stdout.decode().strip(), "sync:") as stream:
        stream.sendall(request_)
        answer = b"".join(iter(lambda: stream.recv(4096), b""))
    assert answer == b"FAIL" + len(told).to_bytes(4, "little") + told


def test_a_picture_comes_through_without_a_terminal(adb):
    told = adb("exec-out", "screencap", "-p")
    assert told.stdout.startswith(b"\x89PNG")


def test_files_are_pushed_listed_and_pulled(adb, tmp_path):
    file, back = tmp_path / "a file", tmp_path / "back"
    file.write_bytes(os.urandom(300_000))
    file.chmod(0o750)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert adb("push", str(file), "/sdcard/new/").returncode == 1  # it would be a file of that name
    assert adb("push", str(file), "/sdcard/new/a file").returncode == 0
    assert b"300000 new/a file" in adb("shell", "cd /sdcard; stat -c '%s %n' new/*").stdout
    assert b"750 1700000000" in adb("shell", "stat -c '%a %Y' /sdcard/new/*").stdout
    assert adb("ls", "/sdcard/new").stdout.split()[-1] == b"file"
    assert adb("pull", "-a", "/sdcard/new/a file", str(back)).returncode == 0
    assert back.read_bytes() == file.read_bytes()
    assert int(back.stat().st_mtime) == 1_700_000_000


def test_a_folder_is_pulled(adb, tmp_path):
    adb("shell", "mkdir -p /sdcard/one/two; echo x > /sdcard/one/two/file")
    assert adb("pull", "/sdcard/one", str(tmp_path / "one")).returncode == 0
    assert (tmp_path / "one" / "two" / "file").read_bytes() == b"x\n"


@pytest.mark.parametrize("path", ["/etc/hostname", "/sdcard/../../etc/hostname", "/sdcard/none"])
def test_other_files_are_neither_read_nor_written(adb, tmp_path, path):
    file = tmp_path / "file"
    file.write_bytes(b"x")
    assert adb("pull", path, str(tmp_path / "back")).returncode == 1
    if path != "/sdcard/none":
        told = adb("push", str(file), path)
        assert (told.returncode, b"couldn't create file" in told.stdout + told.stderr) == (1, True)


@pytest.mark.parametrize("rounds", range(6))
def test_a_connection_that_was_just_accepted_is_cut(rounds):
    async def answer():
        device = AdbDevice(None)
        await device.start()
        with socket.create_connection(("127.0.0.1", device.port), MINUTE) as stream:
            for _ in range(rounds):
                await asyncio.sleep(0)
            await device.stop()
            with contextlib.suppress(ConnectionResetError):
                return await asyncio.to_thread(stream.recv, 1)
            return b""

    assert asyncio.run(answer()) == b""
