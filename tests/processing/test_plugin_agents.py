"""Kinds of agents of plug-ins: named in the settings, and known there by that name."""

from __future__ import annotations

import pytest

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.actors.processing import named_agents
from callboard.messages import SettingsError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, command_line

EDITORS = """
from callboard.actors.processing import ON_TARGET, AgentSpec
from callboard.actors.states import AppAgentStateManager

EDITOR = AgentSpec(name="editor", machine=AppAgentStateManager, strategies=ON_TARGET)
"""
ENTRIES = {"editor": "acme_editors:EDITOR", "writer": "acme_editors:EDITOR", "machine": "acme_editors:ON_TARGET"}


@pytest.fixture(autouse=True)
def _editors(install):
    install("acme", "agents", ENTRIES, acme_editors=EDITORS)


@pytest.mark.parametrize("name", ["editor", "acme:editor"])
def test_a_plugins_agent_works_with_a_model_of_the_settings(name, tmp_path):
    (tmp_path / "script.yaml").write_text("editor/memo/one: [{Status: FINISH}]", encoding="utf-8")
    settings = Settings.load(agents=[name], models={"editor": "scripted:script.yaml"}, base=tmp_path)
    window = MemoryServer.window().model_copy(update={"kinds": ("editor",)})
    with Supervisor.start(settings, servers=[MemoryServer(window)]) as supervisor:
        (target,) = supervisor.targets()
        assert supervisor.submit(Task(request="edit", target=target.id)).result(PATIENCE).ok


def test_the_command_replay_has_the_kinds_that_the_settings_name(tmp_path):
    (tmp_path / "callboard.yaml").write_text("agents: [editor]\njournal: {path: journal.db}", encoding="utf-8")
    window = MemoryServer.window().model_copy(update={"kinds": ("editor",)})
    with Supervisor.start(
        tmp_path / "callboard.yaml", models={"editor": FunctionModel(lambda _: FINISH)}, servers=[MemoryServer(window)]
    ) as supervisor:
        (target,) = supervisor.targets()
        assert supervisor.submit(Task(request="edit", target=target.id, id="t")).result(PATIENCE).ok
    assert command_line("replay", "t", tmp_path).exit_code == 0
    alone = command_line("replay", "t", tmp_path / "journal.db")
    assert (alone.exit_code, "editor" in alone.stderr) == (2, True)


def test_a_kind_that_no_setting_names_is_unknown():
    with pytest.raises(SettingsError, match=r"models.editor: unknown key; "):
        Settings.load(models={"editor": "scripted:script.yaml"})


def test_a_kind_of_the_settings_and_of_the_program_is_refused():
    (spec,) = named_agents(Settings.load(agents=["editor"]))
    with pytest.raises(SettingsError, match="two kinds are called 'editor'"):
        Supervisor.start(
            Settings.load(agents=["editor"]), agents=[spec], models={"app": FunctionModel(lambda _: FINISH)}
        )


@pytest.mark.parametrize(
    ("agents", "told"),
    [
        (["editr"], "agents.0: there is no agent plug-in 'editr'; installed are: editor (acme 1.2), "),
        (
            ["editor", "writer"],
            "agents.1: the plug-in 'writer' of acme 1.2 (acme_editors:EDITOR) is the kind 'editor': ",
        ),
        (
            ["machine"],
            "agents.0: the plug-in 'machine' of acme 1.2 (acme_editors:ON_TARGET) is a Strategies, not an AgentSpec",
        ),
    ],
)
def test_wrong_plugin_is_refused_with_the_reason(agents, told):
    with pytest.raises(SettingsError) as info:
        Supervisor.start(Settings.load(agents=agents))
    assert str(info.value).startswith(told)
