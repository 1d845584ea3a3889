"""One decision of a real language model for each kind of agent: valid at once, and the one that anybody would take."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from callboard import EventName, Task, tool
from callboard.messages import AgentKind, Effect
from callboard.testing import MemoryServer

WORKSPACE = Path(__file__).resolve().parents[2] / "examples" / "sales_report" / "workspace"
SECONDS = 600

pytestmark = [pytest.mark.local_llm, pytest.mark.timeout(SECONDS)]


class Shell(MemoryServer):
    """A shell that notes the commands that it is told to run."""

    @tool(effect=Effect.ONCE, agents=(AgentKind.LINUX,))
    def run(self, target: str, command: str) -> str:
        """Run a command in the shell, and give its output."""
        self.effects.append((target, "", command))
        return ""


def decided(handle):
    """Wait for the end, check that one answer was given and that it was valid, and give its status."""
    result = handle.result(SECONDS)
    events = [event for event in handle.events() if event.name in {EventName.MODEL_ANSWERED, EventName.MODEL_REPAIRED}]
    assert events[:1], result.causes
    assert events[0].name is EventName.MODEL_ANSWERED, events[0].data["reason"]
    return events[0].data["status"]


@pytest.mark.slow
def test_a_host_assigns_to_the_target_that_has_what_is_needed(begin, tmp_path):
    shutil.copytree(WORKSPACE, tmp_path / "workspace")
    (tmp_path / "workspace" / "letters").mkdir()
    supervisor = begin(
        given={"app": lambda _: {"Status": "FINISH", "Comment": "Read."}},
        documents={"workspace": tmp_path / "workspace"},
    )
    handle = supervisor.submit(Task(request="Read the table in the sales document, and make a workbook of it"))
    assert decided(handle) == "ASSIGN"
    assert [done.address for done in handle.result(0).subtasks] == ["app/word/sales.docx"]


@pytest.mark.slow
def test_an_app_agent_calls_the_right_tool_on_the_right_control(begin):
    surface = MemoryServer(MemoryServer.window(), controls={"First name": "", "City": "", "Phone": ""})
    handle = begin(servers=[surface]).submit(Task(request="Write Lisbon into the field City", target="memo:one"))
    assert decided(handle) == "CONTINUE"
    assert surface.effects == [("memo:one", "City", "Lisbon")]


@pytest.mark.slow
def test_an_app_agent_reads_the_table_that_is_meant(begin, tmp_path):
    shutil.copytree(WORKSPACE, tmp_path / "workspace")
    supervisor = begin(documents={"workspace": tmp_path / "workspace"})
    handle = supervisor.submit(Task(request="Read the table of the revenue", target="sales.docx"))
    assert decided(handle) == "CONTINUE"
    (read,) = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert (read["tool"], read["status"]) == ("read_table", "success")


@pytest.mark.slow
def test_a_mobile_agent_touches_the_right_control(begin):
    surface = MemoryServer(MemoryServer.device(), controls={"Search": "", "Message": "", "Send": "Send"})
    handle = begin(servers=[surface]).submit(Task(request="Type the word hello into Message", target="emulator"))
    assert decided(handle) == "CONTINUE"
    assert surface.effects == [("emulator", "Message", "hello")]


def test_a_linux_agent_runs_the_right_command(begin):
    surface = Shell(MemoryServer.shell(), controls={"prompt": "$"})
    handle = begin(servers=[surface]).submit(Task(request="List the files in the folder /srv/www", target="local"))
    assert decided(handle) == "CONTINUE"
    ((_, _, command),) = surface.effects
    assert command.split()[0] in {"ls", "find"}
    assert "/srv/www" in command
