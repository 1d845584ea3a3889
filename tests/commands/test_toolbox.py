"""The toolbox: the tools each agent is offered, and how they are bound, hidden and checked."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from callboard.actors.commands import Asked, Toolbox, find_target
from callboard.actors.commands._bound_tools import declared_secret
from callboard.actors.runtime import Lease
from callboard.config import PolicyRule
from callboard.messages import AgentKind, CommandType, Effect, Hazard, Observation, SettingsError, Target, TargetKind
from callboard.surfaces import EffectGuard, Server, ToolError, tool
from callboard.testing import MemoryServer


def target(id_, name="memo", address="app/memo/x", server="memory"):
    return Target(id=id_, name=name, kind=TargetKind.WINDOW, address=address, server=server)


class Office(Server):
    """Tools for several kinds of agent, and one that only the system uses."""

    def __init__(self, name="office"):
        self.name = name

    def targets(self):
        return (
            Target(
                id="a.docx",
                name="a",
                kind=TargetKind.WINDOW,
                address="app/word/a",
                server=self.name,
                binds={"document": "a.docx"},
            ),
        )

    def observe(self, target):
        return Observation()

    @tool(effect=Effect.READ, agents=(AgentKind.HOST,))
    def start(self, name: str) -> str:
        """Start something."""
        return name

    @tool(effect=Effect.ONCE, roots=("word",))
    def type_text(
        self, document: str, text: Annotated[str, Field(description="What to type.")], times: int = 1
    ) -> list[str]:
        """Type text.

        More about it.
        """
        return [document, *[text] * times]

    @tool(effect=Effect.ONCE, roots=("excel",))
    def set_cell(self, document: str) -> str:
        """Set a cell."""
        return document

    @tool(effect=Effect.READ, type=CommandType.DATA_COLLECTION)
    def look(self, document: str) -> str:
        """Look."""
        return document


@pytest.fixture
def office():
    return Office()


@pytest.fixture
def toolbox(office, lanes):
    return Toolbox([office], (), lanes)


@pytest.fixture
def type_text(toolbox, office):
    return toolbox.tools(AgentKind.APP, office.targets()[0])["type_text"]


def test_an_agent_is_offered_the_tools_of_its_kind_and_application(toolbox, office):
    (window,) = office.targets()
    assert set(toolbox.tools(AgentKind.APP, window)) == {"type_text", "look"}
    assert set(toolbox.tools(AgentKind.HOST, None)) == {"start"}
    assert toolbox.tools(AgentKind.LINUX, window) == {}


def test_a_model_is_offered_only_actions(toolbox, office):
    assert set(toolbox.actions(AgentKind.APP, office.targets()[0])) == {"type_text"}


def test_looks_at_the_same_targets_share_one_tuple_of_them(toolbox):
    one, two = target("one"), target("two")
    first = toolbox.offered([one, two])
    assert first.targets == (one, two)
    assert toolbox.offered([one, two]).targets is first.targets
    assert toolbox.offered([two, one]).targets == (two, one)
    assert toolbox.offered([one]).targets == (one,)
    assert toolbox.offered([]).targets == ()


def test_only_targets_can_be_offered(toolbox):
    with pytest.raises(ValueError, match="targets"):
        toolbox.offered(["memo:one"])


def test_two_surfaces_of_one_name_are_refused(lanes):
    with pytest.raises(SettingsError, match="'office'"):
        Toolbox([Office(), Office()], (), lanes)


def test_two_surfaces_that_offer_a_hostagent_tools_of_one_name_are_refused(lanes):
    with pytest.raises(SettingsError, match="'start'"):
        Toolbox([Office("one"), Office("two")], (), lanes)


def test_target_of_an_unknown_surface_raises_an_error(toolbox):
    with pytest.raises(LookupError, match="'memory'"):
        toolbox.tools(AgentKind.APP, target("memo:one"))


@pytest.mark.parametrize("of_the_class", [True, False])
async def test_a_surface_is_asked_for_the_hazards_of_a_call_if_it_knows_any(lanes, office, monkeypatch, of_the_class):
    def hazards(*asked):
        calls.append(asked[-4:])
        return {Hazard.SENDS}

    async def found(tool, arguments):
        tools = Toolbox([office], (), lanes).tools(AgentKind.APP, window)
        return (await tools[tool].facts(arguments, (), Asked())).hazards

    (window,) = office.targets()
    calls = []
    assert await found("type_text", {"text": "x"}) == set()
    monkeypatch.setattr(Office if of_the_class else office, "hazards", hazards)
    assert await found("type_text", {"text": "x", "times": "2"}) == {Hazard.SENDS}
    assert await found("look", {}) == {Hazard.SENDS}  # a call that only reads may have hazards, too
    assert calls == [(window, "type_text", {"text": "x", "times": 2}, ()), (window, "look", {}, ())]


@pytest.mark.parametrize(
    ("method", "answer", "default"), [("overwritten", ("a",), ()), ("replaced", "a", ""), ("expected", "a", "")]
)
async def test_a_surface_is_asked_about_a_call_as_it_runs(lanes, office, monkeypatch, method, answer, default):
    def answers(*asked):
        assert asked == (window, "type_text", {"text": "x", "times": 2})
        return answer

    (window,) = office.targets()
    tool = Toolbox([office], (), lanes).tools(AgentKind.APP, window)["type_text"]
    assert await getattr(tool, method)({"text": "x", "times": "2"}) == default
    monkeypatch.setattr(office, "keeps_versions", True)
    monkeypatch.setattr(office, method, answers)
    assert await getattr(tool, method)({"text": "x", "times": "2"}) == answer


async def test_arguments_that_became_invalid_since_their_check_are_a_tools_error(lanes, office, monkeypatch):
    monkeypatch.setattr(office, "hazards", lambda *_: set())
    monkeypatch.setattr(office, "keeps_versions", True)
    tool = Toolbox([office], (), lanes).tools(AgentKind.APP, office.targets()[0])["type_text"]
    invalid = {"text": "x", "times": "many"}
    with pytest.raises(ToolError, match=r"type_text: times: .*integer"):
        await tool.facts(invalid, (), Asked())
    with pytest.raises(ToolError, match=r"type_text: times: .*integer"):
        await tool.overwritten(invalid)


def test_a_bound_argument_is_hidden_from_the_model(type_text):
    assert list(type_text.info.schema["properties"]) == ["text", "times"]
    assert type_text.info.schema["required"] == ["text"]
    assert type_text.info.description == "Type text."
    assert type_text.takes("text")
    assert not type_text.takes("document")


async def test_a_bound_argument_is_always_the_targets_own(type_text, command, dispatcher, lease):
    sent = command("type_text", text="x", document="other.docx")
    result = await dispatcher.run(sent, {"type_text": type_text}, lease)
    assert result.value == ["a.docx", "x"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": "x"}, None),
        ({"text": "x", "times": 2}, None),
        ({}, "type_text: text: Field required"),
        ({"text": "x", "times": "often"}, "type_text: times: "),
        ({"text": "x", "speed": 1}, "type_text has no argument 'speed'; it takes: text, times"),
        ({"text": "x", "document": "other.docx"}, "type_text has no argument 'document'; it takes: text, times"),
    ],
)
def test_argument_errors_are_written_for_the_model(type_text, arguments, problem):
    said = type_text.check(arguments)
    assert said is None if problem is None else str(said).startswith(problem)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("one", "one"), ("app/memo/2", "two"), ("only", "two"), ("memo", None), ("", None), ("ONE", None)],
)
def test_a_target_is_found_by_id_address_or_a_name_that_only_it_has(wanted, found):
    targets = [target("one", address="app/memo/1"), target("two", "only", "app/memo/2"), target("three")]
    got = find_target([*targets[:1], targets[1], targets[2], target("four")], wanted)
    assert (got.id if got else None) == found


def test_target_of_local_machines_has_its_usual_address():
    local = target("one", address="app/memo/1").offers(tuple(AgentKind), {"memory"})
    assert [find_target(local, name) for name in (local[0].address, "app/memo/1")] == [local[0], local[0]]


def test_rules_about_tools_of_other_processes_are_no_warnings(lanes):
    rules = [PolicyRule(tool="tpye_text", verdict="deny")]
    toolboxes = [Toolbox([Office()], (), lanes, is_complete=is_complete) for is_complete in (True, False)]
    assert [len(list(toolbox.unmatched(rules, tuple))) for toolbox in toolboxes] == [1, 0]


def test_an_id_beats_another_targets_address():
    one, two = target("one", address="app/memo/1"), target("app/memo/1", address="app/memo/2")
    assert find_target([one, two], "app/memo/1") is two


@pytest.mark.parametrize("schema", [{"format": "password"}, {"anyOf": [{"format": "password"}, {"type": "null"}]}])
def test_schema_declares_secret_arguments(schema):
    assert declared_secret({"properties": {"a": schema, "b": {"type": "string"}, "c": True}}) == {"a"}


class Numbered(Office):
    def __init__(self, number):
        super().__init__()
        self.number = number

    @tool(effect=Effect.READ)
    def tell(self) -> int:
        """Tell the number."""
        return self.number


class Renumbered(Numbered):
    @tool(effect=Effect.READ)
    def tell(self, plus: int) -> int:
        """Tell another number."""
        return self.number + plus


def test_surfaces_of_one_class_share_a_schema_and_call_their_own_method():
    tools = [next(each.tool for each in Numbered(number).tools() if each.name == "tell") for number in (1, 2)]
    assert [each.fn() for each in tools] == [1, 2]
    assert tools[0].parameters is tools[1].parameters


def test_a_subclass_has_the_schema_of_its_own_method():
    (own,) = (each.tool for each in Renumbered(1).tools() if each.name == "tell")
    assert (own.fn(2), own.description, list(own.parameters["properties"])) == (3, "Tell another number.", ["plus"])


async def test_the_tools_of_a_window_that_joins_a_group_run_on_its_lane(lanes):
    class Threads(Office):
        @tool(effect=Effect.READ)
        def where(self, document: str) -> str:
            """Name the thread."""
            return threading.current_thread().name

    surface = Threads()
    toolbox = Toolbox([surface], [], lanes)
    (alone,) = surface.targets()
    found = []
    for each in (alone, alone.model_copy(update={"group": "desktop:0"})):
        guard = EffectGuard(Lease(each.address, 1))
        found.append(await toolbox.tools(AgentKind.APP, each)["where"].call({}, guard))
    assert found == ["callboard-lane-office:a.docx", "callboard-lane-office:desktop:0"]


class Counted(Server):
    """A tool that counts how often its arguments are read, and changes the list that it gets."""

    name = "counted"

    def targets(self):
        return (target("counted", server="counted"),)

    def observe(self, target):
        return Observation()

    @tool(effect=Effect.IDEMPOTENT)
    async def double(self, word: Annotated[str, AfterValidator(lambda word: READ.append(word) or word)]) -> str:
        """Double a word."""
        return word * 2

    @tool(effect=Effect.IDEMPOTENT)
    async def extend(self, words: Any) -> list[str]:
        """Add a word to a list."""
        words.append("more")
        return words


READ: list[str] = []


@pytest.fixture
def counted(lanes):
    READ.clear()
    surface = Counted()
    return Toolbox([surface], (), lanes).actions(AgentKind.APP, surface.targets()[0])


async def test_arguments_that_were_checked_are_read_once(counted, lease):
    given = {"word": "a"}
    assert counted["double"].check(given) is None
    assert await counted["double"].call(given, EffectGuard(lease)) == "aa"
    assert READ == ["a"]


async def test_arguments_are_read_again_for_each_further_call(counted, lease):
    given = {"word": "a"}
    assert counted["double"].check(given) is None
    assert [await counted["double"].call(each, EffectGuard(lease)) for each in (dict(given), given, given)] == [
        "aa"
    ] * 3
    assert READ == ["a"] * 3


def test_checked_arguments_that_no_call_takes_are_not_all_kept(counted):
    for number in range(1000):
        assert counted["double"].check({"word": str(number)}) is None
    assert len(counted["double"]._valid) < 100


async def test_a_tool_that_changes_its_arguments_changes_no_record(counted, command, dispatcher, lease):
    sent = command("extend", words=["one"])
    result = await dispatcher.run(sent, counted, lease)
    assert result.value == ["one", "more"]
    assert sent.parameters == {"words": ["one"]}


@pytest.mark.parametrize("changed", [{"text": "changed"}, {}], ids=["changed", "same"])
async def test_a_tool_gets_the_arguments_as_they_are_at_its_call(lanes, changed):
    surface = MemoryServer(MemoryServer.window())
    write = Toolbox([surface], (), lanes).actions(AgentKind.APP, surface.targets()[0])["write"]
    arguments = {"control_id": "field-1", "text": "checked"}
    assert write.check(arguments) is None
    arguments.update(changed)
    await write.call(arguments, EffectGuard(Lease("memo:one", 1)))
    assert arguments["text"] in surface.observe(surface.targets()[0]).model_dump_json()
