"""The command `mcp`, as a client or a person starts it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import callboard
from callboard.mcp_server import hash_of, new_token
from support import PATIENCE, command_line

EXAMPLE = Path(callboard.__file__).parent / "examples" / "sales_report"


@pytest.fixture
def folder(tmp_path):
    """Copy an example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "sales"))


def started(folder, *options, stdin=subprocess.DEVNULL):
    """Start the command, with its output as text."""
    command = [sys.executable, "-m", "callboard", "mcp", str(folder), *options]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line_with(process, word):
    """Read lines of the standard error up to one with a word."""
    for line in process.stderr:
        if word in line:
            return line
    raise AssertionError(word)


async def told(client, tool, *, seconds=50, **arguments):
    """Call a tool, and give its report."""
    return (await client.call_tool(tool, {**arguments, "wait_seconds": seconds})).structured_content


async def test_http_serves_until_ctrl_c_and_links_the_console(folder):
    token = new_token()
    with (folder / "callboard.yaml").open("a") as file:
        yaml.safe_dump({"mcp_server": {"callers": {"ann": {"token": hash_of(token)}}}}, file)
    with started(folder, "--http", "--port", "0") as process:
        assert "http://127.0.0.1:" in line_with(process, "the console:")
        url = re.search(r"http://\S+/mcp", line_with(process, "callers reach"))[0]
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            result = await client.call_tool("run_task", {"request": "Extract the sales table"})
            assert result.structured_content["outcome"] == "finished"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (0, ""), errors


async def test_limits_are_decided_at_the_terminal_of_the_command(folder):
    token = new_token()
    with (folder / "callboard.yaml").open("a") as file:
        callers = {"ann": {"token": hash_of(token)}}
        yaml.safe_dump({"mcp_server": {"callers": callers}, "budget": {"at_limit": "ask", "task": {"steps": 1}}}, file)
    keys, side = pytest.importorskip("pty").openpty()
    with (
        os.fdopen(keys, "wb", buffering=0) as keyboard,
        started(folder, "--http", "--port", "0", "--no-console", stdin=side) as process,
    ):
        os.close(side)
        url = re.search(r"http://\S+/mcp", line_with(process, "callers reach"))[0]
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            report = await told(client, "run_task", request="Extract the sales table")
            while report["outcome"] is None:
                (entry,) = report["waiting_for"]
                assert (entry["kind"], "in the terminal of callboard mcp" in entry["answered_by"]) == ("limit", True)
                line_with(process, "Go on")
                asked = entry["id"]
                while asked in [entry["id"] for entry in report["waiting_for"]]:  # keys before the prompt are dropped
                    keyboard.write(f"{entry['choices'][0][1]}\n".encode())
                    report = await told(client, "wait_for_task", seconds=1, task_id=report["task_id"])
        assert report["outcome"] == "out_of_budget"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def test_client_over_stdio_gets_no_link_of_the_console(folder):
    """The client reads the standard error, and could sign in before the person."""
    with started(folder, stdin=subprocess.PIPE) as process:
        line = line_with(process, "a person answers in the console")
        command = line[line.index("callboard console") :].split()[1:]
        link = command_line(*command).stdout
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert "http://" not in line + process.stderr.read()
    assert link.startswith("http://127.0.0.1:")


def test_stdio_ends_by_sigterm_without_output(folder):
    with started(folder, stdin=subprocess.PIPE) as process:
        line_with(process, "in the console")
        process.terminate()
        assert process.wait(PATIENCE) != 0
        assert process.stdout.read() == ""


def test_a_new_token_is_printed_with_its_settings():
    result = command_line("mcp", "--new-token", "--caller", "ann")
    token = re.search(r"callboard_\S{43}", result.stdout)[0]
    settings = yaml.safe_load(result.stdout.split("for the settings:\n")[1])
    assert settings == {"mcp_server": {"callers": {"ann": {"token": hash_of(token)}}}}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--http", "--caller", "ann"], "--caller is for stdio"),
        (["--port", "1"], "--port belongs to --http"),
        (["--caller", "an", "--no-console"], "mcp_server.callers has no caller 'an'"),
        (["--http", "--no-console"], "no caller has a token"),
    ],
)
def test_mistakes_are_named(folder, options, reason):
    result = command_line("mcp", str(folder), *options)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_a_journal_is_required(tmp_path):
    (tmp_path / "callboard.yaml").write_text("documents: {workspace: .}\n")
    result = command_line("mcp", str(tmp_path))
    assert result.exit_code == 2
    assert "journal.path is not set" in result.stderr
