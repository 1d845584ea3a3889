"""ACTION_EXECUTION: run the decided actions.

Actions run if the policy, a pause and the surface allow them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.actors.commands import IDENTITY
from callboard.actors.processing._action_list import CHANGED, UNSEEN, ActionList, changes
from callboard.actors.processing._phases import Acted
from callboard.messages import Action, AgentStatus, Held, ResultStatus, Target, TargetKind, agent_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import CommandResult, Decision, Observation


async def act(context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
    """Run the actions of an answer in order.

    Stops at one that is denied, held or outdated. With CONFIRM the model itself requests approval, and no action runs
    yet. An approval never overrides a denial.
    """
    if not decision.actions and decision.status != AgentStatus.CONFIRM:
        return Acted(decision)
    decision = decision.model_copy(update={"actions": _with_call_ids(run, decision.actions)})
    confirms = run.assign.dry_run and decision.status == AgentStatus.CONFIRM
    if confirms:  # no person is asked: the agent goes on as after an approval
        decision = decision.model_copy(update={"status": AgentStatus.CONTINUE.value})
    actions = ActionList(context, run, observation, decision, decision.actions, confirms=confirms)
    if decision.status != AgentStatus.CONFIRM:
        why = "" if run.unfinished is None else _outdated_answer(context, run, observation, decision)
        return actions.cut(why) if why else await actions.play()
    try:
        return await actions.denied() or Acted(decision, held=decision.actions, held_by=Held.MODEL)
    except UNSEEN as error:
        return actions.give_up(f"nothing was done: {error}", ResultStatus.FAILURE)


def _with_call_ids(run: Run, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Assign each action its call id, which a later step keeps."""
    step = f"{run.assign.run_id}.{run.steps + 1}"
    return tuple([action.model_copy(update={"call_id": f"{step}.{number}"}) for number, action in enumerate(actions)])


def _outdated_answer(context: Context, run: Run, observation: Observation, decision: Decision) -> str:
    """Return why an answer from before a crash is outdated, or empty.

    It is outdated if a surface that only calls change looks different now. On a surface that changes by itself it stays
    valid, because each control is checked there before an action.
    """
    journaled_answers = run.unfinished.answers if run.unfinished is not None else ()
    answer_index = (
        int(context.meter.amounts.get("repairs", 0)) + decision.sent_back
    )  # the earlier answers were sent back
    target = run.assign.target
    if answer_index >= len(journaled_answers) or target is None or not changes(context, run, decision.actions):
        return ""
    given_on = journaled_answers[answer_index].fingerprint
    same = not given_on or given_on == observation.fingerprint
    return "" if same or context.services.toolbox.surface(target).settles else f"{CHANGED} while nobody worked"


async def act_as_host(context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
    """Run a HostAgent's actions.

    Assigned applications are started, in the order of their subtasks, and their windows get these.
    """
    starts = [start for _, start in _starts(context, decision)]
    if starts:
        decision = decision.model_copy(update={"actions": (*decision.actions, *starts)})
    return in_windows(context, run, await act(context, run, observation, decision))


def _starts(context: Context, decision: Decision) -> list[tuple[int, Action]]:
    """Return the starts of assigned applications, by the subtask's index."""
    calls = [
        (index, context.services.toolbox.start_of(target))
        for index, target in enumerate(_assigned_targets(decision))
        if target.kind is TargetKind.APPLICATION
    ]
    return [(index, call) for index, call in calls if call is not None]


def _assigned_targets(decision: Decision) -> tuple[Target, ...]:
    alone = () if decision.target is None else (decision.target,)
    return tuple(planned.target for planned in decision.group) or alone


def in_windows(context: Context, run: Run, acted: Acted) -> Acted:
    """Assign subtasks to the windows that were opened for them.

    This happens once the whole list has run. Parts of it may have run in earlier steps, before an approval or a pause.
    """
    starts = _starts(context, acted.decision)
    if not starts or acted.held:
        return acted
    calls = acted.decision.actions[-len(starts) :]
    if [call.tool for call in calls] != [start.tool for _, start in starts]:
        return acted  # they could not be started when this was decided
    steps = (*(record.results for record in run.records), acted.results)
    results = {result.call_id: result for step in steps for result in step}
    started = [results[call.call_id] for call in calls if call.call_id in results]
    if any(result.status is ResultStatus.DRY_RUN for result in started):
        return replace(acted, decision=_without_windows(run, acted.decision))
    if len(started) < len(calls) or any(result.status is not ResultStatus.SUCCESS for result in started):
        return acted
    if any(isinstance(result.value, str) for result in started):  # one ran before a crash, and its answer is lost
        return replace(acted, decision=_decide_again(acted.decision))  # the model will see the windows
    windows = list(_assigned_targets(acted.decision))
    for (index, _), result in zip(starts, started, strict=True):
        windows[index] = _window(windows[index], result)
    return replace(acted, decision=_assigned_to(acted.decision, windows))


def _window(application: Target, started: CommandResult) -> Target:
    """Return the window that a start opened, for the application's agents."""
    try:
        window = Target.model_validate(started.value, strict=False)
    except ValidationError as error:
        msg = f"{started.tool} answered with no target: {error}"
        raise TypeError(msg) from error
    return next(iter(window.offers({agent_kind(application.address)})), window)


def _assigned_to(decision: Decision, targets: Sequence[Target]) -> Decision:
    if not decision.group:
        return decision.model_copy(update={"target": targets[0]})
    pairs = zip(decision.group, targets, strict=True)
    group = tuple(planned.model_copy(update={"target": target}) for planned, target in pairs)
    return decision.model_copy(update={"group": group})


def _decide_again(decision: Decision) -> Decision:
    """Make a HostAgent look and decide again, instead of assigning its subtasks."""
    return decision.model_copy(update={"status": AgentStatus.CONTINUE.value, "target": None, "group": ()})


def _without_windows(run: Run, decision: Decision) -> Decision:
    """Continue a dry run, which has no windows to work in.

    A plan, or a step of one, that names an application is over: its next decision would be the same. It fails if it had
    to return an output of a type.
    """
    assign = run.assign
    follows = bool(assign.plan) or (assign.plan_step is not None and assign.plan_step.target is not None)
    if not follows:
        return _decide_again(decision)
    if assign.output_schema is None:
        return decision.model_copy(update={"status": AgentStatus.FINISH.value, "target": None, "group": ()})
    why = "a dry run starts no application, so that this step has no output"
    return decision.model_copy(update={"status": AgentStatus.FAIL.value, "target": None, "group": (), "comment": why})


async def act_held(context: Context, run: Run, observation: Observation) -> Acted:
    """Run exactly the held actions, or none if a control has changed.

    A surface that only calls change, such as a document, must be unchanged since the person was asked: approved actions
    must not overwrite another program's changes.
    """
    record, decision, held = run.memory[-1], run.memory[-1].decision, run.held
    if not all(action.call_id for action in held):  # held by a version that assigned no ids
        held = _with_call_ids(run, held)
        decision = decision.model_copy(update={"actions": (*decision.actions[: -len(held)], *held)})
    approved = "" if run.answer is None else run.answer.reason if run.answer.unattended else "approved"
    actions = ActionList(
        context,
        run,
        record.observation,
        decision,
        held,
        approved=approved,
        resumed=True,
        latest_fingerprint=observation.fingerprint,
    )
    if not observation.fingerprint:  # only the observation of a missing surface has none
        return actions.cut(f"held back, but {' '.join(observation.notes)}")
    try:
        gone = await actions.gone() or _changed_target(context, run, observation)
    except UNSEEN as error:
        return actions.give_up(f"nothing was done: {error}", ResultStatus.FAILURE)
    return actions.cut(f"held back, but {gone}") if gone else in_windows(context, run, await actions.play())


def _changed_target(context: Context, run: Run, observation: Observation) -> str:
    """Return how a target differs from the one shown, or empty."""
    target, shown_observation = run.assign.target, run.shown
    if target is None:
        return ""
    for fact in IDENTITY:
        if shown_observation is not None and observation.window.get(fact) != shown_observation.window.get(fact):
            return f"it is another one than a person was shown: its {fact} is {observation.window.get(fact)!r} now"
    if context.services.toolbox.surface(target).settles:
        return ""
    if run.held_by is Held.PAUSE:
        is_changed = observation.fingerprint != run.left and changes(context, run, run.held)
        return f"{CHANGED} while the task was paused; nothing was done" if is_changed else ""
    is_changed = shown_observation is not None and observation.fingerprint != shown_observation.fingerprint
    return f"{CHANGED} since a person was asked; nothing was done" if is_changed else ""
