"""The stream of one run: server-sent events until it ends or asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, cast

from callboard.agui._interrupts import RunRefusedError
from callboard.agui._translation import Translator
from callboard.messages import CallboardError, EventName, SupervisorStoppedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable

    from ag_ui.core import BaseEvent, RunAgentInput

    from callboard.actors.client import TaskHandle
    from callboard.agui._thread_tasks import Continuation, PersonThread, ThreadTasks
    from callboard.messages import ApprovalRequest, Event, Question

IDLE_SECONDS = 1.0
"""The time without events after which open requests are looked for."""
_QUIET_LOOKS = 15
"""The number of such times after which a comment shows that the connection holds."""
_ASKED = {EventName.APPROVAL_REQUESTED, EventName.QUESTION_ASKED}


async def run_stream(
    tasks: ThreadTasks, thread: PersonThread, run: RunAgentInput, is_signed_in: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes]:
    """Yield the events of a run.

    A task goes on when the connection ends: the protocol has no cancel by it. The same run continues to follow it.

    Args:
        tasks: The tasks of threads.
        thread: The person and the thread.
        run: The run.
        is_signed_in: Returns whether the person is still signed in; if not, the stream ends.
    """
    translator = Translator(run.thread_id, run.run_id)

    def encoded(events: Iterable[BaseEvent]) -> bytes:
        members = (event.model_dump(by_alias=True, mode="json") for event in events)
        return "".join(f"data: {json.dumps(tasks.redactor.redact(event))}\n\n" for event in members).encode()

    yield encoded([translator.started()])
    try:
        continuation = await asyncio.to_thread(tasks.begin, thread, run)
        handle = continuation.handle
        yield encoded(translator.snapshot(handle.task, continuation.past))
        for note in continuation.notes:
            yield encoded(translator.text(note))
        async for item in _until_end(tasks, continuation):
            match item:
                case None:
                    if not await is_signed_in():
                        yield encoded([translator.failed("signed_out", "you are signed out; the task goes on")])
                        return
                    yield b": quiet\n\n"
                case tuple():
                    yield encoded(translator.interrupted(item))
                    return
                case event:
                    yield encoded(translator.of(event))
        yield encoded(translator.ended(handle.result(0), tasks.workspace))
    except RunRefusedError as error:
        yield encoded([translator.failed(error.code, str(error))])
    except (SupervisorStoppedError, TimeoutError):
        msg = "the supervisor stopped: after its next start the same run follows the task again"
        yield encoded([translator.failed("stopped", msg)])
    except CallboardError as error:
        yield encoded([translator.failed("refused", str(error))])


async def _until_end(
    tasks: ThreadTasks, continuation: Continuation
) -> AsyncIterator[Event | tuple[ApprovalRequest | Question, ...] | None]:
    """Yield events of a task until it ends or asks.

    Open requests are the last item. None stands for a time without events.
    """
    handle, looks, is_looked = continuation.handle, 0, False
    past_seq = continuation.past[-1].seq if continuation.past else 0
    async with contextlib.aclosing(_events(handle)) as events:
        async for event in events:
            if event is not None and event.seq <= past_seq:
                continue
            if event is not None:
                yield event
            if (event is None and not is_looked) or (event is not None and event.name in _ASKED):
                requests = await asyncio.to_thread(tasks.requests, handle)
                if requests and (event is None or _id_of(event) in {request.id for request in requests}):
                    yield requests
                    return
            is_looked = event is None
            looks = looks + 1 if event is None else 0
            if looks and looks % _QUIET_LOOKS == 0:
                yield None


def _id_of(event: Event) -> str:
    request = event.data.get("request")
    return str(request.get("id")) if isinstance(request, dict) else ""


async def _events(handle: TaskHandle) -> AsyncGenerator[Event | None]:
    """Yield a task's events, and None after each time without one."""
    feed = cast("AsyncGenerator[Event, None]", aiter(handle))
    following = asyncio.ensure_future(anext(feed, None))
    try:
        while True:
            if not (await asyncio.wait({following}, timeout=IDLE_SECONDS))[0]:
                yield None
                continue
            event = following.result()
            if event is None:
                return
            yield event
            following = asyncio.ensure_future(anext(feed, None))
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await feed.aclose()
