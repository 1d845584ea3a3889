"""DATA_COLLECTION of a HostAgent: list the targets and observe their desktops."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from callboard.actors.processing._collect import on_lane
from callboard.actors.processing._picture import presentable
from callboard.actors.processing._services import digest
from callboard.messages import REMOTE, Control, Look, Observation, agent_kind, encodable, reason_of
from callboard.surfaces import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Target


async def collect_targets(context: Context, run: Run) -> Observation:
    """List all surfaces' targets; a failing surface becomes a note."""
    lists: list[Sequence[Target]] = []
    notes: list[str] = []
    for surface in context.services.toolbox.surfaces:
        try:
            lists.append(await on_lane(context, surface, None, surface.targets))
        except Exception as error:  # any error: a surface that is down must not hide the others
            notes.append(f"the targets of {surface.name} can't be listed: {reason_of(error)}")
    task_id, secrets = run.assign.task_id, context.services.secrets
    services = context.services
    has_own_model = services.task_models.named(task_id) or services.routines.of(task_id) is not None
    listed = context.services.listed[has_own_model]
    listed.update(lists, functools.partial(_offers, context, any_kind=has_own_model))
    targets, ids = listed.offered, listed.digest
    if listed.owned:
        targets = tuple(target for target in targets if target.open_to(task_id, run.assign.session))
    remote = context.services.remote
    if remote is not None and not remote.may_assign(task_id):
        targets = tuple(target for target in targets if agent_kind(target.address) != REMOTE)
    hidden = [target for target in targets if secrets.in_target(task_id, target)] if secrets.known else []
    if hidden:
        targets = tuple(target for target in targets if target not in hidden)
        notes.append(f"{len(hidden)} targets are not offered: what names them holds a secret")
    if targets is not listed.offered:
        ids = digest([target.id for target in targets])
    done = sorted({(result.address, result.request, result.outcome.value) for result in run.subtasks})
    fingerprint = digest(ids, done)
    offered = context.services.toolbox.offered(targets)
    observation = offered.model_copy(update={"fingerprint": fingerprint, "notes": (*notes, *run.notes)})
    if secrets.known:
        observation = secrets.redact(task_id, observation)
    desktops = [surface for surface in context.services.toolbox.surfaces if type(surface).desktop is not Server.desktop]
    if not desktops:
        return observation
    masked = (
        (target.id for listed_targets in lists for target in listed_targets if secrets.covered(target.id))
        if secrets.covers
        else ()
    )
    return await _with_desktops(context, run, Look(masked=tuple(masked)), observation, desktops)


def _offers(context: Context, target: Target, *, any_kind: bool) -> tuple[Target, ...]:
    """Return a target's variants.

    They are for the kinds of agents that have a model; with a model of the task's own, these are all. If none has a
    model, return all variants: the error at the assignment then names the missing setting.
    """
    services = context.services
    variants = target.offers(services.agents, services.settings.local_surfaces)

    def works(kind: str) -> bool:
        return any_kind or kind in services.models or not services.agents[kind].has_model

    return tuple(variant for variant in variants if works(agent_kind(variant.address))) or variants


async def _with_desktops(
    context: Context, run: Run, look: Look, observation: Observation, surfaces: Sequence[Server]
) -> Observation:
    """Add the desktops' observations.

    Text and facts of all are added, and the first picture.
    """
    for surface in surfaces:
        try:
            raw_desktop = await on_lane(context, surface, None, functools.partial(surface.desktop, look))
            desktop_observation = await _desktop(context, run, look, raw_desktop)
        except Exception as error:  # any error: the desktop is optional
            desktop_observation = Observation(
                notes=(f"the desktop of {surface.name} can't be seen: {reason_of(error)}",)
            )
        pictured = observation.picture is None
        observation = observation.model_copy(
            update={
                "text": "\n".join(filter(None, (observation.text, desktop_observation.text))),
                "window": {**observation.window, **desktop_observation.window},
                "picture": desktop_observation.picture if pictured else observation.picture,
                "annotated": desktop_observation.annotated if pictured else observation.annotated,
                "notes": (*observation.notes, *desktop_observation.notes),
            }
        )
    return observation


async def _desktop(context: Context, run: Run, look: Look, desktop: object) -> Observation:
    """Redact and label the observation of a desktop.

    A masked window without a known position is added as a control without a box, so that the picture is withheld.
    """
    if desktop is None:
        return Observation()
    if not isinstance(desktop, Observation):
        msg = f"it observed a {type(desktop).__name__}, not an Observation"
        raise TypeError(msg)
    placeless = {*look.masked} - {control.id for control in desktop.controls}
    unseen = tuple(Control(id=window_id, name=window_id, kind="window") for window_id in sorted(placeless))
    desktop = desktop.model_copy(update={"controls": (*desktop.controls, *unseen)})
    return await presentable(context, run, look, encodable(desktop))
