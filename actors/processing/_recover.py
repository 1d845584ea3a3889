"""Resume a step after a crash.

An action is repeated only if a probe shows that it did not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.processing._action_list import CHANGED, ActionList, changes
from callboard.actors.processing._collect import mark, quiet
from callboard.actors.processing._started_windows import in_windows, lost_window
from callboard.actors.states import STOP, WAS_DONE, WAS_NOT_DONE, Unfinished, files_of
from callboard.messages import (
    AskedQuestion,
    CommandResult,
    Decided,
    DoubtError,
    Effect,
    EventName,
    Intent,
    Probe,
    ResultStatus,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.actors.processing._context import Context
    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run
    from callboard.messages import Foreseen, Observation


GONE = "nothing more was done: "
"""Prefix of the reason for skipping actions whose surface is gone."""


@dataclass(frozen=True)
class Doubt:
    """A question to a person whether an action ran before the crash."""

    call_id: str
    question: AskedQuestion


async def resume_step(context: Context, run: Run, new_observation: Observation) -> Acted | Doubt:
    """Resolve an action of unknown outcome.

    Then run the actions that have no result yet. At most one action is in doubt: its intent is in the journal, and its
    result is not.

    Raises:
        DoubtError: If the outcome stays unknown and the settings let the run fail in that case.
    """
    decided, unfinished = acted_on(run), run.unfinished or Unfinished()
    unchanged, written = False, await held_files(context, run)
    if (doubt := unfinished.doubt) is not None:
        probe = unfinished.probe or await _probe(context, run, new_observation, unfinished, doubt)
        context.tell(EventName.COMMAND_IN_DOUBT, run, tool=doubt.tool, call=doubt.call_id, probe=probe.value)
        if probe is Probe.UNKNOWN:
            return _ask(context, doubt)
        unchanged = probe is Probe.BEGUN or (probe is Probe.DONE and unfinished.probe is None)
        notes = unfinished.earlier if probe is Probe.DONE else (*unfinished.earlier, *unfinished.foreseen)
        new_files = await _new_files(context, run, doubt, notes)
        written[doubt.call_id] = new_files
        if probe is Probe.DONE:
            kept_files = context.services.journal.artifacts.of(run.assign.task_id, doubt.call_id)
            done = _was_done(unfinished, doubt, (*new_files, *map(str, kept_files)))
            context.note(run, done, lazy=True)
            context.meter.amounts["commands"] += 1
            context.meter.ran.append((done, done.arguments))
            unfinished = unfinished.after(done)
        context.meter.doubt = None
    actions = ActionList(
        context,
        run,
        decided.observation,
        decided.decision,
        decided.actions,
        approved=decided.approved,
        resumed=decided.resumed,
        latest_fingerprint=new_observation.fingerprint,
        results=list(unfinished.results),
        written=written,
        repeated=next((action.call_id for action in decided.after(unfinished.results)), ""),
    )
    if unfinished.results and unfinished.results[-1].status not in {ResultStatus.SUCCESS, ResultStatus.DRY_RUN}:
        return actions.after_failure()
    gone = not new_observation.fingerprint and decided.after(unfinished.results)
    if gone or (not unchanged and await _has_changed(context, run, new_observation, unfinished)):
        return actions.cut(_skip_reason(context, run, new_observation, unfinished))
    if why := lost_window(decided.decision, unfinished.results):
        return in_windows(context, run, actions.give_up(why, ResultStatus.SKIPPED, later=why))
    return in_windows(context, run, await actions.run_rest())


async def _has_changed(context: Context, run: Run, new_observation: Observation, unfinished: Unfinished) -> bool:
    """Return whether the surface changed unexpectedly.

    It counts only if the remaining actions may have side effects. This concerns surfaces that only calls change. If the
    surface foresaw no result of the last action, the action's change can't be told from one by another program: then
    the model observes the surface and decides again.
    """
    target, decided = run.assign.target, acted_on(run)
    if target is None or context.services.toolbox.surface(target).settles:
        return False
    if not changes(context, run, decided.after(unfinished.results)):
        return False
    intent_fingerprint = unfinished.intent.fingerprint if unfinished.intent is not None else ""
    if new_observation.fingerprint in {decided.seen or decided.observation.fingerprint, intent_fingerprint}:
        return False
    if unfinished.known is None:
        return True
    tool = context.services.toolbox.actions(context.kind, target).get(unfinished.known.tool)
    if tool is None:
        return True
    return await tool.probe(unfinished.known, unfinished.wrote, new_observation.fingerprint) is not Probe.DONE


def _skip_reason(context: Context, run: Run, new_observation: Observation, unfinished: Unfinished) -> str:
    """Return the reason for skipping actions on a changed surface."""
    if not new_observation.fingerprint:  # only the observation of a missing surface has none
        return f"{GONE}{' '.join(new_observation.notes)}"
    name = acted_on(run).after(unfinished.results)[0].tool
    tool = context.services.toolbox.actions(context.kind, run.assign.target).get(name)
    once = unfinished.intent is not None or tool is None or tool.info.effect is Effect.ONCE
    exception_clause = "" if once else f", unless {name} did it right before"
    return f"{CHANGED} while nobody worked{exception_clause}; nothing more was done"


def acted_on(run: Run) -> Decided:
    """Return the decision that a recovered run resumes.

    Raises:
        LookupError: If the run has no interrupted step.
    """
    if run.unfinished is None or run.unfinished.decided is None:
        msg = f"{run.assign.run_id} has no step that was broken off"
        raise LookupError(msg)
    return run.unfinished.decided


async def _probe(
    context: Context, run: Run, new_observation: Observation, unfinished: Unfinished, intent: Intent
) -> Probe:
    """Wait until the surface is quiet, then probe.

    UNKNOWN for a missing or third-party tool.
    """
    tool = context.services.toolbox.actions(context.kind, run.assign.target).get(intent.tool)
    if tool is None:
        return Probe.UNKNOWN
    fingerprint = new_observation.fingerprint
    if run.assign.target is not None:
        fingerprint = await quiet(context, run, lambda: mark(context, run), fingerprint)
    return await tool.probe(intent, unfinished.foreseen, fingerprint)


async def held_files(context: Context, run: Run) -> dict[str, tuple[str, ...]]:
    """List each held call's files from before a crash, by its id."""
    began_ids = {note.call_id for note in run.held_writes}
    calls = [
        Intent(call_id=action.call_id, tool=action.tool, arguments=action.arguments, control=action.control)
        for action in run.held
        if action.call_id in began_ids
    ]
    return {call.call_id: await _new_files(context, run, call, ()) for call in calls}


async def _new_files(context: Context, run: Run, call: Intent, notes: Iterable[Foreseen]) -> tuple[str, ...]:
    """List the files that a call made before crashes, in order.

    A call that makes several files may be repeated because the last one is missing. Each of the others is probed alone.
    Those that it made before it was held count, too.
    """
    tool = context.services.toolbox.actions(context.kind, run.assign.target).get(call.tool)
    if tool is None:
        return ()
    held_notes = (note for note in run.held_writes if note.call_id == call.call_id)
    new_notes = {note.path: note for note in (*held_notes, *notes) if note.is_listed and not note.before}
    return tuple([path for path, note in new_notes.items() if await tool.probe(call, (note,), "") is Probe.DONE])


def _ask(context: Context, intent: Intent) -> Doubt:
    settings = context.services.settings
    what = f"{intent.tool} may have been done before a crash, or not; the surface does not tell"
    if settings.journal.in_doubt == "fail" or not settings.system.ask_question:
        raise DoubtError(what)
    arguments_text = ", ".join(f"{name}={value!r:.100}" for name, value in intent.arguments.items())
    text = f"{what}. Was {intent.tool}({arguments_text}) done?"
    return Doubt(intent.call_id, AskedQuestion(text=text, choices=(WAS_DONE, WAS_NOT_DONE, STOP)))


def _was_done(unfinished: Unfinished, intent: Intent, new_files: tuple[str, ...]) -> CommandResult:
    """Build the result of an action that ran before a crash.

    `new_files` are those that it had made before earlier crashes.
    """
    foreseen = unfinished.foreseen[-1].answer if unfinished.foreseen else None
    artifacts, made = files_of(unfinished.foreseen)
    return CommandResult(
        call_id=intent.call_id,
        tool=intent.tool,
        status=ResultStatus.SUCCESS,
        effect=Effect.ONCE,  # other effects leave no intent, unless a file was foreseen
        value=foreseen if foreseen is not None else "it was done before a crash, and its answer is lost",
        artifacts=tuple(dict.fromkeys((*new_files, *artifacts))),
        made=tuple(dict.fromkeys((*new_files, *made))),
    )
