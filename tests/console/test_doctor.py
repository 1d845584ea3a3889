"""`callboard doctor`: its exit code, its output, and that nothing of others drives the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from callboard.__main__ import app

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def _small(here: Path) -> None:
    (here / "callboard.yaml").write_text(yaml.safe_dump({"documents": {"workspace": "."}}), encoding="utf-8")


def test_all_that_the_settings_name_works(call: Call) -> None:
    result = call("doctor")
    assert result.exit_code == 0
    assert "works  settings callboard.yaml\nworks  surface documents\n" in result.stdout
    assert result.stdout.endswith("\nall that the settings name works here\n")


def test_what_is_missing_is_told_with_its_command_and_the_exit_code(call: Call, here: Path) -> None:
    (here / "callboard.yaml").write_text("documents: {workspace: no where}", encoding="utf-8")
    result = call("doctor", ".")
    assert result.exit_code == 1
    assert f"\n       mkdir -p '{here}/no where'\n" in result.stdout
    assert result.stdout.endswith("\nsurface documents does not work\n")


def test_a_command_is_not_broken_by_a_narrow_terminal(here: Path) -> None:
    (here / "callboard.yaml").write_text("documents: {workspace: no where}", encoding="utf-8")
    told = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "40"}).stdout.splitlines()
    assert f"       mkdir -p '{here}/no where'" in told
    assert max(len(line) for line in told if "mkdir" not in line) <= 40


def test_wrong_settings_are_a_finding(call: Call, here: Path) -> None:
    (here / "callboard.yaml").write_text("limits: {stps: 3}\nlmits: {}", encoding="utf-8")
    result = call("doctor", "--json")
    found = {finding["part"]: finding for finding in json.loads(result.stdout)}
    assert (result.exit_code, found["settings"]["works"], len(found["settings"]["told"])) == (1, False, 2)


def test_without_settings_the_defaults_are_looked_at(call: Call, here: Path) -> None:
    (here / "callboard.yaml").unlink()
    result = call("doctor")
    assert result.exit_code == 0
    assert "works  settings the environment and the defaults\n" in result.stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [("notes", "MCP server notes: the program 'no\\x1b]0;such"), ("\x1b[2Ja\u202e", "mcpServers.\\x1b[2Ja\\u202e")],
)
def test_names_of_others_never_drive_the_terminal(call: Call, here: Path, name: str, told: str) -> None:
    servers = {name: {"command": "no\x1b]0;such\x07"}}
    (here / "callboard.yaml").write_text(yaml.safe_dump({"mcpServers": servers}), encoding="utf-8")
    result = call("doctor")
    assert result.exit_code == 1
    assert told in result.stdout
    assert not set("\x1b\x07\u202e") & set(result.stdout)
