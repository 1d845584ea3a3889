"""Measure a device command beside adbutils and `adb`: ``python -m benchmarks.android``.

It prints the medians as a table in Markdown. The device is a stand-in that answers at once, behind a real adb server:
the time is that of the round trip. The row of adbutils needs ``pip install adbutils``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from callboard.surfaces.android import Adb, find_adb
from callboard.testing import AdbDevice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS = 201
COMMAND = "true"


async def answer(_command: str, _data: bytes) -> tuple[int, bytes, bytes]:
    """Answer a command at once."""
    return 0, b"", b""


def adbutils_of(port: int, serial: str) -> Callable[[], object]:
    """Give a function that runs a command with adbutils."""
    import adbutils

    device = adbutils.AdbClient("127.0.0.1", port).device(serial)
    return lambda: device.shell(COMMAND)


async def measure(ways: dict[str, Callable[[], Awaitable[Any]]]) -> dict[str, float]:
    """Give the medians of the times in milliseconds; the ways take turns."""
    times_by_way = defaultdict[str, list[float]](list)
    for _ in range(ROUNDS):
        for name, work in ways.items():
            begin = time.perf_counter()
            await work()
            times_by_way[name].append(1000 * (time.perf_counter() - begin))
    return {name: statistics.median(times) for name, times in times_by_way.items()}


async def work(program: str, home: str) -> None:
    """Measure all, and print the table."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    adb, device = Adb(find_adb(), port, {"HOME": home, "TMPDIR": home, "PATH": os.defpath}), AdbDevice(answer)
    await adb.start()
    try:
        await device.start()
        await adb.connect(device.serial)
        words = [program, "-P", str(port), "-s", device.serial, "shell", COMMAND]

        async def process() -> None:
            await (await asyncio.create_subprocess_exec(*words)).wait()

        ways: dict[str, Callable[[], Awaitable[Any]]] = {
            "Callboard, a connection each": lambda: adb.shell(device.serial, COMMAND),
            "the program `adb`": process,
        }
        with contextlib.suppress(ImportError):
            adbutils_way = adbutils_of(port, device.serial)
            ways["adbutils"] = lambda: asyncio.to_thread(adbutils_way)
        print("| a command that does nothing | ms |\n|---|--:|")
        for called, median in (await measure(ways)).items():
            print(f"| {called} | {median:.1f} |")
    finally:
        await device.stop()
        await adb.stop()


def main() -> None:
    """Measure with a separate adb server."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    program = find_adb()
    if program is None:
        sys.exit("adb is missing: apt-get install adb")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    print(version.splitlines()[1])
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(work(str(program), home))


if __name__ == "__main__":
    main()
