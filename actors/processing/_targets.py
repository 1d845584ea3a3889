"""DATA_COLLECTION of a HostAgent: list the targets and observe their desktops."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.processing._collect import digest, on_lane
from callboard.actors.processing._picture import presentable
from callboard.messages import Control, Look, Observation, agent_kind, encodable, reason_of
from callboard.surfaces import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Target


@dataclass
class ListedTargets:
    """Cache of all servers' targets as agents see them.

    It is recomputed if a server's list changes.
    """

    lists: Sequence[Sequence[Target]] = ()
    offered: tuple[Target, ...] = ()
    owned: bool = False
    """Whether some targets are open to only one task."""
    digest: str = ""
    """A digest of the ids."""

    def update(self, lists: Sequence[Sequence[Target]], offers: Callable[[Target], tuple[Target, ...]]) -> None:
        """Update the cache.

        `offers` returns the targets that agents see for one of a server.
        """
        if len(lists) == len(self.lists) and all(map(operator.is_, lists, self.lists)):
            return
        self.offered = tuple(each for targets in lists for target in targets for each in offers(target))
        self.owned = any(target.owner for target in self.offered)
        self.digest = digest([target.id for target in self.offered])
        self.lists = lists if all(isinstance(targets, tuple) for targets in lists) else ()  # others may change in place


async def collect_targets(context: Context, run: Run) -> Observation:
    """List all servers' targets; a failing server becomes a note."""
    lists: list[Sequence[Target]] = []
    notes: list[str] = []
    for server in context.services.toolbox.servers:
        try:
            lists.append(await on_lane(context, server, None, server.targets))
        except Exception as error:  # any error: a server that is down must not hide the others
            notes.append(f"the targets of {server.name} can't be listed: {reason_of(error)}")
    task_id, secrets = run.assign.task_id, context.services.secrets
    own = context.services.task_models.named(task_id)
    listed = context.services.listed[own]
    listed.update(lists, functools.partial(_offers, context, own=own))
    targets, ids = listed.offered, listed.digest
    if listed.owned:
        targets = tuple(target for target in targets if target.open_to(task_id, run.assign.session))
    hidden = [target for target in targets if secrets.in_target(task_id, target)] if secrets.known else []
    if hidden:
        targets = tuple(target for target in targets if target not in hidden)
        notes.append(f"{len(hidden)} targets are not offered: what names them holds a secret")
    if targets is not listed.offered:
        ids = digest([target.id for target in targets])
    done = sorted({(result.address, result.request, result.outcome.value) for result in run.subtasks})
    fingerprint = digest(ids, done)
    offered = context.services.toolbox.offered(targets)
    seen = offered.model_copy(update={"fingerprint": fingerprint, "notes": (*notes, *run.notes)})
    if secrets.known:
        seen = secrets.redact(task_id, seen)
    desktops = [server for server in context.services.toolbox.servers if type(server).desktop is not Server.desktop]
    if not desktops:
        return seen
    masked = (target.id for each in lists for target in each if secrets.covered(target.id)) if secrets.covers else ()
    return await _with_desktops(context, run, Look(masked=tuple(masked)), seen, desktops)


def _offers(context: Context, target: Target, *, own: bool) -> tuple[Target, ...]:
    """Return a target's variants.

    They are for the kinds of agents that have a model; with a model of the task's own, these are all. If none has a
    model, return all variants: the error at the assignment then names the missing setting.
    """
    found = target.offers(context.services.agents)
    return tuple(each for each in found if own or agent_kind(each.address) in context.services.models) or found


async def _with_desktops(
    context: Context, run: Run, look: Look, seen: Observation, servers: Sequence[Server]
) -> Observation:
    """Add the desktops' observations.

    Text and facts of all are added, and the first picture.
    """
    for server in servers:
        try:
            found = await on_lane(context, server, None, functools.partial(server.desktop, look))
            shown = await _desktop(context, run, look, found)
        except Exception as error:  # any error: the desktop is optional
            shown = Observation(notes=(f"the desktop of {server.name} can't be seen: {reason_of(error)}",))
        pictured = seen.picture is None
        seen = seen.model_copy(
            update={
                "text": "\n".join(filter(None, (seen.text, shown.text))),
                "window": {**seen.window, **shown.window},
                "picture": shown.picture if pictured else seen.picture,
                "annotated": shown.annotated if pictured else seen.annotated,
                "notes": (*seen.notes, *shown.notes),
            }
        )
    return seen


async def _desktop(context: Context, run: Run, look: Look, found: object) -> Observation:
    """Redact and label the observation of a desktop.

    A masked window without a known position is added as a control without a box, so that the picture is withheld.
    """
    if found is None:
        return Observation()
    if not isinstance(found, Observation):
        msg = f"it observed a {type(found).__name__}, not an Observation"
        raise TypeError(msg)
    placeless = {*look.masked} - {control.id for control in found.controls}
    unseen = tuple(Control(id=each, name=each, kind="window") for each in sorted(placeless))
    found = found.model_copy(update={"controls": (*found.controls, *unseen)})
    return await presentable(context, run, look, encodable(found))
