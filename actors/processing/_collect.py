"""DATA_COLLECTION: observe the target at the start of a step."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.processing._picture import presentable, purpose_of
from callboard.actors.processing._routine_look import fitting
from callboard.actors.processing._services import digest
from callboard.actors.states import memory_key, see
from callboard.messages import (
    MOST_CHARACTERS,
    Board,
    Held,
    Look,
    Observation,
    ResultStatus,
    ToolTimeoutError,
    encodable,
    entries_for,
    shown,
)
from callboard.surfaces import Server, ToolError, observed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.actors.processing._context import Context
    from callboard.actors.processing._phases import Collect
    from callboard.actors.states import Run
    from callboard.messages import Target

_T = TypeVar("_T")
_FIRST_PAUSE = 0.02
_VALUES: frozenset[type] = frozenset({Observation, tuple, str})
"""Types of most answers of a surface that does not block; an answer of another type may have to be awaited."""
COMPARED = Look(picture=False, shown=False)
"""A look that is compared with an earlier one."""


async def collect_controls(context: Context, run: Run) -> Observation:
    """Observe the target of an agent that is not a HostAgent."""
    target = target_of(run)
    surface = context.services.toolbox.surface(target)
    lane = surface.lane(target)
    last = run.records[-1].results if run.records else ()
    failed = any(result.status is ResultStatus.FAILURE for result in last)
    touched = any(result.status is not ResultStatus.SKIPPED for result in last)  # a failed action may have moved it too
    if lane and context.services.lanes.busy(lane) and failed:
        note = f"{target.id} is still busy with a call that took too long; nothing can be seen of it now"
        return Observation(notes=(note, *run.notes))
    try:
        looks = functools.partial(settled if surface.settles and touched else look_to_show, context, run)
        changes_by_itself = surface.settles or surface.pictures
        observation = await (fitting(context, run, looks) if changes_by_itself else looks())
    except ToolError as error:
        if not _may_be_gone(run):
            raise
        if target.id in {listed_target.id for listed_target in await on_lane(context, surface, None, surface.targets)}:
            raise  # still listed: the failure is temporary
        return see(gone(error), run.notes)
    return see(observation, run.notes)


async def with_shared(context: Context, run: Run, collect: Collect) -> Observation:
    """Observe the target and add the shared entries.

    The agent's own requests are left out.
    """
    observation = await collect(context, run)
    notes, assign = context.services.shared, run.assign
    entries = await notes.read(run) if notes.pages is None else notes.pages.get(memory_key(assign))
    if not entries:
        return observation
    own_requests = {assign.request, assign.task_request}
    if max(map(len, own_requests)) > MOST_CHARACTERS:
        own_requests = set(map(shown, own_requests))
    latest = list(entries_for(assign, entries))[-context.services.settings.blackboard.shown :]
    shared = tuple([entry for entry in latest if not (entry.board is Board.REQUESTS and entry.text in own_requests)])
    return observation.model_copy(update={"shared": shared}) if shared else observation


async def look_to_show(context: Context, run: Run) -> Observation:
    """Observe a run's target once.

    The look is for a decision of the agent or a person.
    """
    return await look(context, run, purpose_of(context, run))


async def look(context: Context, run: Run, purpose: Look) -> Observation:
    """Observe a run's target once; the observation always has a fingerprint."""
    target = target_of(run)
    return await _look(context, run, context.services.toolbox.surface(target), target, purpose)


async def _look(context: Context, run: Run, surface: Server, target: Target, purpose: Look) -> Observation:
    observation = await on_lane(context, surface, target, functools.partial(observed, surface, target, purpose))
    if not isinstance(observation, Observation):
        msg = f"{surface.name} observed a {type(observation).__name__}, not an Observation"
        raise TypeError(msg)
    if not observation.fingerprint:
        # a control that only moved counts as unchanged
        controls = tuple(
            control.model_copy(update={"box": None}) if control.box else control for control in observation.controls
        )
        pictures = None  # keeps digests equal to those of versions that had pictures here
        mark = digest(controls, observation.text, sorted(observation.window.items()), pictures)
        observation = observation.model_copy(update={"fingerprint": mark})
    return await presentable(context, run, purpose, encodable(observation))


async def snapshot(context: Context, run: Run, earlier_look: Observation | None = None) -> Observation:
    """Observe a run's target to compare it with an earlier observation.

    If the surface's own fingerprint shows that the target is unchanged since `earlier_look`, return `earlier_look`.
    """
    if (
        earlier_look is not None
        and _tells(context, run)
        and await _fingerprint(context, run) == earlier_look.fingerprint
    ):
        return earlier_look
    return await look(context, run, COMPARED)


async def mark(context: Context, run: Run) -> str:
    """Return the current fingerprint of a run's target."""
    if _tells(context, run):
        return await _fingerprint(context, run)
    return (await look(context, run, COMPARED)).fingerprint


def _tells(context: Context, run: Run) -> bool:
    """Return whether the target's surface computes its own fingerprint."""
    surface = context.services.toolbox.surface(target_of(run))
    return type(surface).fingerprint is not Server.fingerprint


async def _fingerprint(context: Context, run: Run) -> str:
    target = target_of(run)
    surface = context.services.toolbox.surface(target)
    surface_mark = await on_lane(context, surface, target, functools.partial(surface.fingerprint, target))
    return context.services.secrets.redactor(run.assign.task_id).text(encodable(surface_mark))


def gone(error: Exception) -> Observation:
    """Build the observation of an unreadable target: the reason, and no fingerprint."""
    return Observation(notes=(f"it can't be seen any more: {error}",))


def _may_be_gone(run: Run) -> bool:
    """Return whether a missing target is shown to the model, not raised.

    It is shown if the run has acted on the target or was about to.
    """
    if run.unfinished is not None or (run.held and (run.answer is not None or run.held_by is Held.PAUSE)):
        return True
    last = run.records[-1] if run.records else None
    return last is not None and (bool(last.results) or not last.observation.fingerprint)


async def settled(context: Context, run: Run) -> Observation:
    """Observe a run's target once it is quiet, or after `settle_seconds`."""
    surface = context.services.toolbox.surface(target_of(run))
    apart = surface.pictures or _tells(context, run)  # the polled fingerprint is not the observation for the agent
    observation: Observation | None = None

    async def fingerprint() -> str:
        nonlocal observation
        if apart:
            return await mark(context, run)
        observation = await look_to_show(context, run)
        return observation.fingerprint

    await quiet(context, run, fingerprint)
    return observation or await look_to_show(context, run)


async def quiet(
    context: Context, run: Run, fingerprint: Callable[[], Awaitable[str]], last_fingerprint: str = ""
) -> str:
    """Wait until a run's target is quiet.

    The surface reports whether it is busy; if it can't, two equal fingerprints in a row count as quiet. Polls with
    exponential backoff.

    Args:
        context: The context of the step.
        run: The run whose target is polled.
        fingerprint: Returns the current fingerprint.
        last_fingerprint: A fingerprint that was taken just before, if any.

    Returns:
        The last fingerprint. After `settle_seconds` the target may still be changing.
    """
    target = target_of(run)
    surface = context.services.toolbox.surface(target)
    end = time.monotonic() + run.limits.settle_seconds
    pause, last = _FIRST_PAUSE, last_fingerprint
    while True:
        busy = await on_lane(context, surface, target, functools.partial(surface.busy, target))
        if not busy:
            now = await fingerprint()
            if busy is False or now == last:
                return now
            last = now
        remaining_seconds = end - time.monotonic()
        if remaining_seconds <= 0:
            return last or await fingerprint()
        await asyncio.sleep(min(pause, remaining_seconds))
        pause *= 2


async def on_lane(context: Context, surface: Server, target: Target | None, look: Callable[[], _T]) -> _T:
    """Call a surface with a timeout.

    It runs on its lane if it may block. The limit is that of a tool call.

    Raises:
        ToolTimeoutError: If the call exceeds the limit.
    """
    lane = surface.lane(target)
    work: Awaitable[_T]
    if lane:
        work = context.services.lanes.run(lane, look)
    else:
        answer = look()
        if type(answer) in _VALUES or not inspect.isawaitable(answer):
            return answer
        work = answer
    return await in_time(context, work, f"looking at {target.id if target else surface.name}")


async def in_time(context: Context, work: Awaitable[_T], what: str) -> _T:
    """Await `work` with the time limit of a tool call.

    Raises:
        ToolTimeoutError: If it exceeds the limit.
    """
    seconds = context.services.settings.limits.command_seconds
    limit = context.services.clock.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        msg = f"{what} took longer than {seconds:g} s"
        raise ToolTimeoutError(msg) from error


def target_of(run: Run) -> Target:
    """Return a run's target, as its surface knows it.

    Raises:
        LookupError: If the run has no target, as a HostAgent's.
    """
    target = run.assign.target
    if target is None:
        msg = f"{run.assign.address} was assigned no target"
        raise LookupError(msg)
    return target.native if target.base else target
