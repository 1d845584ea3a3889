"""Run the actions of one answer in order.

Before each action the job checks that the task is not paused, that the policy allows the action, and that its
control is unchanged.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from callboard.actors.processing._call_record import CallRecord
from callboard.actors.processing._check import Recheck
from callboard.actors.processing._collect import COMPARED, in_time, look, mark
from callboard.actors.processing._intents import intent_of, needs_intent, write_intent
from callboard.actors.processing._permit import explained, ruling
from callboard.actors.processing._phases import Acted
from callboard.actors.processing._picture import puts_secret, secret_controls
from callboard.config import Verdict
from callboard.messages import (
    Action,
    Command,
    CommandResult,
    Decided,
    Effect,
    EventName,
    Held,
    Intent,
    ResultStatus,
    ToolTimeoutError,
    maker,
)
from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.commands import BoundTool, Facts, Ruling
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation, RoutineMiss

AFTER_FAILURE = "skipped, because an action failed before it"
UNSEEN = (ToolTimeoutError, ToolError)
"""Errors of the look before an action; reported to the model as a failure of the action."""
AFTER_MISS = "skipped, because a guard of the routine did not hold before it"
AFTER_CUT = "skipped, because the list was cut before it"
CHANGED = "somebody else has changed it"
"""The reason for cutting a list on a surface that only calls change.

A replay recognises such a cut by this text.
"""


_CHANGED_SINCE = "it has changed since it was approved"
_MOST_HELD = 3
"""The approvals in a row after which an action that keeps changing is given up."""

_command, _decided = maker(Command), maker(Decided)
_status_of = operator.attrgetter("status")


def changes(context: Context, run: Run, actions: Sequence[Action]) -> bool:
    """Return whether one of these actions may have a side effect."""
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    bound_tools = (tools.get(action.tool) for action in actions)
    return any(tool is None or tool.info.effect is not Effect.READ for tool in bound_tools)


@dataclass
class ActionList:
    """A list of actions in progress; used by one job only."""

    context: Context
    run: Run
    observation: Observation
    """The observation that the decision is based on."""
    decision: Decision
    actions: tuple[Action, ...]
    approved: str = ""
    """The reason why the actions count as approved, or empty. A rule can still deny approved actions."""
    resumed: bool = False
    """Whether the actions were held and belong to the decision of an earlier step."""
    latest_fingerprint: str = ""
    """The fingerprint of the latest look before the actions; empty if that is `observation`."""
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files that a repeated call made before a crash, by the call's id."""
    repeated: str = ""
    """The id of the call that a crash may have interrupted."""
    confirms: bool = False
    """Whether the model wants an approval, in a dry run."""
    results: list[CommandResult] = field(default_factory=list)
    _relied_on: dict[str, JsonValue] = field(default_factory=dict)
    """The facts that the current action relies on."""
    _effect: Effect | None = None
    """The effect of the call that the policy ruled on last, if its surface reports an effect per call."""

    def __post_init__(self) -> None:
        self._recheck = Recheck(self.context, self.run, self.observation)
        self._tools = self.context.services.toolbox.actions(self.context.kind, self.run.assign.target)

    async def play(self) -> Acted:
        """Run the actions in order.

        Stops at one that is held, denied or outdated, or fails.
        """
        if self.actions:
            decided = _decided(
                step=self.run.steps + 1,
                observation=self.observation,
                decision=self.decision,
                actions=self.actions,
                approved=self.approved,
                resumed=self.resumed,
                seen=self.latest_fingerprint,
            )
            self.context.note(self.run, decided, lazy=True)
        return await self.run_rest()

    async def run_rest(self) -> Acted:
        """Run the actions that have no result yet."""
        for action in self.actions[len(self.results) :]:
            if self.context.lease.paused:
                return await self._paused()
            try:
                ruled, facts = await self._ruling(action)
                stopped = await self._stopped(action, ruled, facts)
                if stopped is not None:
                    return stopped
                tool = self._tools[action.tool]  # it exists: the policy has ruled on it
                if self.run.assign.dry_run and not self._only_reads(tool, ruled):
                    self._pass_over(action, ruled)
                    continue
                if puts_secret(action, tool):
                    await self._cover(action)
                command = self._command(action)
                intent = None
                if needs_intent(command, tool):
                    intent = await intent_of(self.context, self.run, action, tool, await self._latest_fingerprint())
            except UNSEEN as error:
                return self.give_up(f"nothing was done: {error}", ResultStatus.FAILURE)
            if self.context.lease.paused:  # a pause may have begun during the checks above
                return await self._paused()
            result = await self._dispatch(command, intent)
            self.results.append(result)
            if result.status is not ResultStatus.SUCCESS:
                return self.after_failure()
        return self._acted()

    def after_failure(self) -> Acted:
        """Skip the remaining actions, because the last one that ran failed."""
        why = f"skipped, because {self.results[-1].tool} failed before it"
        return self.give_up(why, ResultStatus.SKIPPED, later=why)

    async def hold(self, held_by: Held, *rulings: tuple[Ruling, Facts]) -> Acted:
        """Hold the remaining actions for a person, with their facts.

        The policy rules on them first, and one denial stops them all. The content that would be replaced is described
        for the first alone: that of later ones may come from it.

        Args:
            held_by: The reason for holding them.
            *rulings: The rulings on the first of them, where they are known.
        """
        held, reasons = list[Action](), dict[str, None]()
        remaining_actions = self.actions[len(self.results) :]
        for number, action in enumerate(remaining_actions):
            ruled, facts = rulings[number] if number < len(rulings) else await self._ruling(action)
            if ruled.verdict is Verdict.DENY:
                why = f"skipped, because {action.tool} is denied"
                self._skip(remaining_actions[:number], why, ResultStatus.SKIPPED, why)
                return self.give_up(f"denied: {ruled.reason}", ResultStatus.FAILURE, later=why)
            if ruled.verdict is Verdict.APPROVE:
                reason = ruled.reason
                if not reasons:
                    tool = self._tools[action.tool]
                    reason = await explained(self.context, self.run, action, tool, facts, reason=reason)
                reasons[f"{reason}; it would send to {facts.recipient}" if facts.recipient else reason] = None
            held.append(action.model_copy(update={"facts": facts.kept()}))
        return replace(self._acted(held_by, "; ".join(reasons)), held=tuple(held))

    async def gone(self) -> str:
        """Return the first changed control or point, or empty."""
        for action in self.actions:
            what = await self._changed(action)
            if what:
                return what
        return ""

    def give_up(self, why: str, first: ResultStatus, later: str = AFTER_FAILURE) -> Acted:
        """Report the remaining actions.

        The first has the reason, the others are skipped.
        """
        self._skip(self.actions[len(self.results) :], why, first, later)
        return self._acted()

    def _skip(self, actions: tuple[Action, ...], why: str, first: ResultStatus, later: str) -> None:
        for number, action in enumerate(actions):
            status, error = (first, why) if number == 0 else (ResultStatus.SKIPPED, later)
            command = self._command(action)
            written = self.written.get(command.call_id, ())
            result = CommandResult(
                call_id=command.call_id,
                tool=action.tool,
                status=status,
                error=error,
                artifacts=written,
                made=written,
            )
            self.context.services.dispatcher.report(command, self.context.lease, result)
            self.context.meter.ran.append((result, command.parameters))
            self.results.append(result)

    def cut(self, why: str) -> Acted:
        """Skip the remaining actions, because the surface has changed."""
        self.context.meter.amounts["cuts"] += 1
        self.context.tell(EventName.LIST_CUT, self.run, ran=len(self.results), reason=why)
        return self.give_up(why, ResultStatus.SKIPPED, later=AFTER_CUT)

    async def _missed(self, action: Action) -> RoutineMiss | None:
        """Note the facts before an action, and compare its routine's guard.

        The facts tell nothing in a dry run, in which nothing was done before, and of a call that a crash interrupted,
        which may have changed them itself.
        """
        tool, self._relied_on = self._tools[action.tool], {}
        again = action.call_id == self.repeated and (self._effect or tool.info.effect) is not Effect.ONCE
        compares_facts = not (self.run.assign.dry_run or again or action.call_id in self.written)
        if compares_facts:
            asking = f"asking what {action.tool} relies on"
            self._relied_on = self._redacted(await in_time(self.context, tool.relies_on(action.arguments), asking))
        if action.guard is None:
            return None
        present = self._relied_on if compares_facts else None
        asking = f"asking for the form of {action.tool}"
        return await in_time(self.context, tool.miss(action.guard, action.arguments, present), asking)

    def _redacted(self, facts: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Replace the secrets in the facts of a surface."""
        return self.context.services.secrets.redact(self.run.assign.task_id, {"left": facts})["left"] if facts else {}

    def _miss(self, missed: RoutineMiss) -> Acted:
        """Skip the remaining actions, because a routine's guard does not hold."""
        number = len(self.results)
        self._skip(self.actions[number:], f"not done: {missed}", ResultStatus.SKIPPED, AFTER_MISS)
        self.results[number] = self.results[number].model_copy(update={"missed": missed})
        return self._acted()

    def _only_reads(self, tool: BoundTool, ruled: Ruling) -> bool:
        """Return whether a call only looks, and needs no approval."""
        looks = (self._effect or tool.info.effect) is Effect.READ
        return looks and ruled.verdict is Verdict.ALLOW and not self.confirms

    def _pass_over(self, action: Action, ruled: Ruling) -> None:
        """Record an action that a dry run does not execute."""
        asks = ruled.verdict is Verdict.APPROVE or self.confirms
        why = ruled.reason if ruled.verdict is Verdict.APPROVE else "the agent's model asks for approval"
        would = f"a person would have been asked: {why}" if asks else "the policy would have allowed it"
        command = self._command(action)
        result = CommandResult(
            call_id=command.call_id,
            tool=action.tool,
            status=ResultStatus.DRY_RUN,
            error=f"dry run: not executed; {would}",
        )
        self.context.services.dispatcher.report(command, self.context.lease, result)
        self.context.note(self.run, result, lazy=True)
        self.context.meter.ran.append((result, command.parameters))
        self.results.append(result)

    async def _stopped(self, action: Action, ruled: Ruling, facts: Facts) -> Acted | None:
        """Stop the list unless the action is allowed and its guards hold.

        Its control must be unchanged, and so must the facts that a routine's action relies on. A dry run asks for no
        approval.
        """
        missed = await self._missed(action)
        if missed is not None:
            return self._miss(missed)
        if ruled.verdict is Verdict.DENY:
            return self.give_up(f"denied: {ruled.reason}", ResultStatus.FAILURE)
        if ruled.verdict is Verdict.APPROVE and not self.run.assign.dry_run:
            if self.approved and self._times_held >= _MOST_HELD:
                why = f"not done: each time that a person had approved {action.tool}, it had changed"
                return self.give_up(why, ResultStatus.FAILURE)
            acted = await self.hold(Held.POLICY, (ruled, facts))
            again = f"{_CHANGED_SINCE}: " if self.approved and acted.held else ""
            return replace(acted, held_why=f"{again}{acted.held_why}")
        changed = await self._changed(action)
        return self.cut(changed) if changed else None

    @property
    def _times_held(self) -> int:
        """The number of approvals in a row after which nothing ran.

        The first action had changed each time.
        """
        records = itertools.takewhile(lambda record: record.resumed and not record.results, reversed(self.run.records))
        return sum(1 for _ in records)

    async def _changed(self, action: Action) -> str:
        tool = self._tools.get(action.tool)
        return await self._recheck.changed(action, takes_disabled=tool is not None and tool.takes_disabled)

    async def _ruling(self, action: Action) -> tuple[Ruling, Facts]:
        tool, approved, results = self._tools[action.tool], self.approved, self.results
        ruled, facts = await ruling(
            self.context, self.run, self.observation, action, tool, approved=approved, results=results
        )
        self._effect = facts.effect
        return ruled, facts

    async def _paused(self) -> Acted:
        """Hold the remaining actions until the pause is over.

        The fingerprint of the surface is kept, because a person may pause the task to change something.
        """
        run, target = self.run, self.run.assign.target
        acted = self._acted(Held.PAUSE)
        if target is None or self.context.services.toolbox.surface(target).settles:
            return acted
        if not changes(self.context, run, self.actions[: len(self.results)]):
            return replace(acted, left=self.latest_fingerprint or self.observation.fingerprint)
        try:
            return replace(acted, left=await mark(self.context, run))
        except UNSEEN:
            return acted

    async def _dispatch(self, command: Command, intent: Intent | None) -> CommandResult:
        context = self.context
        context.meter.running = command
        if intent is not None:
            await write_intent(context, self.run, intent)
        context.meter.amounts["commands"] += 1
        keeper = CallRecord(context, self.run, command)  # even a repeatable call may change its own control
        written = self.written.get(command.call_id, ())
        result = await context.services.dispatcher.run(command, self._tools, context.lease, keeper, written=written)
        try:
            result = await self._with_facts(command, result)
        finally:  # also if the step is cancelled meanwhile: the command was run
            context.note(self.run, result, lazy=True)
            context.meter.ran.append((result, command.parameters))
            context.meter.running = None
        return result

    async def _with_facts(self, command: Command, result: CommandResult) -> CommandResult:
        """Add the surface's facts before and after an action, redacted."""
        left: dict[str, JsonValue] = {}
        if result.status is ResultStatus.SUCCESS:
            telling = self._tools[command.tool].leaves(command.parameters, result.value)
            with contextlib.suppress(ToolTimeoutError):  # missing facts stop a routine that expects them
                left = self._redacted(await in_time(self.context, telling, f"asking what {command.tool} leaves"))
        if not (self._relied_on or left):
            return result
        return result.model_copy(update={"relied_on": self._relied_on, "left": left})

    async def _cover(self, action: Action) -> None:
        """Register the controls that get a secret.

        Pictures mask them from now on.
        """
        context, run, target = self.context, self.run, self.run.assign.target
        if target is None:
            return
        so_far = (*self.actions[: len(self.results)], action)
        covered = secret_controls(so_far, self._tools, self.observation)
        if action.control is None and context.services.toolbox.surface(target).pictures:  # the focus may have moved
            covered |= secret_controls((action,), self._tools, await look(context, run, COMPARED))
        for control in covered:
            context.services.secrets.cover(run.assign.task_id, target.native.id, control)

    async def _latest_fingerprint(self) -> str:
        """Return the surface's latest known fingerprint.

        The surface is observed only if earlier actions may have changed it.
        """
        if self._recheck.latest is not None:
            return self._recheck.latest.fingerprint
        if self.results and self.run.assign.target is not None:
            return await mark(self.context, self.run)
        return self.latest_fingerprint or self.observation.fingerprint

    def _acted(self, held_by: Held = Held.NOT, why: str = "") -> Acted:
        held = self.actions[len(self.results) :] if held_by is not Held.NOT else ()
        done = list(map(_status_of, self.results)).count(ResultStatus.SUCCESS)
        complete = len(self.actions) == len(self.decision.actions)
        if done > complete:  # the answer of held actions was counted in an earlier step
            self.context.meter.amounts["calls_saved"] += done - complete
        return Acted(self.decision, results=tuple(self.results), held=held, held_by=held_by, held_why=why)

    def _command(self, action: Action) -> Command:
        """Build the command of an action."""
        assign, step, tool = self.run.assign, self.run.steps + 1, self._tools.get(action.tool)
        seconds = (tool and tool.seconds) or self.run.limits.command_seconds
        return _command(
            task_id=assign.task_id,
            run_id=assign.run_id,
            token=assign.token,
            call_id=action.call_id,
            state=self.run.status,
            step=step,
            tool=action.tool,
            parameters=action.arguments,
            program=action.program,
            effect=self._effect,
            timeout=float(seconds),
        )
