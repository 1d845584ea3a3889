"""A routine in the place of a kind's model: ``models.app: routine:FILE``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import ModelError, RoutineError, ScriptError
from callboard.models import Model, ModelAnswer, register_form
from callboard.routines._follower import RoutineFollower
from callboard.routines._routine_file import load_routine

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.config import Settings
    from callboard.models import ModelRequest


class RoutineModel(Model):
    """A model that repeats a routine with its usual values.

    It has no model behind it: where a guard does not hold, a person is asked, or the work fails.
    """

    def __init__(self, follower: RoutineFollower) -> None:
        self._follower = follower

    def routine_answer(self, request: ModelRequest) -> ModelAnswer | None:
        """Return the next answer of the routine."""
        answer = self._follower.answer(request, has_model=False)
        return answer if isinstance(answer, ModelAnswer) else None

    def routine_waits(self, request: Callable[[], ModelRequest]) -> bool:
        """Return whether only the guard of the next step does not hold."""
        return self._follower.waits(request())

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Refuse to answer: the routine has no step here.

        Raises:
            ModelError: Always.
        """
        msg = f"{request.address}: the routine {self._follower.routine.routine} has no answer for this step"
        raise ModelError(msg)


@register_form("routine")
def routine_model(settings: Settings, file: str) -> RoutineModel:
    """Build the model of a routine's file.

    Raises:
        ScriptError: If the file is no routine, or one of its parameters has no usual value.
    """
    try:
        routine = load_routine(settings.path(file))
    except RoutineError as error:
        raise ScriptError(str(error)) from error
    values = routine.values({})
    missing = [name for name, value in values.items() if value is None]
    if missing:
        msg = f"{file}: the parameter {missing[0]!r} has no usual value: write one, or submit a task with the routine"
        raise ScriptError(msg)
    return RoutineModel(RoutineFollower(routine, values))
