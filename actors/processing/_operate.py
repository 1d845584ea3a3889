"""LLM_INTERACTION of an operator: the model sees the picture, and nothing that tells in words what is in it.

Providers scale large pictures down, and their models answer in pixels of what they were shown. So a large picture is
scaled here, to a size that none of them changes, and points are put back into the target's pixels.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.pictures import PictureError, fitting_size, scaled
from callboard.actors.processing._decide import ask_model
from callboard.actors.states import evolve

if TYPE_CHECKING:
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Decision, Observation, StepRecord

    Size = tuple[int, int]


class _Scale(NamedTuple):
    """How points of one picture are points of another one, of the same, in another size."""

    width: Size
    """Before and after."""
    height: Size

    @property
    def back(self) -> _Scale:
        return _Scale(self.width[::-1], self.height[::-1])

    def action(self, action: Action) -> Action:
        """Give the same action at the same place."""
        names = (("x", self.width), ("to_x", self.width), ("y", self.height), ("to_y", self.height))
        moved = {
            name: _moved(value, *sizes)
            for name, sizes in names
            if action.points and isinstance(value := action.arguments.get(name), int)
        }
        return action.model_copy(update={"arguments": {**action.arguments, **moved}}) if moved else action

    def decision(self, decision: Decision) -> Decision:
        """Give the same decision."""
        return decision.model_copy(update={"actions": tuple(map(self.action, decision.actions))})


def _moved(value: int, before: int, after: int) -> int:
    """Give the pixel that has the middle of another picture's pixel in it."""
    return value if before == after else (2 * value + 1) * after // (2 * before)


async def ask_by_picture(context: Context, run: Run, observation: Observation) -> Decision:
    """Operators: ask the model, as `ask_model` does, with the picture alone.

    What the surface tells of its controls stays with the step: it is compared before each action, and says what a
    secret was typed into.
    """
    seen = _picture_alone(observation)
    size = observation.picture_size
    shown = None if size is None else fitting_size(size)
    if size is None or shown is None or shown == size:
        return await ask_model(context, _told(run, None), seen)
    seen = seen.model_copy(update={"picture": await _scaled(context, run, observation, shown)})
    scale = _Scale((size[0], shown[0]), (size[1], shown[1]))
    decision = await ask_model(context, _told(run, scale), seen)
    return scale.back.decision(decision)


def _told(run: Run, scale: _Scale | None) -> Run:
    """Give a run as the model is told it: what is not in pictures is left out of earlier steps too."""
    return evolve(run, memory=tuple(_record(record, scale) for record in run.memory))


def _record(record: StepRecord, scale: _Scale | None) -> StepRecord:
    decision = record.decision if scale is None else scale.decision(record.decision)
    return record.model_copy(update={"observation": _picture_alone(record.observation), "decision": decision})


def _picture_alone(seen: Observation) -> Observation:
    return seen.model_copy(update={"controls": (), "text": "", "annotated": None})


async def _scaled(context: Context, run: Run, observation: Observation, size: Size) -> bytes | None:
    """Scale a picture, on a thread of the run's own; None for one that can't be read."""
    scaling = functools.partial(scaled, observation.picture or b"", size)
    try:
        return await context.services.lanes.run(f"pictures/{run.assign.address}", scaling)
    except PictureError:
        return None
