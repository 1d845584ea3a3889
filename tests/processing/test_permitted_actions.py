"""The policy between a decision and its action: the operator's rules, whatever a model thinks."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
import threading
from decimal import Decimal
from pathlib import Path

import docx
import openpyxl
import pytest
from pydantic import SecretStr

from callboard import EventName, Outcome, Task, tool
from callboard.messages import AgentKind, Effect, Hazard, NotWaitingError
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import MemoryServer, VirtualClock
from support import FINISH, HELD, PATIENCE, action, actions, call, lone, told, write

READ = {"Status": "CONTINUE", "ControlLabel": "field-1", "Function": "read"}
THEIRS = '''
"""A third-party MCP server whose tools say of themselves what they like."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("theirs", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look() -> str:
    """Look."""
    return "seen"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def burn() -> str:
    """Burn."""
    return "ashes"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=True))
def wipe() -> str:
    """Wipe."""
    return "clean"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
def mark() -> str:
    """Mark."""
    return "marked"


@server.tool()
def something() -> str:
    """Do something."""
    return "done"


server.run("stdio")
'''


def verdicts(handle):
    """List the rules' verdicts on a task's actions, once it is over."""
    decided = [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]
    return [(data["tool"], data["verdict"], data["waived"]) for data in decided]


def asked_for(handle):
    """List the tools that a person was asked about, saying yes to each."""
    tools = []
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            request = event.data["request"]
            tools.extend(action["tool"] for action in request["actions"])
            handle.approve(request["id"])
    return tools


def dangerous(hazard, target=None):
    """Make a surface with one tool, ``danger``, that has a hazard."""

    class Dangerous(MemoryServer):
        @tool(effect=Effect.ONCE, agents=tuple(AgentKind), hazards=(hazard,))
        def danger(self) -> str:
            """Do something potentially harmful."""
            self.effects.append(("world", hazard.value, "harm"))
            return hazard.value

    return Dangerous(target or MemoryServer.window())


# Matches of a rule


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"agent": "app/memo/*"}, True),
        ({"agent": "app/word/*"}, False),
        ({"agent": "re:app/(memo|word)/.*"}, True),
        ({"agent": "re:app"}, False),
        ({"application": "memo"}, True),
        ({"application": "excel"}, False),
        ({"tool": "wri*"}, True),
        ({"tool": "append"}, False),
        ({"effects": ["idempotent"]}, True),
        ({"effects": ["once", "read"]}, False),
        ({"hazards": ["deletes"]}, False),
        ({"arguments": {"text": "hel*"}}, True),
        ({"arguments": {"text": "Hel*"}}, False),
        ({"arguments": {"text": "re:h.*o"}}, True),
        ({"arguments": {"text": "re:h"}}, False),
        ({"arguments": {"control_id": "field-1", "text": "*"}}, True),
        ({"arguments": {"control_id": "field-2", "text": "*"}}, False),
        ({"arguments": {"path": "*"}}, False),
        ({"agent": "app/*", "application": "memo", "tool": "write", "arguments": {"text": "hello"}}, True),
        ({"agent": "app/*", "application": "memo", "tool": "write", "arguments": {"text": "bye"}}, False),
    ],
)
def test_a_rule_matches_when_all_that_it_names_matches(start, rule, matches):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=[write(), FINISH], servers=[surface], policy=[{"verdict": "deny", **rule}])
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert surface.effects == ([] if matches else [("memo:one", "field-1", "hello")])


def test_an_argument_that_is_no_text_is_matched_as_json(start):
    class Heater(MemoryServer):
        @tool(effect=Effect.IDEMPOTENT)
        def heat(self, degrees: int, rooms: list[str]) -> int:
            """Heat."""
            self.effects.append(("house", ",".join(rooms), str(degrees)))
            return degrees

    surface = Heater(MemoryServer.window())
    policy = [{"verdict": "deny", "tool": "heat", "arguments": {"degrees": "re:[3-9][0-9]", "rooms": '*"bath"*'}}]
    answers = [call("heat", degrees=30, rooms=["bath"]), call("heat", degrees=20, rooms=["bath"]), FINISH]
    assert start(app=answers, servers=[surface], policy=policy).submit(lone()).result(PATIENCE).ok
    assert surface.effects == [("house", "bath", "20")]


class Payments(MemoryServer):
    """A surface with one tool that takes a number, a flag and a default."""

    @tool(effect=Effect.IDEMPOTENT)
    def pay(self, amount: float, urgent: bool = False, account: str = "main") -> str:  # noqa: FBT002
        """Pay."""
        self.effects.append((account, str(urgent), str(amount)))
        return account


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ({"amount": "1000"}, {"amount": 1000.0}),
        ({"amount": "1000"}, {"amount": "1e3"}),
        ({"amount": "1000.0"}, {"amount": 1000}),
        ({"urgent": "true"}, {"amount": 1, "urgent": "yes"}),
        ({"urgent": "true"}, {"amount": 1, "urgent": 1}),
        ({"account": "main"}, {"amount": 1}),
    ],
)
def test_a_rule_sees_the_arguments_that_the_tool_gets(start, rule, written):
    surface = Payments(MemoryServer.window())
    policy = [{"verdict": "deny", "tool": "pay", "arguments": rule}]
    handle = start(app=[call("pay", **written), FINISH], servers=[surface], policy=policy).submit(lone())
    assert handle.result(PATIENCE)
    assert (surface.effects, verdicts(handle)) == ([], [("pay", "deny", "")])


def test_a_decision_tells_what_the_rules_saw_and_the_model_did_not_write(start):
    policy = {"rules": [{"verdict": "allow", "tool": "pay"}], "explain": True}
    surface = Payments(MemoryServer.window())
    handle = start(app=[call("pay", "FINISH", amount="1e3"), FINISH], servers=[surface], policy=policy).submit(lone())
    assert handle.result(PATIENCE).ok
    (told,) = (event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED)
    seen = {"amount": 1000, "urgent": False, "account": "main"}
    assert (told["canonical"], told["inexact"], told["resources"]) == (seen, [], {"unknown": {}})


@pytest.mark.parametrize("verdict", ["allow", "approve", "deny"])
def test_the_first_rule_that_matches_decides(start, verdict):
    rules = [{"verdict": "deny", "tool": "read"}, {"verdict": verdict, "tool": "w*"}]
    rules += [{"verdict": later, "tool": "write"} for later in ("deny", "approve", "allow") if later != verdict]
    handle = start(app=[write(), FINISH], policy=rules).submit(lone())
    assert asked_for(handle) == (["write"] if verdict == "approve" else [])
    assert verdicts(handle)[0] == ("write", verdict, "")


def test_action_without_a_matching_rule_is_allowed(start):
    handle = start(app=[write(), FINISH], policy=[{"verdict": "deny", "tool": "append"}]).submit(lone())
    assert handle.result(PATIENCE).ok
    assert verdicts(handle) == [("write", "allow", "")]


# Requests of the shipped default


@pytest.mark.parametrize("hazard", Hazard)
def test_the_default_asks_before_what_may_do_harm(start, until, hazard):
    surface = dangerous(hazard)
    handle = start(app=[call("danger"), FINISH], servers=[surface]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert surface.effects == []
    assert re.fullmatch(r"it may do harm \(danger [a-z]+s( [a-z ]+)?\)", asked.reason)
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


@pytest.mark.parametrize("function", ["read", "write", "append"])
def test_the_default_does_not_ask_before_what_has_no_hazard(start, function):
    arguments = {} if function == "read" else {"text": "x"}
    handle = start(app=[call(function, control_id="field-1", **arguments), FINISH]).submit(lone())
    assert handle.result(PATIENCE).ok
    assert verdicts(handle) == [(function, "allow", "")]


def test_the_operators_rules_come_before_the_default(start):
    surface = dangerous(Hazard.SENDS)
    rules = [{"verdict": "allow", "tool": "danger"}]
    assert start(app=[call("danger", "FINISH")], servers=[surface], policy=rules).submit(lone()).result(PATIENCE).ok
    assert len(surface.effects) == 1


def test_the_default_can_be_switched_off(start):
    surface = dangerous(Hazard.SPENDS)
    policy = {"defaults": False}
    assert start(app=[call("danger", "FINISH")], servers=[surface], policy=policy).submit(lone()).result(PATIENCE).ok
    assert len(surface.effects) == 1


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a workbook and a document that no task made."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    book = openpyxl.Workbook()
    book.active.title = "Sales"
    book.active["A1"] = 1
    book.save(folder / "theirs.xlsx")
    document = docx.Document()
    document.add_paragraph("theirs")
    document.save(str(folder / "theirs.docx"))
    return folder


def on_documents(workspace):
    return {"servers": [], "documents": {"workspace": str(workspace)}}


def cells(cell, value, status="CONTINUE"):
    return call("write_range", status, sheet="Sales", cell=cell, values=[[value]])


def cell_of(workspace, name, cell):
    return openpyxl.load_workbook(workspace / name)["Sales"][cell].value


PAYROLL = [{"sheet": "Payroll"}, {"sheet": "payroll"}, {"control_id": "sheet-1"}, {"cell": "'Payroll'!A1"}, {}]


@pytest.mark.parametrize("written", PAYROLL, ids=str)
@pytest.mark.parametrize(
    "rule", [{"resource": "sheet:Payroll"}, {"resource": "range:Payroll!A1:A9"}, {"arguments": {"sheet": "Payroll"}}]
)
def test_a_sheet_that_is_denied_is_denied_however_it_is_named(start, workspace, written, rule):
    book = openpyxl.load_workbook(workspace / "theirs.xlsx")
    book.active.title = "Payroll"
    book.save(workspace / "theirs.xlsx")
    before = (workspace / "theirs.xlsx").read_bytes()
    answers = [call("write_range", values=[[2]], **written), FINISH]
    policy = [{"verdict": "deny", **rule}]
    handle = start(app=answers, policy=policy, **on_documents(workspace)).submit(lone("theirs.xlsx"))
    handle.result(PATIENCE)
    assert verdicts(handle) == [("write_range", "deny", "")]
    assert (workspace / "theirs.xlsx").read_bytes() == before


def test_allow_for_a_range_does_not_let_more_than_it_through(start, workspace):
    policy = [{"verdict": "allow", "resource": "range:Sales!A1:B2"}, {"verdict": "deny", "tool": "write_range"}]
    answers = [cells("A1", 5), cells("B2", 6), call("write_range", sheet="Sales", cell="B2", values=[[7, 8]]), FINISH]
    handle = start(app=answers, policy=policy, **on_documents(workspace)).submit(lone("theirs.xlsx"))
    handle.result(PATIENCE)
    assert [verdict for _, verdict, _ in verdicts(handle)] == ["allow", "allow", "deny"]
    assert [cell_of(workspace, "theirs.xlsx", cell) for cell in ("A1", "B2", "C2")] == [5, 6, None]


def test_overwriting_what_the_task_did_not_make_asks(start, until, workspace):
    handle = start(app=[cells("A1", 2), FINISH], **on_documents(workspace)).submit(lone("theirs.xlsx"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert "overwrites" in asked.reason
    assert asked.reason.endswith("; it would replace 1 cell of 'Sales' with content: A1 '1'")
    assert cell_of(workspace, "theirs.xlsx", "A1") == 1
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok
    assert cell_of(workspace, "theirs.xlsx", "A1") == 2


def test_only_the_action_that_a_person_is_asked_about_is_described(start, until, workspace):
    described = []

    class Describes(DocumentSurface):
        def replaced(self, target, tool, arguments):
            described.append(arguments["cell"])
            return super().replaced(target, tool, arguments)

    overwrites = action("write_range", sheet="Sales", cell="A1", values=[[2]])
    answer = actions(overwrites, overwrites)
    handle = start(app=[answer, FINISH], servers=[Describes(workspace)]).submit(lone("theirs.xlsx"))
    until(handle, EventName.APPROVAL_REQUESTED)
    assert described == ["A1"]


def test_a_surface_that_cannot_describe_a_call_is_asked_for_no_more(start, until, workspace):
    class Breaks(DocumentSurface):
        def replaced(self, target, tool, arguments):
            raise RuntimeError(tool)

    handle = start(app=[cells("A1", 2), FINISH], servers=[Breaks(workspace)]).submit(lone("theirs.xlsx"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert "would replace" not in asked.reason
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok


def test_a_person_sees_the_recipient_of_what_is_sent(start, until):
    class Sends(MemoryServer):
        def hazards(self, target, tool, arguments, made):
            return {Hazard.SENDS}

        def recipient(self, target, tool, arguments):
            return f"the owner of {target.id}"

    handle = start(app=[write("x"), FINISH], servers=[Sends(MemoryServer.window())]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert handle.approvals()[0].reason.endswith("; it would send to the owner of memo:one")


def test_adding_to_what_the_task_did_not_make_does_not_ask(start, workspace):
    handle = start(app=[cells("B5", 2), FINISH], **on_documents(workspace)).submit(lone("theirs.xlsx"))
    assert handle.result(PATIENCE).ok
    assert asked_for(handle) == []
    assert cell_of(workspace, "theirs.xlsx", "B5") == 2


def test_overwriting_what_the_task_made_itself_does_not_ask(start, workspace):
    host = [
        {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "ours.xlsx"}},
        {"Status": "ASSIGN", "ControlText": "ours.xlsx", "Current Sub-Task": "fill"},
        {"Status": "ASSIGN", "ControlText": "ours.xlsx", "Current Sub-Task": "fill again"},
        FINISH,
    ]
    app = [call("add_sheet", title="Sales"), cells("A1", 1), cells("A1", 2, "FINISH"), cells("A1", 3, "FINISH")]
    handle = start(host=host, app=app, **on_documents(workspace)).submit(Task(request="fill"))
    assert handle.result(PATIENCE).ok
    assert asked_for(handle) == []
    assert cell_of(workspace, "ours.xlsx", "A1") == 3


def test_file_made_by_one_task_is_not_counted_as_made_by_the_next(start, until, workspace):
    def host(request):
        return {"Status": "FINISH", "Function": "create_document", "Args": {"path": "ours.xlsx"}}

    def app(request):
        return FINISH if request.memory else call("rename_sheet", sheet="Sheet1", title="Sales")

    supervisor = start(host=host, app=app, **on_documents(workspace))
    assert supervisor.submit(Task(request="make")).result(PATIENCE).ok
    handle = supervisor.submit(lone("ours.xlsx"))
    assert until(handle, EventName.APPROVAL_REQUESTED)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_opening_a_document_of_the_workspace_launches_nothing(start, workspace):
    host = [{"Status": "CONTINUE", "Function": "open_document", "Args": {"path": "theirs.docx"}}, FINISH]
    handle = start(host=host, **on_documents(workspace)).submit(Task(request="open"))
    assert handle.result(PATIENCE).ok
    assert verdicts(handle) == [("open_document", "allow", "")]


def answers_of(*tools):
    return [*(call(f"theirs.{name}") for name in tools), FINISH]


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [(False, ["look", "burn", "wipe", "mark", "something"]), (True, ["burn", "wipe", "something"])],
    ids=["unknown", "trusted"],
)
def test_the_default_asks_before_destructive_or_unannotated_mcp_tools(start, tmp_path, trusted, expected):
    script = tmp_path / "theirs.py"
    script.write_text(THEIRS, encoding="utf-8")
    theirs = {"command": sys.executable, "args": [str(script)], "trusted": trusted, "surface": False}
    answers = answers_of("look", "burn", "wipe", "mark", "something")
    handle = start(app=answers, mcpServers={"theirs": theirs}).submit(lone())
    assert asked_for(handle) == [f"theirs.{name}" for name in expected]
    assert handle.result(PATIENCE).ok


# The model asks for more, never for less


@pytest.mark.parametrize("answer", [write(status="CONFIRM"), {**READ, "Status": "CONFIRM"}, {"Status": "CONFIRM"}])
def test_the_model_may_ask_for_approval_of_anything(start, until, answer):
    policy = [{"verdict": "allow"}]
    handle = start(app=[{**answer, "Comment": "may I?"}, FINISH], policy=policy).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert asked.reason == "may I?"
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok


@pytest.mark.parametrize("status", ["CONTINUE", "FINISH", "CONFIRM", "SCREENSHOT", "FAIL", "PENDING", "ERROR"])
def test_the_model_never_lowers_a_denial(start, status):
    surface = MemoryServer(MemoryServer.window())
    answers = [write(status=status), FINISH, FINISH]
    policy = [{"verdict": "deny", "tool": "write"}]
    system = {"ask_question": False}
    start(app=answers, servers=[surface], policy=policy, system=system).submit(lone()).result(PATIENCE)
    assert surface.effects == []


@pytest.mark.parametrize("status", ["CONTINUE", "FINISH", "CONFIRM", "SCREENSHOT", "FAIL", "PENDING", "ERROR"])
def test_the_model_never_lowers_what_needs_approval(start, until, status):
    surface = MemoryServer(MemoryServer.window())
    policy = [{"verdict": "approve", "tool": "write"}]
    handle = start(app=[write(status=status), FINISH], servers=[surface], policy=policy).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    assert surface.effects == []
    handle.reject(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert surface.effects == []


# safe_guard


def test_without_safe_guard_what_needs_approval_runs_unasked(start):
    surface = MemoryServer(MemoryServer.window())
    policy = [{"verdict": "approve", "tool": "write"}]
    system = {"safe_guard": False}
    handle = start(app=[write(), FINISH], servers=[surface], policy=policy, system=system).submit(lone())
    assert asked_for(handle) == []
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1
    assert verdicts(handle) == [("write", "approve", "safe_guard is off")]


def test_without_safe_guard_a_models_wish_for_approval_asks_no_question(start):
    surface = MemoryServer(MemoryServer.window())
    system = {"safe_guard": False}
    handle = start(app=[write(status="CONFIRM"), FINISH], servers=[surface], system=system).submit(lone())
    assert asked_for(handle) == []
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


def test_without_safe_guard_the_log_does_not_say_that_anybody_approved(start):
    policy = [{"verdict": "approve", "tool": "write"}]
    system = {"safe_guard": False}
    handle = start(app=[write(status="CONFIRM"), FINISH], policy=policy, system=system).submit(lone())
    assert handle.result(PATIENCE).ok
    assert {waived for _, _, waived in verdicts(handle)} == {"safe_guard is off"}


@pytest.mark.parametrize("status", ["CONTINUE", "CONFIRM"])
def test_without_safe_guard_a_denial_holds(start, status):
    surface = MemoryServer(MemoryServer.window())
    policy = [{"verdict": "deny", "tool": "write"}]
    system = {"safe_guard": False}
    start(app=[write(status=status), FINISH], servers=[surface], policy=policy, system=system).submit(lone()).result(
        PATIENCE
    )
    assert surface.effects == []


# A denial


def test_a_denial_goes_back_to_the_model_with_its_reason(start):
    notes = []
    policy = [{"verdict": "deny", "tool": "write", "reason": "the books are closed"}]
    assert start(app=told([write(), FINISH], notes), policy=policy).submit(lone()).result(PATIENCE).ok
    assert notes == [(), ("write failed: denied: the books are closed",)]


def test_a_denial_in_a_list_lets_earlier_actions_run_and_no_later_ones(start):
    surface, notes = MemoryServer(MemoryServer.window()), []
    several = [write("a"), write("b", function="append"), write("c")]
    actions = [{"function": a["Function"], "control_label": a["ControlLabel"], "arguments": a["Args"]} for a in several]
    answers = [{"Status": "CONTINUE", "Actions": actions}, FINISH]
    policy = [{"verdict": "deny", "tool": "append"}]
    assert start(app=told(answers, notes), servers=[surface], policy=policy).submit(lone()).result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", "a")]
    assert [note.partition(":")[0] for note in notes[1]] == ["append failed", "write was not run"]


def test_a_person_is_not_asked_about_what_is_denied(start):
    policy = [{"verdict": "deny", "tool": "write"}, {"verdict": "approve"}]
    handle = start(app=[write(status="CONFIRM"), FINISH], policy=policy).submit(lone())
    assert handle.result(PATIENCE).ok
    assert asked_for(handle) == []
    with pytest.raises(NotWaitingError):
        handle.approve(f"{handle.task_id}~1~ask-1")


# The log


@pytest.mark.parametrize("verdict", ["allow", "approve", "deny"])
def test_every_verdict_is_an_event_with_its_rule(start, verdict):
    policy = [{"verdict": "deny", "tool": "append"}, {"verdict": verdict, "tool": "write"}]
    handle = start(app=[write(), FINISH], policy=policy).submit(lone())
    asked_for(handle)
    event = next(event for event in handle.events() if event.name is EventName.POLICY_DECIDED)
    assert (event.task_id, event.agent, event.step) == (handle.task_id, "app/memo/one", 1)
    assert (event.data["tool"], event.data["verdict"]) == ("write", verdict)
    assert event.data["reason"] == "rule 2 of the policy"


def test_every_verdict_is_in_the_log_file(start, tmp_path):
    log = tmp_path / "callboard.log"
    policy = [{"verdict": "deny", "tool": "append", "reason": "no"}, {"verdict": "approve", "tool": "write"}]
    answers = [READ, write(), write(function="append"), FINISH]
    supervisor = start(app=answers, policy=policy, log={"file": str(log)})
    asked_for(supervisor.submit(lone()))
    supervisor.stop()
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    decided = [(line["tool"], line["verdict"]) for line in lines if line["event"] == "policy.decided"]
    assert decided == [("read", "allow"), ("write", "approve"), ("write", "approve"), ("append", "deny")]


def test_verdict_that_an_approval_waives_is_marked(start):
    policy = [{"verdict": "approve", "tool": "write"}]
    handle = start(app=[write(), FINISH], policy=policy).submit(lone())
    asked_for(handle)
    assert verdicts(handle) == [("write", "approve", ""), ("write", "approve", "approved")]


class Pondering(MemoryServer):
    """A window whose forecast of a call does not end until it is let go."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.let_go = threading.Event(), threading.Event()

    def hazards(self, target, tool, arguments, made):
        if not self.let_go.is_set():
            self.begun.set()
            assert self.let_go.wait(HELD)
        return set()


def test_a_hazard_check_that_takes_too_long_is_a_failure_the_model_sees(start, until):
    clock, surface, notes = VirtualClock(), Pondering(), []
    write = {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "x"}}

    def app(request):
        notes.extend(request.observation.notes)
        return write if request.call == 1 else FINISH

    supervisor = start(app=app, servers=[surface], clock=clock, limits={"command_seconds": 60})
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(61)
    until(handle, EventName.STEP_ENDED, results=["failure"])
    surface.let_go.set()
    assert handle.result(PATIENCE).ok
    assert notes[-1] == "write failed: nothing was done: asking what write would do took longer than 60 s"
    assert surface.effects == []


def test_a_mistyped_rule_is_a_warning_at_the_start(start, tmp_path):
    policy = [{"verdict": "deny", "tool": "wrte"}, {"verdict": "deny", "application": "memo"}]
    log = tmp_path / "events.log"
    supervisor = start(app=[FINISH], policy=policy, log={"file": str(log)})
    assert supervisor.warnings == ("rule 1 of the policy: no tool is called 'wrte'; did you mean 'write'?",)
    supervisor.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["level"], line["rule"]) for line in lines if line["event"] == "policy.unmatched"] == [("warning", 1)]


NO_KEY = SecretStr("x")


class Banks(MemoryServer):
    """A surface whose tool takes values that can be written in many ways."""

    @tool(effect=Effect.IDEMPOTENT)
    def book(
        self, account: int, amount: Decimal = Decimal(1), at: dt.datetime | None = None, key: SecretStr = NO_KEY
    ) -> str:
        """Book."""
        self.effects.append((str(account), str(amount), str(at)))
        return key.get_secret_value()


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ({"account": "9007199254740993"}, {"account": 9007199254740993}),
        ({"amount": "1000"}, {"account": 1, "amount": "1e3"}),
        ({"amount": "1000"}, {"account": 1, "amount": "1000.00"}),
        ({"amount": "0.50"}, {"account": 1, "amount": "0.5"}),
        ({"at": "2024-01-01T00:00:00Z"}, {"account": 1, "at": "2024-01-01T01:00:00+01:00"}),
        ({"account": "2", "key": "*"}, {"account": 2}),
    ],
)
def test_large_decimal_and_zoned_values_have_one_form(start, rule, written):
    surface = Banks(MemoryServer.window())
    policy = [{"verdict": "deny", "tool": "book", "arguments": rule}]
    handle = start(app=[call("book", **written), FINISH], servers=[surface], policy=policy).submit(lone())
    assert handle.result(PATIENCE).ok
    assert (surface.effects, verdicts(handle)) == ([], [("book", "deny", "")])


def test_a_rounded_number_is_not_allowed(start):
    surface = Banks(MemoryServer.window())
    policy = [{"verdict": "allow", "arguments": {"account": "9007199254740993"}}, {"verdict": "deny"}]
    answers = [call("book", account=9007199254740992), FINISH]
    start(app=answers, servers=[surface], policy=policy).submit(lone()).result(PATIENCE)
    assert surface.effects == []
