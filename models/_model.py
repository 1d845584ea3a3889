"""The interface of language models: requests, answers and estimates."""

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

from callboard.config import HostLog, Skill
from callboard.messages import (
    ActionGuard,
    Address,
    AgentKind,
    Effect,
    Observation,
    RoutineMiss,
    RunId,
    StepRecord,
    SubtaskResult,
    Target,
    TaskId,
    Usage,
    Value,
    maker,
)
from callboard.models._responses import AppResponse, by_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.models._judgement import Evidence
    from callboard.models._responses import AgentResponse


_log = HostLog()


@dataclass(frozen=True, kw_only=True)
class ToolInfo:
    """A tool as it is offered to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of its arguments, without those that the system binds."""
    effect: Effect
    controls: tuple[str, ...] = ()
    """The kinds of controls it acts on; empty for any kind."""
    offered: bool = True
    """Whether prompts list the tool; a model may call it even if they do not."""
    names_controls: bool = True
    """Whether its parameters `control_id` and `control_name` name a control; those of third parties' tools do not."""
    has_form: bool = False
    """Whether its surface tells the form of its calls, which a routine's values may not change."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelRequest:
    """The complete input of one decision of a model."""

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
    """The state of the agent."""
    statuses: tuple[str, ...]
    """The statuses allowed in the answer, from the transition table."""
    instructions: str
    """The agent's prompt."""
    task_request: str
    request: str
    """The request or subtask of this agent."""
    target: Target | None
    plan: tuple[str, ...]
    observation: Observation
    memory: tuple[StepRecord, ...]
    """The agent's earlier steps in this task."""
    subtasks: tuple[SubtaskResult, ...]
    """Results of the task's earlier subtasks."""
    tools: tuple[ToolInfo, ...]
    secrets: tuple[str, ...] = ()
    """The names of secrets; a program's arguments refer to them by ``${secret:NAME}``."""
    granted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The secrets that a language model may name, each with its places: ``tool, argument``."""
    reasons: tuple[str, ...] = ()
    """The reasons why earlier answers to this request were sent back."""
    replies: tuple[str, ...] = ()
    """A person's answers to the questions of the last step, in their order; empty without any."""
    attended: bool = True
    """Whether a person is there to answer a question of PENDING."""
    history_tokens: int = 6000
    """Approximate limit of the history in the prompt, in tokens."""
    observation_tokens: int = 6000
    """Approximate limit of the observation in the prompt, in tokens."""
    response: type[AgentResponse] = AppResponse
    """The class that the answer is parsed into."""
    picture_kinds: frozenset[str] = frozenset({AgentKind.OPERATOR})
    """The kinds of agents that see only their target's picture."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of the result, if it is the output of a task that has one."""
    proposes: bool = False
    """Whether the answer may propose checks."""
    most_subtasks: int = 0
    """The most subtasks that one answer may assign; 0 if only one at a time."""
    skills: tuple[Skill, ...] = ()
    """The operator's instructions for some kinds of work, which the agent's tool `read_skill` reads."""
    skill_tokens: int = 6000
    """Approximate limit of the skills' texts in the prompt, in tokens."""
    evidence: Evidence | None = None
    """The evidence for a judge, whose answer has another form; None for an agent."""

    def __repr__(self) -> str:
        """Show the agent, its step and its state."""
        return f"<{type(self).__name__} {self.address}, step {self.step}, {self.status}>"

    @property
    def is_host(self) -> bool:
        """True if a HostAgent asks; all other kinds work on a target."""
        return self.kind == AgentKind.HOST

    @property
    def is_operator(self) -> bool:
        """True if an operator asks.

        It sees only a picture, without controls or text.
        """
        return by_picture(self.kind, self.response)


NOTHING = Usage()
"""The usage of no call."""


class ModelAnswer(Value):
    """A model's answer, not yet validated, and its usage.

    Example:
        >>> ModelAnswer(content={"Status": "FINISH"}, input_tokens=1200, output_tokens=80, cost=0.002).cost
        0.002
    """

    content: Any
    """JSON text or an object, in the response schema of the agent's kind; validated later."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """The cost, in the currency of the budgets; None if unknown."""
    before: Usage = NOTHING
    """The usage of models that were asked before and gave no answer."""
    model: str = ""
    """The model that answered, if it may differ from the one asked: a fallback or a dated version."""
    refers: bool = False
    """Whether ``${steps.…}`` and ``${subtasks.…}``, as a whole argument or result, are replaced by earlier results.
    False if the values are filled in already: text from a document is data, even if it looks like a reference."""
    program: bool = False
    """Whether a program gave the answer, not a language model: ``${secret:NAME}`` is filled in everywhere."""
    offered: tuple[str, ...] = ()
    """The statuses that the model could choose from. Any other is sent back, as is, once, a FINISH before any action.
    If empty, it could choose from all that are legal in the state."""
    must_succeed: bool = True
    """Whether a FINISH after failed actions only, or after a failed subtask, is sent back once, and fails the work if
    the model insists. It has no effect on a program's answer."""
    omission: str | None = None
    """The part of the request that its FINISH omits, in words for the model: it goes back with them once. None: it is
    determined, unless a program answers or `must_succeed` is false; empty: the FINISH counts."""
    replayed: bool = False
    """Whether a routine gave it in place of a model, without a call."""
    routine_step: int = 0
    """The place of the routine's step that it repeats, from 1; 0 for a model's own answer."""
    routine_miss: RoutineMiss | None = None
    """The reason why the routine was left at this answer."""
    guards: tuple[ActionGuard, ...] = ()
    """The guards of its actions, in order, if a routine gave it."""
    cut: str = ""
    """The reason to send the answer back even if it parses: it is cut, too long or contradictory. For the model."""
    summarised: int = 0
    """Number of earlier steps cut to one line in the prompt, because the history was too long."""
    dropped: int = 0
    """Number of earlier steps left out of the prompt."""

    @property
    def usage(self) -> Usage:
        """The usage, including that of models asked before."""
        cost, unpriced = self.cost or 0.0, int(self.cost is None)
        input_tokens, output_tokens = self.input_tokens, self.output_tokens
        mine = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost, unpriced_calls=unpriced)
        return mine if self.before is NOTHING else mine + self.before


class Expected(Value):
    """An upper bound of a call's usage.

    It is reserved from the budgets before the call.
    """

    tokens: int = 0
    cost: float | None = None
    """None if unknown."""


_answer = maker(ModelAnswer)
_UNKNOWN = Expected()
_AT_ONCE: AbstractAsyncContextManager[None] = contextlib.nullcontext()


class Model(ABC):
    """A language model; one instance serves all agents of a kind concurrently."""

    name: str = ""
    """The name in events, spans and counters: ``<provider>:<model>``; by default the class."""

    def __repr__(self) -> str:
        """Show the class and the name."""
        return f"<{type(self).__name__}{f' {self.name}' if self.name else ''}>"

    @abstractmethod
    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request.

        Runs on the event loop and must not block it; a cancellation arrives as `asyncio.CancelledError`.

        Raises:
            ModelError: If there is no answer; the step fails with it.
        """

    def routine_answer(self, request: ModelRequest) -> ModelAnswer | None:
        """Return the answer of a routine, which is no call.

        None if the model is to be asked. Must be fast.
        """
        return None

    def routine_waits(self, request: Callable[[], ModelRequest]) -> bool:
        """Return whether a routine's next step needs another screen.

        It may still appear. Must be fast. `request` builds the request, which only a routine needs.
        """
        return False

    def estimate(self, request: ModelRequest) -> Expected:
        """Return an upper bound of a call's usage. Must be fast."""
        return _UNKNOWN

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for this model's turn if calls are limited.

        `limits.model_seconds` starts after it.
        """
        return _AT_ONCE

    async def close(self) -> None:  # noqa: B027 - most models have nothing to close
        """Close the model's connections.

        Runs on the event loop after the last answer.
        """


@dataclass(repr=False)
class FunctionModel(Model):
    """A model backed by a Python function, for tests and custom models.

    The function gets the request and returns an answer in the response schema, as an object, JSON text or a
    `ModelAnswer`. A coroutine function runs on the event loop. A plain function runs on its own thread for each call
    and may block: a cancellation does not wait for it, and a supervisor that stops names it if it does not return.

    The answer counts as a program's and gets the secrets that it names. If a language model wrote the answer, return
    ``ModelAnswer(..., program=False)``: a model may have copied the name of a secret from a document.

    Example:
        >>> model = FunctionModel(lambda request: {"Status": "FINISH", "Comment": f"step {request.step}"})
        >>> with Supervisor.start(servers=[MemoryServer(MemoryServer.window())], models={"app": model}) as supervisor:
        ...     supervisor.submit(Task(request="Add", target="memo:one")).result().comment
        'step 1'
    """

    function: Callable[[ModelRequest], Any]
    expects: Callable[[ModelRequest], Expected] | None = None
    """Function for the upper bound of a call's usage; without it only the call itself is reserved."""
    calls: int = field(default=0, init=False)
    """The number of calls so far."""

    def __repr__(self) -> str:
        """Show the function's name and the calls, but no bound arguments."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"<{type(self).__name__} {name}, {self.calls} call{'' if self.calls == 1 else 's'}>"

    @functools.cached_property
    def _awaits(self) -> bool:
        """True for a coroutine function or an object whose `__call__` is one."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - its kind matters, not its existence
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Call the function."""
        self.calls += 1
        if self._awaits:
            returned = await self.function(request)
        else:
            returned = await on_thread(lambda: self.function(request), f"callboard-model-{request.address}")
            if inspect.isawaitable(returned):
                returned = await returned
        if not isinstance(returned, ModelAnswer):
            return _answer(content=returned, program=True)
        return returned if "program" in returned.model_fields_set else returned.model_copy(update={"program": True})

    def estimate(self, request: ModelRequest) -> Expected:
        """Return an upper bound of a call's usage."""
        return _UNKNOWN if self.expects is None else self.expects(request)


class _Thread(threading.Thread):
    """A thread that runs one function for a coroutine.

    The coroutine belongs to an event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, main: Callable[[], None], name: str) -> None:
        super().__init__(target=main, name=name, daemon=True)
        self.loop = loop


async def threads_here() -> tuple[threading.Thread, ...]:
    """Return the threads of the running loop's functions that have not returned."""
    loop = asyncio.get_running_loop()
    return tuple(thread for thread in threading.enumerate() if isinstance(thread, _Thread) and thread.loop is loop)


async def on_thread(function: Callable[[], Any], name: str) -> Any:
    """Call a blocking function on a daemon thread.

    A cancellation stops the wait, not the function.
    """
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
        except BaseException as error:  # any error: it is raised in the waiting coroutine
            failure = error
            if not isinstance(error, Exception) or isinstance(error, StopIteration):
                failure = RuntimeError(f"the model's function raised {error!r}")
                failure.__cause__ = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: no coroutine is waiting
            loop.call_soon_threadsafe(settle, value, failure)

    _Thread(loop, main, name).start()
    return await answer
