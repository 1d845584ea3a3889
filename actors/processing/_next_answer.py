"""The next answer to an agent: its routine's while the guards hold, else its model's."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from callboard.actors.processing._model_call import call_model
from callboard.messages import EventName, ModelError, RoutineMiss, Usage
from callboard.models import ModelAnswer

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision
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

    @property
    def model_name(self) -> str:
        """The model's name in events."""
        return "" if self.model is None else self.model.name or type(self.model).__name__

    async def answer(self, request: ModelRequest) -> tuple[ModelAnswer, Usage, float]:
        """Return the next answer, its usage, and its start time.

        Raises:
            ModelError: If the routine is left, and there is no model.
        """
        followed = None
        if self.routine is not None:
            start = time.perf_counter()
            followed = self.routine.answer(request, has_model=self.model is not None)
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

    def tell_miss(self, miss: RoutineMiss | None) -> None:
        """Tell that the routine was left, if it was."""
        if miss is not None and self.routine is not None:
            name = self.routine.routine.routine
            self.context.tell(
                EventName.ROUTINE_MISSED,
                self.run,
                routine=name,
                place=miss.step,
                expected=miss.expected,
                found=miss.found,
            )

    def tell_followed(self, decision: Decision) -> None:
        """Tell that the routine gave an answer."""
        name = "" if self.routine is None else self.routine.routine.routine
        self.context.tell(
            EventName.ROUTINE_FOLLOWED, self.run, routine=name, place=decision.routine_step, status=decision.status
        )
