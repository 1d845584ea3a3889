"""The language model behind an agent: what it is asked, what it answers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.actors.models._responses import AppResponse, OperatorResponse
from callboard.config import HostLog
from callboard.messages import (
    Address,
    AgentKind,
    Effect,
    Observation,
    RunId,
    StepRecord,
    SubtaskResult,
    Target,
    TaskId,
    Usage,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.models._responses import AgentResponse


_log = HostLog()


@dataclass(frozen=True, kw_only=True)
class ToolInfo:
    """One tool as it is offered to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of its arguments; what the system binds is left out."""
    effect: Effect
    controls: tuple[str, ...] = ()
    """The kinds of control that it acts on; empty for any."""
    offered: bool = True
    """Whether models are told of it; one that knows it may call it all the same."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """Everything that a model may base one decision on."""

    address: Address
    """The agent that asks."""
    kind: str
    task_id: TaskId
    run_id: RunId
    step: int
    """The number of the step within the assignment, from 1."""
    call: int
    """The number of this call at this address within the task, from 1."""
    status: str
    """The state in which it is asked."""
    statuses: tuple[str, ...]
    """The statuses that it may answer, from the transition table."""
    instructions: str
    """The agent's prompt."""
    task_request: str
    request: str
    """What this agent has to do."""
    target: Target | None
    plan: tuple[str, ...]
    observation: Observation
    memory: tuple[StepRecord, ...]
    """The agent's earlier steps in this task."""
    subtasks: tuple[SubtaskResult, ...]
    """What the task's earlier subtasks left."""
    tools: tuple[ToolInfo, ...]
    secrets: tuple[str, ...] = ()
    """The names of values that tools get where an argument of a program's says ``${secret:NAME}``."""
    granted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Those that a language model may name, each with the places: ``tool, argument``."""
    reasons: tuple[str, ...] = ()
    """Why its earlier answers to this request were sent back."""
    attended: bool = True
    """Whether anybody is there to answer a question of PENDING."""
    history_tokens: int = 6000
    """About how much of its prompt may tell what was done before."""
    observation_tokens: int = 6000
    """About how much of it may tell what there is to see."""
    response: type[AgentResponse] = AppResponse
    """The class that its answer is read as."""

    @property
    def is_host(self) -> bool:
        """Whether a HostAgent asks; all other kinds work on a target."""
        return self.kind == AgentKind.HOST

    @property
    def is_operator(self) -> bool:
        """Whether an operator asks: it sees a picture, and nothing of what is in it in words."""
        return self.kind == AgentKind.OPERATOR or issubclass(self.response, OperatorResponse)


NOTHING = Usage()
"""What no model took."""


class ModelAnswer(Value):
    """A model's answer, not yet checked, and what it took."""

    content: Any
    """JSON text, or the object itself, in the response schema of the agent's kind; whether it is, is checked later."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """What it cost, in the currency of the budgets; None: not known."""
    before: Usage = NOTHING
    """What models took that were asked before this one, and gave no answer."""
    model: str = ""
    """Which model answered, where it may be another than the one that was asked: a fallback, a dated version."""
    refers: bool = False
    """Whether ``${steps.…}`` and ``${subtasks.…}`` as a whole argument, or result, stand for what results were. Not so
    where whoever answers has put such values in already: what comes from a document is data, whatever it says."""
    program: bool = False
    """Whether a program gives it, and no language model: it gets a secret wherever it writes ``${secret:NAME}``."""
    offered: tuple[str, ...] = ()
    """The statuses that it could choose from, where the model is bound to some: another one is sent back, and so is,
    once, a FINISH before anything was done. Empty for a program, which may say whatever the state machine has."""
    cut: str = ""
    """Why it is not whole, more than is taken, or at odds with itself, for the model: it goes back with that, also if
    it reads like an answer."""
    summarised: int = 0
    """Earlier steps of which its prompt told one line, because the history was too long."""
    dropped: int = 0
    """Earlier steps of which it told nothing."""

    @property
    def usage(self) -> Usage:
        """What it took, with what was asked before."""
        cost, unpriced = self.cost or 0.0, int(self.cost is None)
        given, answered = self.input_tokens, self.output_tokens
        mine = Usage(input_tokens=given, output_tokens=answered, cost=cost, unpriced_calls=unpriced)
        return mine if self.before is NOTHING else mine + self.before


class Expected(Value):
    """What a call is expected to use at most; reserved from the budgets before it is made."""

    tokens: int = 0
    cost: float | None = None
    """None: not known."""


_UNKNOWN = Expected()
_AT_ONCE: AbstractAsyncContextManager[None] = contextlib.nullcontext()


class Model(ABC):
    """A language model. One instance serves all agents of a kind, many at a time."""

    name: str = ""
    """What it is called in events, spans and counters: ``<provider>:<model>``; by default its class."""

    @abstractmethod
    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Decide. Runs on the event loop and must not block it; a cancel arrives as `asyncio.CancelledError`.

        Raises:
            ModelError: If there is no answer; the step fails with it.
        """

    def estimate(self, request: ModelRequest) -> Expected:
        """Say what a call will use at most, for the budgets; nothing by default. Must be quick."""
        return _UNKNOWN

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for this model's turn, where calls are limited. `limits.model_seconds` begins only after it."""
        return _AT_ONCE

    async def close(self) -> None:  # noqa: B027 - most models have nothing to close
        """Close its connections; on the event loop, after the last answer."""


@dataclass
class FunctionModel(Model):
    """A model that is a Python function: for tests, and for host programs with a model of their own.

    The function gets the request and returns an answer in the response schema, as an object, as JSON text, or as a
    `ModelAnswer`. A coroutine function runs on the event loop; a plain one on a thread of its own for each call, so
    that it may block: a cancel does not wait for it, and a supervisor that stops names it if it does not return.

    Its answer counts as a program's, and gets the secrets that it names. Where a language model wrote it, return
    ``ModelAnswer(..., program=False)``: a model may have copied the name of a secret out of a document.
    """

    function: Callable[[ModelRequest], Any]
    expects: Callable[[ModelRequest], Expected] | None = None
    """What a call will use at most, for the budgets; nothing is reserved without it but the call itself."""
    calls: int = field(default=0, init=False)
    """How often it was asked."""

    @functools.cached_property
    def _awaits(self) -> bool:
        """True if it is a coroutine function, or an object whose call is one."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - what it is, not whether it is there
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Call the function."""
        self.calls += 1
        if self._awaits:
            said = await self.function(request)
        else:
            said = await on_thread(lambda: self.function(request), f"callboard-model-{request.address}")
            if inspect.isawaitable(said):
                said = await said
        if not isinstance(said, ModelAnswer):
            return ModelAnswer(content=said, program=True)
        return said if "program" in said.model_fields_set else said.model_copy(update={"program": True})

    def estimate(self, request: ModelRequest) -> Expected:
        """Say what a call will use at most."""
        return _UNKNOWN if self.expects is None else self.expects(request)


class _Thread(threading.Thread):
    """Runs one function that a coroutine of a loop waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, main: Callable[[], None], name: str) -> None:
        super().__init__(target=main, name=name, daemon=True)
        self.loop = loop


async def threads_here() -> tuple[threading.Thread, ...]:
    """Give the threads of functions that coroutines of the running loop called, and that have not returned."""
    loop = asyncio.get_running_loop()
    return tuple(each for each in threading.enumerate() if isinstance(each, _Thread) and each.loop is loop)


async def on_thread(function: Callable[[], Any], name: str) -> Any:
    """Call a function that may block on a daemon thread; a cancel stops the waiting, not the function."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if answer.done():
            _log.warning("%s: the answer came after the call was broken off, and is dropped", name)
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def main() -> None:
        value, failure = None, None
        try:
            value = function()
        except BaseException as error:  # an edge: it belongs to whoever asks
            failure = error
            if not isinstance(error, Exception) or isinstance(error, StopIteration):
                failure = RuntimeError(f"the model's function raised {error!r}")
                failure.__cause__ = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, failure)

    _Thread(loop, main, name).start()
    return await answer
