"""Approvals that hold for the rest of a task."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callboard.messages import Action, ActionFacts, Address, Observation, Target

IDENTITY = ("title", "process", "url")
"""The facts that identify a window."""


class Approved:
    """Remembered approvals, by task. Thread-safe.

    An approval holds for the same tool, target, arguments and facts, or fewer hazards and resources. The target
    includes the identity of the window and of the control, or of the controls at the points that the action names. A
    different window or control that has since taken over the id or the position is not approved.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[str, list[ActionFacts | None]]] = {}

    def remember(
        self,
        task_id: str,
        agent: Address,
        target: Target | None,
        action: Action,
        observation: Observation | None = None,
    ) -> None:
        """Approve an action on an observation, for the rest of the task."""
        with self._lock:
            approvals = self._tasks.setdefault(task_id, {})
            approvals.setdefault(_key(agent, target, action, observation), []).append(action.facts)

    def has(
        self,
        task_id: str,
        agent: Address,
        target: Target | None,
        action: Action,
        observation: Observation | None = None,
    ) -> bool:
        """Return whether an action is approved for the rest of the task.

        `observation` is the present observation, and the action has its present facts: the approval has to hold for
        them, too.
        """
        with self._lock:
            approvals = self._tasks.get(task_id, {}).get(_key(agent, target, action, observation), ())
            return any(facts is None or (action.facts and facts.covers(action.facts)) for facts in approvals)

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        with self._lock:
            self._tasks.pop(task_id, None)


def _key(agent: Address, target: Target | None, action: Action, observation: Observation | None) -> str:
    control = observation.control(action.control) if observation is not None and action.control is not None else None
    identity: Any = [control.id, control.name, control.kind] if control is not None else None
    if action.points and observation is not None:  # the same point of another picture may be another control
        controls = [observation.at(x, y) for x, y in action.points]
        identities = [control and [control.id, control.name, control.kind] for control in controls]
        identity = identities if all(controls) else observation.fingerprint
    which = [observation.window.get(fact) for fact in IDENTITY] if observation is not None else None
    where = target.id if target is not None else None
    return json.dumps([agent, where, which, action.tool, action.arguments, identity], sort_keys=True)
