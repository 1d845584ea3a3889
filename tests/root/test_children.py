"""The children: who lives at which address."""

from __future__ import annotations

import queue
import threading

import pykka
import pytest

from callboard.actors.agent import AgentContext, Continue
from callboard.actors.app import AppAgent
from callboard.actors.host import HostAgent
from callboard.actors.linux import LinuxAgent
from callboard.actors.mobile import MobileAgent
from callboard.actors.root._agents import Children, Deliver
from callboard.actors.runtime import EventLoop, EventStream, Jobs, Leases, ThreadScheduler, VirtualClock
from callboard.config import Limits
from callboard.journal import MemoryJournal, Row
from callboard.messages import AgentKind, Assign, Cancel, EventName, TaskForgotten
from support import PATIENCE

ONE = "app/memo/one"
KINDS = {"host/task-1": HostAgent, ONE: AppAgent, "mobile/emulator": MobileAgent, "linux/local": LinuxAgent}
STALE = Cancel(task_id="task-9")
"""A message that an agent without work notes as stale, and nothing more."""


class Idle:
    """A pipeline whose jobs never begin: their loop is not started."""

    def under(self, _lease):
        return self


class Stage:
    """Children, the events they cause, and the crashes they report."""

    def __init__(self):
        clock = VirtualClock()
        self.stream = EventStream(clock, kept=100, queue=100)
        self.feed = self.stream.open()
        self.crashed = queue.SimpleQueue()
        self.posted = []
        self.loop = EventLoop("never-started")
        self.scheduler = ThreadScheduler("test-actors")
        self.scheduler.start()
        context = AgentContext(
            post=lambda _message: None,
            crashed=lambda address, error, _urn: self.crashed.put((address, error)),
            scheduler=self.scheduler,
            jobs=Jobs(self.loop, clock),
            leases=Leases(),
            stream=self.stream,
            journal=MemoryJournal(),
            limits=Limits(),
            pipelines=dict.fromkeys(AgentKind, Idle()),
        )
        self.children = Children(context, self.posted.append)

    def tell(self, address, message):
        """Start the agent of an address, unless it lives, and tell it."""
        self.children.start(address)
        self.children.sender(address, message)()

    def until(self, name):
        while (event := self.feed.get(PATIENCE)) is not None:
            if event.name is name:
                return event
        return None

    def events(self):
        found = []
        while (event := self.feed.take()) is not None:
            found.append(event.name)
        return found


@pytest.fixture
def stage():
    made = Stage()
    yield made
    for stopped in made.children.stop_all():
        stopped.get(timeout=PATIENCE)
    assert made.scheduler.stop(PATIENCE)
    assert made.loop.stop(0)


@pytest.mark.parametrize("address", KINDS)
def test_at_an_address_the_agent_of_its_kind_is_started(stage, address):
    stage.tell(address, STALE)
    assert stage.until(EventName.AGENT_STARTED).agent == address
    assert stage.until(EventName.MESSAGE_STALE).agent == address
    assert stage.children.addresses == (address,)
    assert stage.children._refs[address].actor_class is KINDS[address]


def test_an_agent_that_is_there_is_used_again(stage):
    for _ in range(2):
        stage.tell(ONE, STALE)
        stage.until(EventName.MESSAGE_STALE)
    assert EventName.AGENT_STARTED not in stage.events()
    assert stage.children.addresses == (ONE,)


def test_an_unknown_kind_of_agent_is_refused_and_nothing_is_kept(stage):
    with pytest.raises(ValueError, match="robot"):
        stage.tell("robot/one", STALE)
    assert stage.children.addresses == ()


def test_sender_to_a_missing_child_posts_no_message(stage):
    stage.children.sender(ONE, STALE)()
    assert stage.children.addresses == ()
    assert stage.events() == []
    assert stage.posted == []


def test_message_for_living_children_starts_no_child(stage):
    stage.children.tell_if_alive(ONE, STALE)
    assert stage.children.addresses == ()
    assert stage.events() == []


def test_a_message_for_the_living_reaches_them(stage):
    stage.tell(ONE, TaskForgotten(task_id="task-1"))
    stage.children.tell_if_alive(ONE, STALE)
    assert stage.until(EventName.MESSAGE_STALE).agent == ONE


def test_a_stopped_agent_is_gone_and_its_address_starts_another(stage):
    stage.tell(ONE, STALE)
    first = stage.children._refs[ONE]
    stage.children.stop(ONE)
    assert stage.until(EventName.AGENT_STOPPED).agent == ONE
    assert stage.children.addresses == ()
    stage.tell(ONE, STALE)
    assert stage.children._refs[ONE].actor_urn != first.actor_urn


def test_stop_of_a_missing_child_emits_no_event(stage):
    stage.children.stop(ONE)
    assert stage.events() == []


def test_an_agent_handles_what_is_in_its_inbox_before_it_stops(stage):
    stage.tell(ONE, TaskForgotten(task_id="task-1"))
    stage.tell(ONE, STALE)
    stage.children.stop(ONE)
    assert stage.until(EventName.MESSAGE_STALE).agent == ONE


def test_a_crash_is_reported_and_the_forgotten_address_starts_another(stage):
    stage.tell(ONE, STALE)
    first = stage.children._refs[ONE]
    stage.tell(ONE, "no message at all")
    address, error = stage.crashed.get(timeout=PATIENCE)
    assert (address, type(error.__cause__)) == (ONE, AttributeError)
    stage.children.remove(ONE)
    stage.tell(ONE, STALE)
    assert stage.children._refs[ONE].actor_urn != first.actor_urn


def test_a_message_to_one_who_just_died_is_lost_in_silence(stage):
    stage.tell(ONE, STALE)
    ref = stage.children._refs[ONE]
    ref.stop()
    stage.tell(ONE, STALE)
    stage.children.tell_if_alive(ONE, STALE)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell(STALE)


def test_all_are_stopped_and_can_be_waited_for(stage):
    for address in KINDS:
        stage.tell(address, STALE)
    for stopped in stage.children.stop_all():
        assert stopped.get(timeout=PATIENCE)
    assert stage.children.addresses == ()


def test_agents_have_no_thread_of_their_own(stage):
    before = set(threading.enumerate())
    stage.tell(ONE, STALE)
    stage.until(EventName.MESSAGE_STALE)
    assert set(threading.enumerate()) <= before


WORK = Assign(task_id="task-1", run_id="task-1~1", address=ONE, number=1, request="work", token=3)


def test_messages_to_an_expected_child_wait_for_its_start_with_history(stage):
    stage.children.expect(ONE)
    for task in ("task-8", "task-9"):
        stage.children.sender(ONE, Cancel(task_id=task))()
    assert stage.posted == [Deliver(ONE, Cancel(task_id=task)) for task in ("task-8", "task-9")]
    for posted in stage.posted:
        stage.children.deliver(posted)
    assert (stage.children.addresses, stage.events()) == ((), [])
    gone = (Row(1.0, "task-1", "task-1~1", WORK), Row(2.0, "task-1", "task-1~1", Cancel(task_id="task-1")))
    stage.children.start_with(ONE, Continue(WORK, gone))
    seen = [stage.until(EventName.RUN_RECOVERED), *(stage.until(EventName.MESSAGE_STALE) for _ in range(2))]
    assert [event.task_id for event in seen] == ["task-1", "task-8", "task-9"]


def test_messages_that_the_history_already_has_are_not_delivered_again(stage):
    stage.children.expect(ONE)
    read, later = Cancel(task_id="task-1"), Cancel(task_id="task-1", reason="once more")
    for message in (read, STALE, later):
        stage.children.deliver(Deliver(ONE, message))
    before = (Row(1.0, "task-1", "", later), Row(2.0, "task-1", "task-1~1", WORK))
    stage.children.start_with(ONE, Continue(WORK, (*before, Row(3.0, "task-1", "", read))))
    stale = [stage.until(EventName.MESSAGE_STALE).task_id for _ in range(2)]
    assert stale == ["task-9", "task-1"]  # the later cancel comes too late, the one that was read is not heard


def test_a_message_sent_to_an_expected_child_reaches_it_after_its_start(stage):
    stage.children.expect(ONE)
    stage.children.sender(ONE, STALE)()
    stage.children.start_with(ONE, Continue(WORK, ()))
    [posted] = stage.posted
    stage.children.deliver(posted)
    assert stage.until(EventName.MESSAGE_STALE).task_id == "task-9"


def test_a_message_to_a_child_removed_before_its_start_is_dropped(stage):
    stage.children.expect(ONE)
    stage.children.remove(ONE)
    stage.children.deliver(Deliver(ONE, STALE))
    assert stage.children.addresses == ()
    assert stage.events() == []
