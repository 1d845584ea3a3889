"""The scheduler: many actors, one thread, one message at a time."""

from __future__ import annotations

import queue
import threading
from importlib import metadata
from typing import Any

import pykka
import pytest

from callboard.actors.runtime import ScheduledActor, ThreadScheduler, refuse_own_thread
from callboard.messages import WouldDeadlockError
from support import PATIENCE


class Player(ScheduledActor):
    """Follows its orders: calls a function, or answers with the message."""

    def __init__(self, scheduler: ThreadScheduler, seen: queue.SimpleQueue[Any]) -> None:
        super().__init__(scheduler)
        self.seen = seen

    def on_receive(self, message: Any) -> Any:
        self.seen.put(message)
        return message() if callable(message) else message

    def on_stop(self) -> None:
        self.seen.put("stopped")

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.seen.put(exception_value)


@pytest.fixture
def scheduler():
    made = ThreadScheduler("test-actors")
    made.start()
    yield made
    assert made.stop(PATIENCE)


@pytest.fixture
def seen():
    return queue.SimpleQueue()


@pytest.fixture
def start(scheduler, seen):
    refs = []

    def started():
        refs.append(Player.start(scheduler, seen))
        return refs[-1]

    yield started
    for ref in refs:
        ref.stop()


def leave():
    raise SystemExit


def fail():
    msg = "on purpose"
    raise ValueError(msg)


def test_all_actors_run_on_the_one_thread(scheduler, start):
    threads = {start().ask(threading.current_thread, timeout=PATIENCE) for _ in range(5)}
    assert threads == {scheduler.thread}
    assert scheduler.thread.daemon


def test_messages_to_all_actors_are_handled_in_the_order_of_sending(start, seen):
    actors = [start() for _ in range(3)]
    for number in range(30):
        actors[number % 3].tell(number)
    assert [seen.get(timeout=PATIENCE) for _ in range(30)] == list(range(30))


def test_an_actor_that_tells_another_is_not_interrupted(start, seen):
    one, two = start(), start()

    def both():
        two.tell("later")
        seen.put("first")

    one.tell(both)
    assert [seen.get(timeout=PATIENCE) for _ in range(3)] == [both, "first", "later"]


def test_error_of_an_ask_goes_to_the_caller_and_the_actor_lives_on(start):
    actor = start()
    with pytest.raises(ValueError, match="on purpose"):
        actor.ask(fail, timeout=PATIENCE)
    assert actor.ask("still there", timeout=PATIENCE) == "still there"


@pytest.mark.parametrize("how", [fail, leave])
def test_an_actor_that_fails_ends_alone_and_hears_of_it(start, seen, how):
    one, two = start(), start()
    one.tell(how)
    assert seen.get(timeout=PATIENCE) is how
    assert isinstance(seen.get(timeout=PATIENCE), ValueError | SystemExit)
    assert not one.is_alive()
    assert pykka.ActorRegistry.get_by_urn(one.actor_urn) is None
    assert two.ask("well", timeout=PATIENCE) == "well"


def test_a_hook_that_wants_to_leave_the_process_ends_its_actor_alone(scheduler, seen, start, caplog):
    caplog.set_level("CRITICAL", "pykka")

    class Leaving(Player):
        def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
            raise SystemExit

    one = Leaving.start(scheduler, seen)
    one.tell(fail)
    assert start().ask("well", timeout=PATIENCE) == "well"
    assert not one.is_alive()


@pytest.mark.parametrize("hook", ["on_failure", "on_stop"])
def test_actor_whose_end_fails_is_unregistered_and_other_actors_live_on(scheduler, seen, start, caplog, hook):
    caplog.set_level("CRITICAL", "pykka")
    one = type("Leaving", (Player,), {hook: lambda *_: leave()}).start(scheduler, seen)
    if hook == "on_stop":
        one.stop(timeout=PATIENCE)
    else:
        one.tell(fail)
    assert start().ask("well", timeout=PATIENCE) == "well"
    assert pykka.ActorRegistry.get_by_urn(one.actor_urn) is None


def test_an_envelope_that_can_not_be_handled_does_not_end_the_thread(scheduler, start, caplog):
    class Broken:
        def handle(self, _envelope):
            leave()

    scheduler.put(Broken(), None)
    assert start().ask("well", timeout=PATIENCE) == "well"
    assert "an actor raised an exception on a shared thread" in caplog.messages


def test_a_stop_comes_after_what_was_sent_before_it(start, seen):
    actor = start()
    actor.tell("before")
    actor.stop(timeout=PATIENCE)
    assert [seen.get(timeout=PATIENCE), seen.get(timeout=PATIENCE)] == ["before", "stopped"]
    with pytest.raises(pykka.ActorDeadError):
        actor.tell("after")


def test_ask_of_a_stopped_actor_raises_an_error(start):
    actor, held = start(), threading.Event()
    actor.tell(lambda: held.wait(PATIENCE))
    ended = actor.stop(block=False)
    asked = actor.ask("too late", block=False)
    twice = actor.stop(block=False)
    held.set()
    ended.get(timeout=PATIENCE)
    with pytest.raises(pykka.ActorDeadError, match="before handling"):
        asked.get(timeout=PATIENCE)
    assert not actor.is_alive()
    twice.get(timeout=PATIENCE)


def test_scheduler_reports_the_seconds_of_its_current_message(scheduler, start):
    actor, reached, held = start(), threading.Event(), threading.Event()

    def wait():
        reached.set()
        return held.wait(PATIENCE)

    answer = actor.ask(wait, block=False)
    assert reached.wait(PATIENCE)
    assert 0 < scheduler.busy < PATIENCE
    held.set()
    assert answer.get(timeout=PATIENCE)


def test_its_thread_is_one_of_ours(start):
    with pytest.raises(WouldDeadlockError):
        start().ask(lambda: refuse_own_thread("this"), timeout=PATIENCE)


def test_it_ends_after_what_was_sent_before(seen):
    scheduler = ThreadScheduler("ending-actors")
    actor = Player.start(scheduler, seen)
    actor.tell("kept")
    actor.stop(block=False)
    scheduler.start()
    assert scheduler.stop(PATIENCE)
    assert [seen.get(timeout=PATIENCE), seen.get(timeout=PATIENCE)] == ["kept", "stopped"]
    assert not scheduler.thread.is_alive()
    assert scheduler.busy == 0


def test_after_its_end_its_actors_are_dead_and_keep_no_caller_waiting(seen):
    scheduler = ThreadScheduler("ending-actors")
    scheduler.start()
    actor, late = (Player.start(scheduler, seen) for _ in range(2))
    assert scheduler.stop(PATIENCE)
    assert not actor.is_alive()
    assert pykka.ActorRegistry.get_by_urn(actor.actor_urn) is None
    with pytest.raises(pykka.ActorDeadError):
        actor.ask("anyone there?", timeout=PATIENCE)
    assert late.stop(timeout=PATIENCE) is False


def test_an_actor_that_is_started_after_the_end_answers_that_it_is_dead(seen):
    scheduler = ThreadScheduler("ended-actors")
    scheduler.start()
    assert scheduler.stop(PATIENCE)
    actor = Player.start(scheduler, seen)
    with pytest.raises(pykka.ActorDeadError):
        actor.ask("anyone there?", timeout=PATIENCE)
    assert not actor.is_alive()


def test_pykkas_private_parts_are_those_of_the_versions_that_are_allowed():
    allowed = metadata.requires("callboard")
    assert "pykka<4.6,>=4.5" in [each.replace(" ", "") for each in allowed]
    assert metadata.version("pykka").startswith("4.5.")
    needed = {"_create_actor_inbox", "_create_future", "_handle_failure", "_handle_receive", "_start_actor_loop"}
    needed |= {"_stop", "actor_inbox", "actor_stopped"}
    assert needed <= {*vars(pykka.Actor), *pykka.Actor.__annotations__}
    assert pykka.messages._ActorStop
