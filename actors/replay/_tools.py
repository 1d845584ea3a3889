"""Which tools a task used: their names, parameters and effects, as far as the record tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import (
    Assign,
    Decided,
    Effect,
    Event,
    EventName,
    Intent,
    StepDone,
    Target,
    agent_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.actors.journal import Row
    from callboard.messages import Action, Message

Known = dict[str, tuple[set[str], Effect]]


class KnownTools:
    """The tools of a recording, by kind of agent and target. No schema was recorded: any arguments fit."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._tools: dict[tuple[str, str], Known] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        for row in rows:
            self._add(row)

    def of(self, kind: str, target: Target | None) -> Known:
        """Give the tools of a kind of agent on a target, with their parameters and effects."""
        return self._tools.get((kind, target.id if target is not None else ""), {})

    def _add(self, row: Row) -> None:
        message = row.message
        if isinstance(message, Assign) and message.token:
            target = message.target.id if message.target is not None else ""
            self._keys[message.run_id] = (agent_kind(message.address), target)
        key = self._keys.get(row.run_id)
        if key is None:
            return
        known = self._tools.setdefault(key, {})
        for action in _actions(message):
            known.setdefault(action.tool, (set(), Effect.IDEMPOTENT))[0].update(action.arguments)
        once = message.tool if isinstance(message, Intent) else ""
        if isinstance(message, Event) and message.name is EventName.POLICY_DECIDED:
            once = str(message.data["tool"]) if message.data.get("effect") == Effect.ONCE else ""
        if once:
            parameters, _ = known.get(once, (set(), Effect.ONCE))
            known[once] = (parameters, Effect.ONCE)


def _actions(message: Message) -> tuple[Action, ...]:
    match message:
        case StepDone(record=record, held=held):
            return (*record.decision.actions, *held)
        case Decided(decision=decision, actions=actions):
            return (*decision.actions, *actions)
        case _:
            return ()
