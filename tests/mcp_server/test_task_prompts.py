"""Prompts of skills: the person at a client fills in the request."""

from __future__ import annotations

import pytest
from mcp import MCPError

from callboard.errors import SettingsError
from callboard.mcp_server._task_prompts import TaskPrompt
from support import FINISH


@pytest.fixture
def skilled(desk, tmp_path):
    """Start a supervisor with a skill."""
    folder = tmp_path / "report-style"
    folder.mkdir()
    text = "---\nname: report-style\ndescription: The house style.\n---\nThe largest figure comes first.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return desk(host=lambda _: FINISH, skills=[str(folder)])


async def test_skill_is_a_prompt_with_a_request(skilled):
    async with skilled.client() as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.description) == ("report-style", "The house style.")
        assert [(argument.name, argument.required) for argument in prompt.arguments] == [("request", True)]
        result = await client.get_prompt("report-style", {"request": "Write the sales"})
        (message,) = result.messages
    assert message.role == "user"
    assert message.content.text.endswith("Write the sales\n\nUse the skill report-style.")
    assert "run_task" in message.content.text
    assert "largest figure" not in str(result), "the text of a skill is for the agents"


ROUTINE = """routine: monthly
request: Report ${month}
parameters:
  month: {}
  source: {value: a.docx, document: true, description: The document of the month.}
subtasks:
- target: ${source}
  kind: app
  request: read
  steps:
  - {status: FINISH, result: '${month}'}
"""


async def test_routine_is_a_prompt_and_runs_by_its_name(desk, tmp_path):
    (tmp_path / "monthly.routine.yaml").write_text(ROUTINE, encoding="utf-8")
    service = desk(host=lambda _: FINISH, mcp_server={"routines": [tmp_path / "monthly.routine.yaml"]})
    async with service.client() as client:
        (prompt,) = (await client.list_prompts()).prompts
        required = {argument.name: argument.required for argument in prompt.arguments}
        assert (prompt.name, required) == ("monthly", {"month": True, "source": False})
        (message,) = (await client.get_prompt("monthly", {"month": "May"})).messages
        assert message.content.text.endswith("""run_task the routine 'monthly' and the parameters {"month": "May"}.""")
        call = {"request": "Report May", "routine": "monthly", "key": "may"}
        arguments = {**call, "parameters": {"month": "May", "source": "memo:one"}}
        report = (await client.call_tool("run_task", arguments)).structured_content
        assert (report["status"], report["others_texts"]["output"]) == ("completed", "May")
        again = (await client.call_tool("run_task", arguments)).structured_content
        assert again["task_id"] == report["task_id"]
        other = await client.call_tool("run_task", {**arguments, "parameters": {"month": "June"}})
        assert other.is_error


def test_routine_with_the_name_of_a_skill_is_an_error(desk, tmp_path):
    """One of the two prompts would be lost."""
    folder = tmp_path / "monthly"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: monthly\ndescription: Reports.\n---\nx\n", encoding="utf-8")
    (tmp_path / "monthly.routine.yaml").write_text(ROUTINE, encoding="utf-8")
    with pytest.raises(SettingsError, match="a skill is called 'monthly', too"):
        desk(host=lambda _: FINISH, skills=[folder], mcp_server={"routines": [tmp_path / "monthly.routine.yaml"]})


@pytest.mark.parametrize("arguments", [{}, {"request": "x", "target": "y"}, {"request": "x" * 20_001}])
async def test_prompt_refuses_other_arguments(skilled, arguments):
    async with skilled.client() as client:
        with pytest.raises(MCPError):
            await client.get_prompt("report-style", arguments)


async def test_server_without_skills_has_no_prompts(desk):
    async with desk(host=lambda _: FINISH).client() as client:
        assert (await client.list_prompts()).prompts == []


def test_prepared_request_has_parameters_of_its_own():
    prompt = TaskPrompt("close", "Close a month.", {"month": "Its name."}, lambda values: f"Close {values['month']}")
    added = []
    prompt.add_to(type("Server", (), {"add_prompt": lambda _, prompt: added.append(prompt)})())
    assert added[0].fn(month="May").endswith("\n\nClose May")
