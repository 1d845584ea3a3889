"""ACTION_EXECUTION: run the decided actions.

Actions run if the policy, a pause and the surface allow them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.commands import IDENTITY
from callboard.actors.processing._action_list import CHANGED, UNSEEN, ActionList, changes
from callboard.actors.processing._phases import Acted
from callboard.actors.processing._recover import held_files
from callboard.actors.processing._started_windows import in_windows, starts_of
from callboard.messages import Action, AgentStatus, Held, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation


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
        return await actions.hold(Held.MODEL)
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
    starts = [start for _, start in starts_of(context, decision)]
    if starts:
        decision = decision.model_copy(update={"actions": (*decision.actions, *starts)})
    return in_windows(context, run, await act(context, run, observation, decision))


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
        written=await held_files(context, run),
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
