"""The references that models wrote into their answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.messages import AgentKind, InvalidAnswerError, agent_kind
from callboard.models import (
    AgentResponse,
    AppResponse,
    LinuxResponse,
    MobileResponse,
    OperatorResponse,
    ProposingHostResponse,
    look_up,
    read_response,
)
from callboard.routines._origins import Origin, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.messages import Action
    from callboard.routines._journaled_task import JournaledRun, JournaledStep

_RESPONSES: dict[str, type[AgentResponse]] = {
    AgentKind.HOST: ProposingHostResponse,
    AgentKind.MOBILE: MobileResponse,
    AgentKind.LINUX: LinuxResponse,
    AgentKind.OPERATOR: OperatorResponse,
}
_STEP = re.compile(r"steps\.(\d+)\.(?:results\.(\d+)\.value|output)((?:\..+)?)")
_SUBTASK = re.compile(r"subtasks\.(\d+)\.output((?:\..+)?)")


class OwnReferences:
    """The references in a model's answer, with the numbers of the routine."""

    def __init__(
        self, run: JournaledRun, kept: list[JournaledStep], index: int, new_numbers: Mapping[int, int]
    ) -> None:
        self._run = run
        self._kept = kept
        self._new_numbers = new_numbers
        self._actions: dict[str, Action] = {}
        self.result: Origin | None = None
        step = kept[index]
        answer = step.answer
        if answer is None or not answer.refers:
            return
        kind = agent_kind(run.assign.address)
        try:
            response = read_response(_RESPONSES.get(kind, AppResponse), answer.content)
            actions = response.decided_actions()
        except InvalidAnswerError:  # of another form, which a program defined; values are compared alone
            return
        decided = step.record.decision.actions
        self._actions = {mine.call_id: written for mine, written in zip(decided, actions, strict=False)}
        self.result = self._origin(response.result, step.record.decision.result)

    def of(self, action: Action) -> dict[str, Origin]:
        """Return the references in an action's arguments."""
        written = self._actions.get(action.call_id)
        if written is None or written.tool != action.tool:
            return {}
        found = {key: self._origin(written.arguments.get(key), value) for key, value in action.arguments.items()}
        return {key: origin for key, origin in found.items() if origin is not None}

    def _origin(self, written: JsonValue, value: JsonValue) -> Origin | None:
        """Return the place that a text names, if the value is there."""
        if not isinstance(written, str) or not written.strip().startswith("${"):
            return None
        path = written.strip()[2:-1]
        if match := _SUBTASK.fullmatch(path):
            number = int(match[1])
            new = self._new_numbers.get(number)
            return None if new is None else Origin(f"subtasks.{new}.output{match[2]}", subtask=number)
        match = _STEP.fullmatch(path)
        if match is None or int(match[1]) > len(self._run.records):
            return None
        results = self._run.records[int(match[1]) - 1].results
        place = int(match[2] or 0)
        call_id = results[place].call_id if place < len(results) else ""
        for index, step in enumerate(self._kept):
            for number, (action, result) in enumerate(step.calls):
                if action.call_id == call_id and _at(result.value, match[3]) == key_of(value):
                    return Origin(f"results.{number}.value{match[3]}", step=index)
        return None


def _at(value: JsonValue, tail: str) -> str:
    """Return the key of a result's part; empty without one."""
    try:
        return key_of(look_up(f"value{tail}", {"value": value}))
    except LookupError:
        return ""
