"""Attacks by installed packages: a distribution that is not named runs no code."""

from __future__ import annotations

import pytest
import yaml

from callboard import FunctionModel, Settings, Supervisor
from callboard.messages import SettingsError
from support import FINISH, command_line

WRITES = """
from pathlib import Path

Path(__file__).with_name("imported").touch()
"""
GROUPS = ("surfaces", "models", "agents", "checks", "policies", "policy")


@pytest.fixture
def intruders(install):
    """Install distributions of all groups whose import leaves a file; gives their folders."""
    return [
        install(
            f"evil-{group}",
            group,
            {"documents": f"evil_{group}:Evil", "evil": f"evil_{group}:Evil"},
            **{f"evil_{group}": WRITES},
        )
        for group in GROUPS
    ]


def imported(intruders):
    return [path.name for path in intruders if (path / "imported").exists()]


def test_a_plugin_that_is_not_named_is_never_imported(intruders, tmp_path):
    settings = Settings.load(documents={"workspace": tmp_path})
    with Supervisor.start(settings, models={"app": FunctionModel(lambda _: FINISH)}) as supervisor:
        assert supervisor.targets()
    assert imported(intruders) == []


@pytest.mark.parametrize("command", ["config", "doctor", "run", "tools"])
def test_no_command_imports_a_plugin_that_is_not_named(intruders, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "callboard.yaml").write_text(
        yaml.safe_dump({"documents": {"workspace": "."}, "models": {"host": "scripted:script.yaml"}}), encoding="utf-8"
    )
    (folder / "task.yaml").write_text("request: do it\n", encoding="utf-8")
    (folder / "script.yaml").write_text(yaml.safe_dump({"host": [FINISH]}), encoding="utf-8")
    given = ("--settings", folder) if command == "tools" else (folder,)
    assert command_line(command, *given).exit_code == 0
    assert imported(intruders) == []


def test_the_import_of_a_plugin_that_is_named_is_seen(intruders):
    with pytest.raises(SettingsError, match="has no attribute 'Evil'"):
        Supervisor.start(Settings.load(surfaces={"evil": {}}))
    assert imported(intruders) == [intruders[0].name]
