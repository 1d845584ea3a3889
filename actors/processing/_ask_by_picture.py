"""LLM_INTERACTION of an operator: the model sees only the picture.

Providers scale large pictures down, and their models answer in pixels of the scaled picture. Therefore a large picture
is scaled here to a size that no provider changes, and points are converted back into the target's pixels.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.pictures import PictureError, fitting_size, scaled
from callboard.actors.processing._decide import ask_model
from callboard.actors.states import evolve

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Decision, Observation, StepRecord

    Size = tuple[int, int]


class _Scale(NamedTuple):
    """Conversion of points between two sizes of the same picture."""

    width: Size
    """The width before and after scaling."""
    height: Size

    @property
    def back(self) -> _Scale:
        return _Scale(self.width[::-1], self.height[::-1])

    def action(self, action: Action) -> Action:
        """Return the action with its points scaled."""
        names = (("x", self.width), ("to_x", self.width), ("y", self.height), ("to_y", self.height))
        moved = {
            name: _scaled_pixel(value, *sizes)
            for name, sizes in names
            if action.points and isinstance(value := action.arguments.get(name), int)
        }
        return action.model_copy(update={"arguments": {**action.arguments, **moved}}) if moved else action

    def decision(self, decision: Decision) -> Decision:
        """Return the decision with the points of its actions scaled."""
        return decision.model_copy(update={"actions": tuple(map(self.action, decision.actions))})


def _scaled_pixel(value: int, old_size: int, new_size: int) -> int:
    """Return the pixel that contains the centre of the other picture's pixel."""
    return value if old_size == new_size else (2 * value + 1) * new_size // (2 * old_size)


async def ask_by_picture(context: Context, run: Run, observation: Observation) -> Decision:
    """Ask an operator's model, as `ask_model` does, with only the picture.

    The step keeps the list of controls: it is compared before each action, and shows which control got a secret.
    """
    picture_observation = _picture_alone(observation)
    size = observation.picture_size
    shown_size = None if size is None else fitting_size(size)
    if size is None or shown_size is None or shown_size == size:
        return await ask_model(context, _by_picture(run, None), picture_observation)
    try:
        scaling = functools.partial(scaled, observation.picture or b"", shown_size)
        picture = await context.services.lanes.run(f"pictures/{run.assign.address}", scaling)
    except PictureError:
        picture = None
    picture_observation = picture_observation.model_copy(update={"picture": picture})
    scale = _Scale((size[0], shown_size[0]), (size[1], shown_size[1]))
    decision = await ask_model(context, _by_picture(run, scale), picture_observation)
    return scale.back.decision(decision)


def _by_picture(run: Run, scale: _Scale | None) -> Run:
    """Return the run for the model's request.

    Earlier steps, too, are reduced to their pictures.
    """
    return evolve(run, memory=tuple(_record(record, scale) for record in run.memory))


def _record(record: StepRecord, scale: _Scale | None) -> StepRecord:
    decision = record.decision if scale is None else scale.decision(record.decision)
    return record.model_copy(update={"observation": _picture_alone(record.observation), "decision": decision})


def _picture_alone(observation: Observation) -> Observation:
    return observation.model_copy(update={"controls": (), "text": "", "annotated": None})
