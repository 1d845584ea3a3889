"""Doubles for models, tools and surfaces, which return the recorded data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, JsonValue

from callboard.actors.commands import (
    BoundTool,
    Dispatcher,
    Facts,
    OutputTypes,
    Policy,
    Ruling,
    SecretPlace,
    Toolbox,
    Tools,
    actions_of,
    matches,
)
from callboard.actors.processing import OTHER_POINT, UNSEEN_POINT, Checker
from callboard.actors.replay._tape import RecordedError
from callboard.actors.runtime import Lanes
from callboard.config import MASK, Verdict, text
from callboard.journal import Artifacts, MemoryJournal
from callboard.messages import (
    Box,
    CommandType,
    Control,
    Coverage,
    Effect,
    Hazard,
    Observation,
    Phase,
    Probe,
    StepDone,
    ToolTimeoutError,
)
from callboard.models import Model, ModelAnswer, ToolInfo
from callboard.surfaces import Server, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from callboard.actors.commands import Asked, Secrets
    from callboard.actors.processing import Acted, Context
    from callboard.actors.replay._recorded_task import KnownTools
    from callboard.actors.replay._tape import Tape
    from callboard.actors.runtime import Clock, EventStream, Lease
    from callboard.actors.states import Run
    from callboard.config import PolicyRule
    from callboard.messages import (
        ActionGuard,
        Address,
        CheckResult,
        Command,
        CommandResult,
        Foreseen,
        Intent,
        JudgeResult,
        Look,
        RoutineMiss,
        Target,
    )
    from callboard.models import ModelRequest
    from callboard.surfaces import CallKeeper, EffectGuard

_T = TypeVar("_T")


class _RecordedFacts(BaseModel):
    """The facts that the rules saw, from an event.

    Earlier versions recorded fewer.
    """

    hazards: frozenset[Hazard]
    canonical: dict[str, JsonValue] = {}
    inexact: frozenset[str] = frozenset()
    resources: dict[str, dict[str, Coverage]] = {}
    may_change: tuple[str, ...] = ()
    own_files: tuple[str, ...] = ()
    recipient: str = ""


class RecordedLook:
    """DATA_COLLECTION: returns the recorded observation."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def __call__(self, context: Context, run: Run) -> Observation:
        """Return the observation, or fail as the look did."""
        observation = self._tape.observation()
        if observation is None:
            msg = "nothing could be seen"
            raise RecordedError(msg)
        return observation


class ReplayModel(Model):
    """Gives the recorded answers, including those that were sent back."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def routine_answer(self, request: ModelRequest) -> ModelAnswer | None:
        """Return the next answer, if a routine gave it."""
        recorded_answer = next(iter(self._tape.answers), None)
        return self._next() if recorded_answer is not None and recorded_answer.replayed else None

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Return the next answer, or fail as the model did."""
        return self._next()

    def _next(self) -> ModelAnswer:
        if not self._tape.answers:
            raise self._tape.no_answer()
        recorded_answer = self._tape.answers.pop(0)
        answer = ModelAnswer.model_validate(recorded_answer.model_dump(include=set(ModelAnswer.model_fields)))
        # a version that recorded no statuses for it believed its FINISH
        return answer if answer.offered else answer.model_copy(update={"must_succeed": False})


class RecordedOutputTypes(OutputTypes):
    """Accepts every output.

    The recorded answers have the reasons for which they were sent back.
    """

    def problem(self, task_id: str, schema: dict[str, JsonValue], value: JsonValue) -> str:
        """Return an empty text."""
        return ""


class RecordedTool(BoundTool):
    """A tool that is known only from the recording."""

    type = CommandType.ACTION

    def __init__(self, name: str, parameters: Collection[str], effect: Effect, tape: Tape) -> None:
        schema = {"properties": {parameter: {} for parameter in parameters}, "additionalProperties": True}
        self.info = ToolInfo(name=name, description="", schema=schema, effect=effect)
        self.binds = {}
        self.place = SecretPlace(name, checks_origins=True)  # no page gets it
        self._tape = tape

    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Refuse the arguments that were refused; accept all others."""
        reason = self._tape.sent_back()
        return reason if reason.startswith((self.info.name, "it was sent back")) else None

    async def facts(self, arguments: Mapping[str, JsonValue], made: Collection[str], asked: Asked) -> Facts:
        """Return the facts that the policy received."""
        tape = self._tape
        recorded = tape.ruled = tape.verdict(self.info.name, arguments)
        if recorded is None:
            if tape.refused():
                raise ToolTimeoutError(tape.refused())
            if tape.failed_at(Phase.ACTION_EXECUTION):
                raise tape.failure()
            return Facts(arguments=arguments)
        if "effect" in recorded:
            self.info = replace(self.info, effect=Effect(str(recorded["effect"])))
        recorded_facts = _RecordedFacts.model_validate(recorded)
        return Facts(
            recorded_facts.hazards,
            None,
            {**arguments, **recorded_facts.canonical},
            recorded_facts.inexact,
            recorded_facts.resources,
            own_files=recorded_facts.own_files,
        )

    async def overwritten(self, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Name the files for which the task needed no approval."""
        return () if self._tape.ruled is None else _RecordedFacts.model_validate(self._tape.ruled).may_change

    async def recipient(self, arguments: Mapping[str, JsonValue]) -> str:
        """Name the recipient that a person was shown."""
        return "" if self._tape.ruled is None else _RecordedFacts.model_validate(self._tape.ruled).recipient

    async def relies_on(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return nothing, since results have the facts; fail as recorded."""
        if self._tape.refused():
            raise ToolTimeoutError(self._tape.refused())
        return {}

    async def miss(
        self, guard: ActionGuard, arguments: Mapping[str, JsonValue], facts: Mapping[str, JsonValue] | None
    ) -> RoutineMiss | None:
        """Return the recorded miss."""
        return self._tape.missed()

    async def probe(self, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Return the recorded finding of a look."""
        return self._tape.probed(intent)

    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Never called: the dispatcher has the results."""
        raise self._tape.miss(text("tool_called", tool=self.info.name))


class RecordedPolicy(Policy):
    """The policy's rules, or their recorded verdicts.

    The recorded verdict counts where a secret stood in the facts: the rules can't be asked again without it.
    """

    def __init__(self, rules: tuple[PolicyRule, ...], tape: Tape, *, name: str = "the policy") -> None:
        super().__init__(rules, name=name)
        self._tape = tape

    def rule(
        self,
        agent: Address,
        tool: ToolInfo,
        facts: Facts,
    ) -> Ruling:
        """Return the ruling, or the recorded one."""
        recorded = self._tape.ruled
        if recorded is not None and self._is_unsure(agent, tool, facts):
            return Ruling(Verdict(str(recorded["verdict"])), str(recorded["reason"]))
        return super().rule(agent, tool, facts)

    def _is_unsure(self, agent: Address, tool: ToolInfo, facts: Facts) -> bool:
        """Return whether a rule with an unknown match precedes all that match."""
        redacted = {name for name, value in facts.arguments.items() if "${secret:" in json.dumps(value)}
        for rule in self.rules:
            known_patterns = {
                name: argument for name, argument in rule.arguments.items() if name not in redacted and MASK not in name
            }
            if matches(rule.model_copy(update={"arguments": known_patterns}), agent, tool, facts):
                patterns = (rule.agent, rule.application, rule.tool, *rule.resource, *known_patterns.values())
                return len(known_patterns) < len(rule.arguments) or any(MASK in pattern for pattern in patterns)
        return False


_ANYWHERE = Control(id="", name="", kind="", box=Box(x=0, y=0, width=10**9, height=10**9))


class RecordedSurface(Server):
    """A surface that is known only from the recording."""

    def __init__(self, name: str, tape: Tape) -> None:
        self.name = name
        self._tape = tape
        self.settles = not tape.foreign

    def targets(self) -> tuple[Target, ...]:
        """Never called: the observations are recorded."""
        return ()

    def observe(self, target: Target, look: Look) -> Observation:
        """Return the observation at the beginning of the step, without its pictures.

        Nothing depends on the pictures. If an action that points was not run, each point shows something else, or
        nothing is visible.
        """
        observation, why = self._tape.observation() or Observation(), self._tape.skipped()
        if UNSEEN_POINT in why:
            raise ToolError(why.partition(UNSEEN_POINT)[2])
        unseen = {"controls": (_ANYWHERE,)} if OTHER_POINT in why else {}
        return observation.model_copy(update={"picture": None, "annotated": None, **unseen})

    def resolve(self, seen: Observation, control: Control) -> Control | None:
        """Find the control, unless it had changed."""
        tape = self._tape
        if tape.refused():
            raise ToolTimeoutError(tape.refused())
        why = tape.skipped().removeprefix("held back, but ")
        if not why.startswith(f"{control.kind} {control.id} ({control.name}) is "):
            return control.model_copy(update={"enabled": True})  # its tool may take disabled ones
        if " is disabled now" in why:
            return control.model_copy(update={"enabled": False})
        return control.model_copy(update={"visible": False}) if " is hidden now" in why else None


class RecordedToolbox(Toolbox):
    """The tools that were used."""

    def __init__(self, known_tools: KnownTools, tape: Tape, lanes: Lanes) -> None:
        super().__init__((), (), lanes)
        self._known_tools = known_tools
        self._tape = tape
        self._recorded_tools: dict[str, RecordedTool] = {}

    def surface(self, target: Target) -> Server:
        """Return the surface of a target."""
        return RecordedSurface(target.server, self._tape)

    def tools(self, kind: str, target: Target | None) -> Tools:
        """Return the tools that agents of a kind used on a target."""
        for name, (parameters, effect) in self._known_tools.of(kind, target).items():
            self._recorded_tools.setdefault(name, RecordedTool(name, parameters, effect, self._tape))
        return Tools(self._recorded_tools)

    def actions(self, kind: str, target: Target | None) -> Tools:
        """Return the tools that a model may call.

        The replay adds more as it finds them.
        """
        return actions_of(self.tools(kind, target))


class RecordedChecks(Checker):
    """Returns the recorded results of checks."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def run(self, context: Context, run: Run, acted: Acted) -> tuple[CheckResult, ...]:
        """Return the results; none if the step failed before."""
        message = self._tape.message
        return message.record.checks if isinstance(message, StepDone) else ()

    async def judge(self, context: Context, run: Run) -> tuple[tuple[JudgeResult, ...], int]:
        """Return the judge's recorded answers, and the number of calls.

        Raises:
            OutOfBudgetError: If the judge exceeded a budget.
        """
        message = self._tape.message
        if self._tape.failed_at(Phase.MEMORY_UPDATE):
            raise self._tape.failure()
        return (message.record.judged, message.record.judge_calls) if isinstance(message, StepDone) else ((), 0)


class RecordedDispatcher(Dispatcher):
    """Returns the recorded results of commands."""

    def __init__(self, stream: EventStream, clock: Clock, secrets: Secrets, tape: Tape) -> None:
        super().__init__(stream, clock, secrets)
        self._tape = tape

    async def run(
        self,
        command: Command,
        tools: Tools,
        lease: Lease,
        keeper: CallKeeper | None = None,
        *,
        redacted: bool = True,
        written: Sequence[str] = (),
    ) -> CommandResult:
        """Return the result; a pause that came meanwhile holds the remaining actions."""
        result = self._tape.result(command.call_id, command.tool)
        lease.paused = self._tape.paused
        self.report(command, lease, result)
        return result


class RecordedArtifacts(Artifacts):
    """Lists the files of recorded results."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def of(self, task_id: str, call_id: str) -> list[Path]:
        """List the files that the call's result lists."""
        return self._tape.files(call_id)


class RecordedJournal(MemoryJournal):
    """Stores nothing of the recording but the files of its calls."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.artifacts = RecordedArtifacts(tape)


class NoLanes(Lanes):
    """Calls functions at once: nothing blocks in a replay."""

    async def run(self, name: str, function: Callable[[], _T | Awaitable[_T]]) -> _T:
        """Call a function."""
        return await super().run("", function)
