"""The program that an MCP server is started with, where it is missing."""

from __future__ import annotations

import sys

import pytest

from callboard import Settings, Supervisor
from callboard.actors.commands import program_needed
from callboard.config import McpServer
from callboard.messages import SettingsError


@pytest.mark.parametrize("given", [{"url": "http://127.0.0.1:9/mcp"}, {"command": "./server"}])
def test_no_program_is_needed_over_http_or_where_it_may_be_in_a_folder(given):
    assert program_needed(McpServer(**given)) == ()


def test_a_program_is_found_by_name_or_path():
    assert [need.met for command in ("sh", sys.executable) for need in program_needed(McpServer(command=command))] == [
        True,
        True,
    ]


def test_programs_that_are_missing_are_one_error_with_the_commands(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    servers = {"a": {"command": "npx"}, "b": {"command": "uvx"}, "c": {"command": "npx", "optional": True}}
    with pytest.raises(SettingsError) as info:
        Supervisor.start(Settings.load(mcpServers=servers))
    assert str(info.value) == (
        "mcpServers.a: the program 'npx' is missing: apt install npm; "
        "mcpServers.b: the program 'uvx' is missing: pip install uv"
    )
    assert info.value.commands == ("apt install npm", "pip install uv")
