"""The next answer to an agent, by its routine or its model."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from callboard.actors.processing._model_call import call_model
from callboard.messages import EventName, ModelError, Usage
from callboard.models import ModelAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import RoutineMiss
    from callboard.models import Model, ModelRequest
    from callboard.routines import RoutineFollower

_LEFT = (
    "a recorded routine did the work so far, and its next step does not fit: expected {expected}; found {found}. "
    "Go on from here to the end of the request"
)


@dataclass(frozen=True)
class AnswerSource:
    """The routine and the model that answer an agent."""

    context: Context
    run: Run
    routine: RoutineFollower | None
    model: Model | None

    @classmethod
    def of(cls, context: Context, run: Run) -> AnswerSource:
        """Find those of a run.

        Raises:
            ModelError: If there is neither.
        """
        services, task_id = context.services, run.assign.task_id
        routine = services.routines.of(task_id)
        model = services.task_models.of(task_id) or services.models.get(context.kind)
        if model is None and routine is None:
            msg = f"no model is set for {context.kind} agents: set models.{context.kind}, or pass one"
            raise ModelError(msg)
        return cls(context, run, routine, model)

    def name(self, answer: ModelAnswer) -> str:
        """Return the name of the answering routine or model, for events."""
        if self.routine is not None and (answer.replayed or self.model is None):
            return self.routine.name
        return "" if self.model is None else self.model.name or type(self.model).__name__

    async def answer(self, request: ModelRequest) -> tuple[ModelAnswer, Usage, float]:
        """Return the next answer, its usage, and its start time.

        Raises:
            ModelError: If the routine is left, and there is no model.
        """
        start = time.perf_counter()
        followed = self._followed(request)
        if followed is not None and (not isinstance(followed, ModelAnswer) or followed.routine_miss is not None):
            self.context.meter.amounts["missed"] = 1  # also if the model is asked again in the same step
        if isinstance(followed, ModelAnswer):
            self.context.meter.amounts["replayed"] += 1
            return followed, Usage(), start
        if self.model is None:
            msg = f"no model is set for {self.context.kind} agents, to go on where the routine was left"
            raise ModelError(msg)
        if followed is None:
            return await call_model(self.context, self.run, self.model, request)
        note = _LEFT.format(expected=followed.expected, found=followed.found)
        seen = request.observation.model_copy(update={"notes": (*request.observation.notes, note)})
        answer, usage, start = await call_model(self.context, self.run, self.model, replace(request, observation=seen))
        return answer.model_copy(update={"routine_miss": followed}), usage, start

    def _followed(self, request: ModelRequest) -> ModelAnswer | RoutineMiss | None:
        if self.routine is not None:
            return self.routine.answer(request, has_model=self.model is not None)
        return None if self.model is None else self.model.routine_answer(request)

    def waits(self, request: Callable[[], ModelRequest]) -> bool:
        """Return whether a routine's next step needs another screen.

        `request` is called only if there is a routine.
        """
        if self.routine is not None:
            return self.routine.waits(request())
        return self.model is not None and self.model.routine_waits(request)

    def tell(self, answer: ModelAnswer, status: str) -> None:
        """Tell about a routine's answer, or about its miss."""
        name = self.name(answer) if self.routine is None else self.routine.name
        miss = answer.routine_miss
        if miss is not None:
            facts = {"routine": name, "place": miss.step, "expected": miss.expected, "found": miss.found}
            self.context.tell(EventName.ROUTINE_MISSED, self.run, **facts)
        if answer.replayed:
            self.context.tell(
                EventName.ROUTINE_FOLLOWED, self.run, routine=name, place=answer.routine_step, status=status
            )
