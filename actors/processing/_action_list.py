"""The actions of one answer, run one by one. Before each the job asks again: paused? allowed? still the same?"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from callboard.actors.processing._call_record import CallRecord
from callboard.actors.processing._check import Recheck
from callboard.actors.processing._collect import COMPARED, in_time, look, mark
from callboard.actors.processing._permit import ruling
from callboard.actors.processing._phases import Acted
from callboard.actors.processing._picture import puts_secret, secret_controls
from callboard.actors.servers import ToolError
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.commands import BoundTool, Ruling
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation

AFTER_FAILURE = "skipped, because an action failed before it"
UNSEEN = (ToolTimeoutError, ToolError)
"""What goes wrong with looking before an action: the model sees it, as if the action itself had failed."""
AFTER_CUT = "skipped, because the list was cut before it"
SOMEBODY = "somebody else has changed it"
"""Why a list is cut on a surface that changes by calls alone; a replay knows it by that."""


_command, _decided = maker(Command), maker(Decided)
_status_of = operator.attrgetter("status")


def changes(context: Context, run: Run, actions: Sequence[Action]) -> bool:
    """Say whether one of these actions may change something."""
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    found = (tools.get(action.tool) for action in actions)
    return any(tool is None or tool.info.effect is not Effect.READ for tool in found)


@dataclass
class ActionList:
    """A list of actions on its way; belongs to one job."""

    context: Context
    run: Run
    observation: Observation
    """What the actions were decided on."""
    decision: Decision
    actions: tuple[Action, ...]
    approved: str = ""
    """Why they count as approved, where they do: then only denials count."""
    resumed: bool = False
    """Whether they were held, and decided on in an earlier step."""
    seen: str = ""
    """The fingerprint of the latest look before them, where that was not what they were decided on."""
    results: list[CommandResult] = field(default_factory=list)
    _effect: Effect | None = None
    """The effect of the call that the rules were asked about last, where its server tells it of each call."""

    def __post_init__(self) -> None:
        self._recheck = Recheck(self.context, self.run, self.observation)
        self._tools = self.context.services.toolbox.actions(self.context.kind, self.run.assign.target)

    async def play(self) -> Acted:
        """Run the actions in order, up to the first that is held, denied, meant for something else, or fails."""
        if self.actions:
            decided = _decided(
                step=self.run.steps + 1,
                observation=self.observation,
                decision=self.decision,
                actions=self.actions,
                approved=self.approved,
                resumed=self.resumed,
                seen=self.seen,
            )
            self.context.note(self.run, decided, lazy=True)
        return await self.run_rest()

    async def run_rest(self) -> Acted:
        """Run those that have no result yet."""
        for action in self.actions[len(self.results) :]:
            if self.context.lease.paused:
                return await self._paused()
            try:
                stopped = await self._stopped(action)
                if stopped is not None:
                    return stopped
                tool = self._tools[action.tool]  # the rules were asked about it
                if puts_secret(action, tool):
                    await self._cover(action)
                command = self._command(action)
                once = (command.effect or tool.info.effect) is Effect.ONCE
                intent = await self._intent(action, tool) if once else None
            except UNSEEN as error:
                return self.give_up(f"nothing was done: {error}", ResultStatus.FAILURE)
            if self.context.lease.paused:  # meanwhile: the rules and the surface were asked
                return await self._paused()
            result = await self._dispatch(command, intent)
            self.results.append(result)
            if result.status is not ResultStatus.SUCCESS:
                return self.after_failure()
        return self._acted()

    def after_failure(self) -> Acted:
        """Run none of the rest, because the last one that ran failed."""
        why = f"skipped, because {self.results[-1].tool} failed before it"
        return self.give_up(why, ResultStatus.SKIPPED, later=why)

    async def denied(self, known: int = 0) -> Acted | None:
        """Ask the rules before actions are put before a person: one that is denied stops all that is left.

        Of the first `known` the rules were asked already.
        """
        left = self.actions[len(self.results) :]
        for number, action in enumerate(left[known:], known):
            said = await self._ruling(action)
            if said.verdict is Verdict.DENY:
                why = f"skipped, because {action.tool} is denied"
                self._skip(left[:number], why, ResultStatus.SKIPPED, why)
                return self.give_up(f"denied: {said.reason}", ResultStatus.FAILURE, later=why)
        return None

    async def gone(self) -> str:
        """Say what one of the actions is meant for and is not the same any more; empty if all still is."""
        for action in self.actions:
            what = await self._recheck.changed(action)
            if what:
                return what
        return ""

    def give_up(self, why: str, first: ResultStatus, later: str = AFTER_FAILURE) -> Acted:
        """Run none of the rest: the first of it has the reason, the others are skipped."""
        self._skip(self.actions[len(self.results) :], why, first, later)
        return self._acted()

    def _skip(self, actions: tuple[Action, ...], why: str, first: ResultStatus, later: str) -> None:
        for number, action in enumerate(actions):
            status, error = (first, why) if number == 0 else (ResultStatus.SKIPPED, later)
            command = self._command(action)
            result = CommandResult(call_id=command.call_id, tool=action.tool, status=status, error=error)
            self.context.services.dispatcher.report(command, self.context.lease, result)
            self.results.append(result)

    def cut(self, why: str) -> Acted:
        """Run none of the rest, because what it is meant for is not the same any more."""
        self.context.meter.amounts["cuts"] += 1
        self.context.tell(EventName.LIST_CUT, self.run, ran=len(self.results), reason=why)
        return self.give_up(why, ResultStatus.SKIPPED, later=AFTER_CUT)

    async def _stopped(self, action: Action) -> Acted | None:
        """Stop the list where the rules do not allow an action, or what it is meant for is not the same any more."""
        said = await self._ruling(action)
        if said.verdict is Verdict.DENY:
            return self.give_up(f"denied: {said.reason}", ResultStatus.FAILURE)
        if said.verdict is Verdict.APPROVE:
            return await self.denied(known=1) or self._acted(Held.POLICY, said.reason)
        changed = await self._recheck.changed(action)
        return self.cut(changed) if changed else None

    async def _ruling(self, action: Action) -> Ruling:
        tool, approved, results = self._tools[action.tool], self.approved, self.results
        said, facts = await ruling(
            self.context, self.run, self.observation, action, tool, approved=approved, results=results
        )
        self._effect = facts.effect
        return said

    async def _paused(self) -> Acted:
        """Hold the rest until the pause is over, and note how the surface was left: a person may pause to change it."""
        run, target = self.run, self.run.assign.target
        acted = self._acted(Held.PAUSE)
        if target is None or self.context.services.toolbox.server(target).settles:
            return acted
        if not changes(self.context, run, self.actions[: len(self.results)]):
            return replace(acted, left=self.seen or self.observation.fingerprint)
        try:
            return replace(acted, left=await mark(self.context, run))
        except UNSEEN:
            return acted

    async def _dispatch(self, command: Command, intent: Intent | None) -> CommandResult:
        context = self.context
        context.meter.running = command
        if intent is not None:
            await context.keep(self.run, intent)
        context.meter.amounts["commands"] += 1
        keeper = CallRecord(context, self.run, command)  # what may be repeated may still change its own control
        result = await context.services.dispatcher.run(command, self._tools, context.lease, keeper)
        context.note(self.run, result, lazy=True)
        context.meter.ran.append((result, command.parameters))
        context.meter.running = None
        return result

    async def _cover(self, action: Action) -> None:
        """Note into which controls an action puts a secret, so that no picture shows them from now on."""
        context, run, target = self.context, self.run, self.run.assign.target
        if target is None:
            return
        so_far = (*self.actions[: len(self.results)], action)
        covered = secret_controls(so_far, self._tools, self.observation)
        if action.control is None and context.services.toolbox.server(target).pictures:  # the focus may have moved
            covered |= secret_controls((action,), self._tools, await look(context, run, COMPARED))
        for control in covered:
            context.services.secrets.cover(run.assign.task_id, target.native.id, control)

    async def _intent(self, action: Action, tool: BoundTool) -> Intent:
        """Say what is about to be done and must not be repeated; the surface is looked at where it has changed."""
        context, run = self.context, self.run
        seen = self.seen or self.observation.fingerprint
        if self._recheck.latest is not None:
            seen = self._recheck.latest.fingerprint
        elif self.results and run.assign.target is not None:
            seen = await mark(context, run)
        return Intent(  # what is expected is the server's word
            call_id=action.call_id,
            tool=action.tool,
            arguments=action.arguments,
            control=action.control,
            target=run.assign.target,
            fingerprint=seen,
            expected=await in_time(context, tool.expected(action.arguments), f"asking what {action.tool} will do"),
        )

    def _acted(self, held_by: Held = Held.NOT, why: str = "") -> Acted:
        held = self.actions[len(self.results) :] if held_by is not Held.NOT else ()
        done = list(map(_status_of, self.results)).count(ResultStatus.SUCCESS)
        whole = len(self.actions) == len(self.decision.actions)
        if done > whole:  # held actions go on with an answer that is counted
            self.context.meter.amounts["calls_saved"] += done - whole
        return Acted(self.decision, results=tuple(self.results), held=held, held_by=held_by, held_why=why)

    def _command(self, action: Action) -> Command:
        """Make the command of the next action."""
        assign, step, tool = self.run.assign, self.run.steps + 1, self._tools.get(action.tool)
        seconds = (tool and tool.seconds) or self.context.services.settings.limits.command_seconds
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
