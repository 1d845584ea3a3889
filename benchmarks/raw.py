"""The unit: the job in raw Pykka (J), ten messages between actors.

``python -m benchmarks.raw`` is a contender.
"""

from __future__ import annotations

import queue
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pykka
from pydantic import BaseModel, ConfigDict

from benchmarks.protocol import STEPS, serve, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.protocol import Go

PATIENCE = 60.0


class Message(BaseModel):
    """One of the ten messages of a task, frozen and validated."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str
    task_id: int
    step: int = 0
    request: str = ""


class Request(Message):
    """Message 1, from caller to root; message 2, from root to host."""

    kind: Literal["request"] = "request"


class Step(Message):
    """Messages from an agent to itself: 3 and 9, 5 to 7."""

    kind: Literal["step"] = "step"


class Assign(Message):
    """Message 4, from the host to the application."""

    kind: Literal["assign"] = "assign"


class Finished(Message):
    """Message 8, application to host; message 10, host to root."""

    kind: Literal["finished"] = "finished"


class Root(pykka.ThreadingActor):
    """Forward requests, and return their results to the caller. Never blocks."""

    use_daemon_thread = True

    def __init__(self, host: pykka.ActorRef[Host], results: queue.SimpleQueue[Message]) -> None:
        super().__init__()
        self._host = host
        self._results = results

    def on_receive(self, message: Message) -> None:
        """Forward a request, or return a result."""
        match message:
            case Request():
                self._host.tell(Request(task_id=message.task_id, request=message.request))
            case _:
                self._results.put(message)


class Host(pykka.ThreadingActor):
    """The host: decide, assign, finish, for all tasks. Never blocks."""

    use_daemon_thread = True

    def __init__(self, app: pykka.ActorRef[App]) -> None:
        super().__init__()
        self._app = app
        self.root: pykka.ActorRef[Root] | None = None
        self._app_done: set[int] = set()

    def on_receive(self, message: Message | pykka.ActorRef[Root]) -> None:
        """Handle one message of a task."""
        match message:
            case Request():
                self.actor_ref.tell(Step(task_id=message.task_id))
            case Step() if message.task_id in self._app_done and self.root is not None:
                self._app_done.discard(message.task_id)
                self.root.tell(Finished(task_id=message.task_id))
            case Step():
                self._app.tell(Assign(task_id=message.task_id, request="fill the field"))
            case Finished():
                self._app_done.add(message.task_id)
                self.actor_ref.tell(Step(task_id=message.task_id, step=1))
            case pykka.ActorRef():
                self.root = message


class App(pykka.ThreadingActor):
    """The application: three steps, for all tasks. Never blocks."""

    use_daemon_thread = True

    def __init__(self) -> None:
        super().__init__()
        self.host: pykka.ActorRef[Host] | None = None
        self.text = ""

    def on_receive(self, message: Message | pykka.ActorRef[Host]) -> None:
        """Handle one message of a task."""
        match message:
            case Assign():
                self.actor_ref.tell(Step(task_id=message.task_id, step=1))
            case Step(step=step):
                self.text = str(step)
                if step < STEPS:
                    self.actor_ref.tell(Step(task_id=message.task_id, step=step + 1))
                elif self.host is not None:
                    self.host.tell(Finished(task_id=message.task_id))
            case pykka.ActorRef():
                self.host = message


@contextmanager
def job(size: int) -> Iterator[Go]:
    """Prepare J."""
    results: queue.SimpleQueue[Message] = queue.SimpleQueue()
    app = App.start()
    host = Host.start(app)
    root = Root.start(host, results)
    app.tell(host)
    host.tell(root)

    def go(batches: int) -> None:
        for _ in range(batches):
            for number in range(size):
                root.tell(Request(task_id=number, request="fill the field"))
            for _ in range(size):
                results.get(timeout=PATIENCE)

    yield go
    for actor in (root, host, app):
        actor.stop()


if __name__ == "__main__":
    serve(timed(job))
