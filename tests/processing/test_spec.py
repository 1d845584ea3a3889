"""Kinds of agents of a program's own, in the table of one supervisor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callboard import FunctionModel, Settings, Supervisor, tool
from callboard.actors.processing import AGENTS, ON_TARGET, AgentSpec, agent_table
from callboard.actors.states import AppAgentStateManager, By
from callboard.messages import REMOTE, AgentKind, BrokenMachineError, Effect, SettingsError
from callboard.testing import MemoryServer

CLERK = AgentSpec(name="clerk", machine=AppAgentStateManager, strategies=ON_TARGET)


def test_the_table_has_those_that_ship_and_the_given_ones():
    assert [*agent_table(AGENTS, [CLERK])] == [*AgentKind, REMOTE, "clerk"]
    assert "clerk" not in AGENTS


def test_a_given_kind_takes_the_place_of_the_shipped_one_of_its_name():
    mine = replace(CLERK, name="app", prompt="Be brief.")
    assert agent_table(AGENTS, [mine])["app"] is mine
    assert AGENTS["app"] is not mine


@pytest.mark.parametrize("name", ["", "Clerk", "7", "a/b", "a b", "record", 41 * "a"])
def test_a_name_that_no_address_can_begin_with_is_refused(name):
    with pytest.raises(SettingsError, match="can't be the name of a kind"):
        agent_table(AGENTS, [replace(CLERK, name=name)])


def test_two_kinds_of_one_name_are_refused():
    with pytest.raises(SettingsError, match="two kinds are called 'clerk'"):
        agent_table(AGENTS, [CLERK, CLERK])


def test_a_kind_whose_machine_lacks_a_state_is_refused():
    class Extended(AppAgentStateManager):
        initial = "CONTINUE"
        transitions = {"CONTINUE": {"REVIEW": By.MODEL}, "REVIEW": {"FINISH": By.SYSTEM}, "FINISH": {}}  # noqa: RUF012

    with pytest.raises(BrokenMachineError, match="no state class for REVIEW"):
        agent_table(AGENTS, [replace(CLERK, machine=Extended)])


def test_agent_table_refuses_other_types():
    with pytest.raises(TypeError, match="expected AgentSpecs, found a str"):
        agent_table(AGENTS, ["clerk"])


def test_a_model_for_an_unknown_kind_names_those_there_are():
    with pytest.raises(SettingsError, match=r"'clerc'; there are: host, .*, clerk; did you mean 'clerk'\?"):
        Supervisor.start(models={"clerc": FunctionModel(dict)}, agents=[CLERK])


class Wrong(MemoryServer):
    @tool(effect=Effect.READ, agents=("clerc",))
    def peek(self) -> str:
        """Peek."""
        return ""


def test_a_tool_for_an_unknown_kind_names_the_nearest():
    with pytest.raises(SettingsError, match=r"the tool 'peek' of 'memory': .* did you mean 'clerk'\?"):
        Supervisor.start(servers=[Wrong()], agents=[CLERK])


def test_settings_that_were_made_by_hand_are_refused_at_the_start():
    with pytest.raises(SettingsError, match=r"models\.clerk: there is no kind of agent 'clerk'"):
        Supervisor.start(Settings(models={"clerk": "scripted:a.yaml"}))
