"""The registry, and the errors when a machine is made."""

from __future__ import annotations

import asyncio
import enum
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from callboard.actors.states import (
    AgentState,
    AgentStateManager,
    AppAgentStateManager,
    By,
    HostAgentStateManager,
    LinuxAgentStateManager,
    MobileAgentStateManager,
    Move,
    NoneState,
    mermaid,
)
from callboard.actors.states._host import AssignHostAgentState
from callboard.messages import BrokenMachineError, CallboardError, Captured
from support import PATIENCE

ALL = [HostAgentStateManager, AppAgentStateManager, MobileAgentStateManager, LinuxAgentStateManager]
BY = By.SYSTEM


def state(status):
    class Plain(AgentState):
        __slots__ = ()

        async def handle(self, agent, context):
            return Captured(observation=None)

        def decide(self, run):
            return None

        @classmethod
        def name(cls):
            return status

    return Plain


@pytest.fixture
def manager():
    class Manager(AgentStateManager):
        initial = "CONTINUE"
        transitions = {"CONTINUE": {"CONTINUE": By.MODEL, "FINISH": By.MODEL | By.SYSTEM}, "FINISH": {}}  # noqa: RUF012

    @Manager.register_none
    class Nothing(NoneState):
        __slots__ = ()

    return Manager


@pytest.mark.parametrize(
    ("table", "initial", "reason"),
    [
        pytest.param({"FINISH": {}}, "CONTINUE", "no row 'CONTINUE'", id="no-initial-row"),
        pytest.param({"CONTINUE": {"CONTINUE": BY}}, "CONTINUE", "no row 'FINISH'", id="no-final-row"),
        pytest.param(
            {"CONTINUE": {"FINISH": BY, "FAIL": BY}, "FINISH": {}},
            "CONTINUE",
            "CONTINUE leads to 'FAIL', which has no row",
            id="missing-row",
        ),
        pytest.param(
            {"CONTINUE": {"FINISH": By(0)}, "FINISH": {}}, "CONTINUE", "CONTINUE → FINISH has no cause", id="no-cause"
        ),
        pytest.param(
            {"CONTINUE": {"FINISH": BY}, "FINISH": {"CONTINUE": BY}},
            "CONTINUE",
            "FINISH is final and must have no moves",
            id="final-leads-on",
        ),
        pytest.param(
            {"CONTINUE": {"FINISH": BY}, "FAIL": {"FINISH": BY}, "FINISH": {}},
            "CONTINUE",
            "FAIL can't be reached from CONTINUE",
            id="unreachable",
        ),
        pytest.param(
            {"CONTINUE": {"FINISH": BY, "PENDING": BY}, "PENDING": {"PENDING": BY}, "FINISH": {}},
            "CONTINUE",
            "PENDING is a trap: it never reaches FINISH",
            id="trap",
        ),
    ],
)
def test_a_broken_table_is_refused_when_the_class_is_made(table, initial, reason):
    with pytest.raises(BrokenMachineError) as refused:
        type("Broken", (AgentStateManager,), {"initial": initial, "transitions": table})
    assert str(refused.value) == f"Broken: {reason}"


def test_a_machine_whose_first_status_is_its_last_is_sound():
    made = type("Short", (AgentStateManager,), {"initial": "FINISH", "transitions": {"FINISH": {}}})
    assert made.offered("FINISH") == ()


def test_a_broken_machine_is_a_type_error_of_this_library():
    assert issubclass(BrokenMachineError, CallboardError)
    assert issubclass(BrokenMachineError, TypeError)


def test_registering_returns_the_class_and_makes_it_the_state_of_its_name(manager):
    plain = state("CONTINUE")
    assert manager.register(plain) is plain
    assert type(manager.get_state("CONTINUE")) is plain
    assert plain.manager is manager


def test_a_second_state_of_a_name_is_refused(manager):
    first = manager.register(state("CONTINUE"))
    with pytest.raises(BrokenMachineError, match="'CONTINUE' is taken by Plain"):
        manager.register(state("CONTINUE"))
    assert type(manager.get_state("CONTINUE")) is first


def test_a_state_without_a_row_is_refused(manager):
    with pytest.raises(BrokenMachineError, match="Manager has no row 'SLEEP'"):
        manager.register(state("SLEEP"))
    assert manager.get_state("SLEEP") is manager.none_state


def test_a_state_is_made_on_first_use_and_then_shared(manager):
    manager.register(state("CONTINUE"))
    assert manager().state_map == {}
    made = manager.get_state("CONTINUE")
    assert manager.get_state("CONTINUE") is made
    assert manager().get_state("CONTINUE") is made
    assert manager().state_map == {"CONTINUE": made}


def test_an_unknown_status_gives_the_none_state_and_is_not_remembered(manager):
    assert manager.get_state("CONTINUE") is manager.none_state
    assert manager().state_map == {}
    late = manager.register(state("CONTINUE"))
    assert type(manager.get_state("CONTINUE")) is late


def test_a_registered_none_state_is_the_answer_for_unknown_states(manager):
    class Other(NoneState):
        __slots__ = ()

    assert manager.register_none(Other) is Other
    assert type(manager.get_state("nonsense")) is Other
    assert type(manager.none_state) is Other
    assert Other.manager is manager


def test_the_state_map_is_a_copy(manager):
    manager.register(state("CONTINUE"))
    made = manager.get_state("CONTINUE")
    manager().state_map.clear()
    assert manager().state_map == {"CONTINUE": made}


def test_an_added_state_takes_the_place_of_the_registered_one(manager):
    manager.register(state("CONTINUE"))
    replacement = state("CONTINUE")()
    manager.add_state("CONTINUE", replacement)
    assert manager.get_state("CONTINUE") is replacement


def test_an_added_state_without_a_row_is_refused(manager):
    with pytest.raises(BrokenMachineError, match="Manager has no row 'SLEEP'"):
        manager.add_state("SLEEP", state("CONTINUE")())
    assert manager().state_map == {}


def test_machines_do_not_share_their_states(manager):
    class Second(AgentStateManager):
        initial = "CONTINUE"
        transitions = manager.transitions

    Second.register_none(type("Nothing", (NoneState,), {"__slots__": ()}))
    manager.register(state("CONTINUE"))
    assert Second.get_state("CONTINUE") is Second.none_state


def test_many_threads_that_look_a_state_up_first_get_one_instance(manager):
    threads = 16
    barrier = threading.Barrier(threads)

    class Slow(state("CONTINUE")):
        __slots__ = ()

        def __init__(self):
            barrier.wait(timeout=PATIENCE)  # all threads are past the first look before any of them has an instance

    manager.register(Slow)

    with ThreadPoolExecutor(threads) as pool:
        found = [future.result() for future in [pool.submit(manager.get_state, "CONTINUE") for _ in range(threads)]]
    assert {id(one) for one in found} == {id(manager.get_state("CONTINUE"))}


def test_machine_without_a_registered_agent_raises_an_error(manager):
    manager.register(state("CONTINUE"))
    with pytest.raises(LookupError, match="no agent class is registered with Manager"):
        manager.get_state("CONTINUE").agent_class()


def test_an_agent_class_is_refused_while_a_row_has_no_state(manager):
    manager.register(state("CONTINUE"))
    with pytest.raises(BrokenMachineError, match="FINISH"):
        manager.register_agent(object)


def test_a_manager_without_a_table_is_refused():
    with pytest.raises(BrokenMachineError, match="transitions"):

        class Manager(AgentStateManager):
            initial = "CONTINUE"


def test_a_registered_agent_class_is_given_by_the_manager_and_its_states(manager):
    manager.register(state("CONTINUE"))
    manager.register(state("FINISH"))

    @manager.register_agent
    class Actor:
        pass

    assert manager.agent_class() is Actor
    assert manager.get_state("CONTINUE").agent_class() is Actor


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(shared, id=type(shared).__name__)
        for machine in ALL
        for shared in (*map(machine.get_state, machine.transitions), machine.none_state)
    ],
)
def test_setting_an_attribute_on_a_state_raises(state):
    for name in ("answer", "manager", "_private"):
        with pytest.raises(
            AttributeError, match=f"{type(state).__name__} has no attributes: '{name}' belongs in the run"
        ):
            setattr(state, name, 1)
    assert not hasattr(state, "__dict__")


def test_a_machine_is_drawn_with_its_causes(manager):
    assert mermaid(manager) == (
        "stateDiagram-v2\n"
        "    [*] --> CONTINUE\n"
        "    CONTINUE --> CONTINUE: model\n"
        "    CONTINUE --> FINISH: model|system\n"
        "    FINISH --> [*]\n"
    )


@pytest.mark.parametrize("machine", ALL)
def test_each_move_of_a_machine_is_drawn_once(machine):
    arrows = [line.strip() for line in mermaid(machine).splitlines() if "-->" in line]
    moves = [
        f"{source} --> {target}: {by}" for source, row in machine.transitions.items() for target, by in row.items()
    ]
    assert arrows == ["[*] --> CONTINUE", *moves, "FINISH --> [*]"]


@pytest.mark.parametrize(
    ("by", "text"),
    [
        (By.MODEL, "model"),
        (By.USER, "user"),
        (By.SYSTEM, "system"),
        (By.TIMEOUT, "timeout"),
        (By.TIMEOUT | By.MODEL, "model|timeout"),
        (By(0), ""),
    ],
)
def test_a_cause_is_written_in_lower_case_and_several_joined(by, text):
    assert str(by) == text


@pytest.fixture
def extended():
    class Extended(AppAgentStateManager):
        initial = "CONTINUE"
        transitions = {  # noqa: RUF012
            "CONTINUE": {"CONTINUE": By.MODEL, "REVIEW": By.MODEL, "FAIL": By.SYSTEM},
            "REVIEW": {"FINISH": By.SYSTEM},
            "FAIL": {"FINISH": By.SYSTEM},
            "FINISH": {},
        }

    return Extended


def test_a_machine_inherits_the_states_of_the_one_it_extends(extended):
    extended.register(state("REVIEW"))
    extended.check_complete()
    inherited, shipped = extended.get_state("CONTINUE"), AppAgentStateManager.get_state("CONTINUE")
    assert isinstance(inherited, type(shipped))
    assert (inherited.manager, shipped.manager) == (extended, AppAgentStateManager)
    assert extended.get_state("CONTINUE") is inherited
    assert extended.none_state.manager is extended
    assert AppAgentStateManager.none_state.manager is AppAgentStateManager


def test_rows_that_a_machine_does_not_keep_are_not_inherited(extended):
    assert extended.get_state("CONFIRM") is extended.none_state


def test_a_machine_with_a_row_without_a_state_is_not_complete(extended):
    with pytest.raises(BrokenMachineError, match="Extended is not complete: no state class for REVIEW"):
        extended.check_complete()


def test_extending_a_machine_leaves_the_machine_as_it_was(extended):
    extended.register(state("REVIEW"))
    extended.register(state("FINISH"))
    assert AppAgentStateManager.get_state("REVIEW") is AppAgentStateManager.none_state
    assert not isinstance(AppAgentStateManager.get_state("FINISH"), type(extended.get_state("FINISH")))


def test_a_state_of_another_machine_can_be_registered_too(manager, extended):
    plain = manager.register(state("CONTINUE"))
    assert extended.register(plain) is plain
    assert isinstance(extended.get_state("CONTINUE"), plain)
    assert (plain.manager, extended.get_state("CONTINUE").manager) == (manager, extended)


def test_a_state_is_registered_with_a_name_and_needs_no_other(manager):
    @manager.register("CONTINUE")
    class Nameless(AgentState):
        __slots__ = ()

        async def handle(self, agent, context):
            return Captured(observation=None)

        def decide(self, run):
            return None

    assert Nameless.name() == "CONTINUE"
    assert type(manager.get_state("CONTINUE")) is Nameless


def test_a_state_is_not_registered_with_a_name_of_another(manager):
    with pytest.raises(BrokenMachineError, match="Plain: its name is 'CONTINUE', not 'FINISH'"):
        manager.register("FINISH")(state("CONTINUE"))


def test_a_machine_has_the_agents_of_the_one_it_extends(extended):
    assert extended.agent_class() is AppAgentStateManager.agent_class()


def test_state_with_its_own_handle_awaits_unless_it_is_marked():
    class Silent(AssignHostAgentState):
        __slots__ = ()

    class Own(AssignHostAgentState):
        __slots__ = ()

        async def handle(self, agent, context):
            await asyncio.sleep(0)
            return await super().handle(agent, context)

    class Quick(Own):
        __slots__ = ()
        only_decides = True

        async def handle(self, agent, context):
            return Captured(observation=None)

    assert [each.only_decides for each in (AssignHostAgentState, Silent, Own, Quick)] == [True, True, False, True]


class Older(str, enum.Enum):  # noqa: UP042 - as programs have it
    BEGIN = "BEGIN"
    END = "END"


class Newer(enum.StrEnum):
    BEGIN = "BEGIN"
    END = "END"


@pytest.mark.parametrize("names", [Older, Newer])
def test_a_machine_may_name_its_statuses_by_an_enumeration(names):
    class Manager(AgentStateManager):
        initial = names.BEGIN
        final = names.END
        transitions = {names.BEGIN: {names.END: By.MODEL}, names.END: {}}  # noqa: RUF012

    class Begin(state("")):
        __slots__ = ()

        def decide(self, run):
            return Move(names.END, By.MODEL)

        @classmethod
        def name(cls):
            return names.BEGIN

    Manager.register(Begin)
    Manager.register(names.END)(state(names.END))
    assert Manager.offered("BEGIN") == ("END",)
    target = Manager.decide(types.SimpleNamespace(status="BEGIN")).target
    assert (target, type(target)) == ("END", str)
    assert [type(status) for status in (*Manager.transitions, Manager.initial, Manager.final)] == [str] * 4
