"""Servers over stdio that are killed, and clients that call again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sys
from pathlib import Path

import anyio
import openpyxl
import pytest
from mcp import Client, StdioServerParameters

import callboard
from callboard.journal import JournalReader

EXAMPLE = Path(callboard.__file__).parent / "examples" / "sales_report"
RUN = {
    "request": "Extract the sales table",
    "key": "report",
    "checks": [{"chart": "report.xlsx!Sales", "contains": {"kind": "bar"}}, {"unchanged": "sales.docx"}],
    "wait_seconds": 50,
}
PROGRAM = (
    "import os, sys; print(os.getpid(), file=open(sys.argv.pop(1), 'w')); from callboard.__main__ import main; main()"
)


def server_of(folder):
    """Describe the server of a folder to a client; it writes its process id."""
    arguments = ["-c", PROGRAM, str(folder / "pid"), "mcp", str(folder), "--no-console"]
    return StdioServerParameters(command=sys.executable, args=arguments)


async def run(folder, kill_after=None):
    """Run the task on a new server, which is killed after some seconds."""

    async def kill():
        await asyncio.sleep(kill_after)
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)

    with open(os.devnull, "w") as errors:  # noqa: ASYNC230, PTH123 - the null device
        from mcp.client.stdio import stdio_client

        killer = None
        async with Client(stdio_client(server_of(folder), errlog=errors)) as client:
            if kill_after is not None:
                killer = asyncio.create_task(kill())
            try:
                result = await client.call_tool("run_task", RUN)
            finally:
                if killer is not None:
                    killer.cancel()
        assert not result.is_error, result.content
        return result.structured_content


async def survives(tmp_path, seed):
    """Kill the server at a random moment of a new task.

    A task that is over before the kill does not count: another one begins in a folder of its own.

    Returns:
        The final report, and the tasks of the journal.
    """
    moments = random.Random(seed)  # noqa: S311 - no secret
    for number in range(20):
        folder = tmp_path / f"sales-{number}"
        shutil.copytree(EXAMPLE, folder)
        with contextlib.suppress(Exception):  # the connection ends with the server, in any of the library's ways
            await run(folder, kill_after=moments.uniform(0.0, 0.5))
            continue
        break
    else:
        raise AssertionError
    report = await run(folder)
    with JournalReader.open(folder / "journal.db") as reader:
        return folder, report, reader.tasks()


def check(folder, report, tasks):
    """Check that the one task has done its work once."""
    assert [(task.id, task.request) for task in tasks] == [(report["task_id"], RUN["request"])]
    assert (report["outcome"], report["verified"]) == ("finished", True), report
    book = openpyxl.load_workbook(folder / "workspace" / "report.xlsx")
    assert [(sheet.title, len(sheet._charts)) for sheet in book] == [("Sales", 1)]  # noqa: SLF001 - openpyxl shows charts nowhere else


async def test_a_killed_server_loses_no_task_and_repeats_none(tmp_path):
    check(*await survives(tmp_path, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 32))
async def test_a_server_killed_at_random_moments_loses_no_task(tmp_path, seed):
    check(*await survives(tmp_path, seed))


@pytest.mark.slow
async def test_a_killed_client_ends_its_server_and_the_next_resumes(tmp_path):
    folder = tmp_path / "sales"
    shutil.copytree(EXAMPLE, folder)
    script = (
        "import asyncio, sys, os, signal\n"
        "from mcp import Client, StdioServerParameters\n"
        "async def main():\n"
        f"    server = StdioServerParameters(command={sys.executable!r}, args={server_of(folder).args!r})\n"
        "    async with Client(server) as client:\n"
        f"        await client.call_tool('run_task', { ({**RUN, 'wait_seconds': 0})!r})\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    process = await anyio.open_process([sys.executable, "-c", script], stdout=None, stderr=-3)
    assert await process.wait() == -signal.SIGKILL
    with anyio.fail_after(60):
        while True:
            with JournalReader.open(folder / "journal.db") as reader:
                if reader.holder() is None:
                    break
            await anyio.sleep(0.05)
    check(folder, *(await again(folder)))


async def again(folder):
    report = await run(folder)
    with JournalReader.open(folder / "journal.db") as reader:
        return report, reader.tasks()
