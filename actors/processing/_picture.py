"""Redact observations, label their pictures, and cut them.

Labels mark controls; the cut is to the look's budget.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from callboard.actors.commands import secrets_named
from callboard.actors.pictures import Drawn, PictureError, draw, only_pixels, require_pillow
from callboard.messages import Action, AgentStatus, Box, Look, Observation, SettingsError, each_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from callboard.actors.commands import BoundTool, Tools
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Control

    Strokes = Sequence[Sequence[tuple[int, int]]]

SHOWN = Look()
"""The purpose of a look at a surface without pictures."""
_FOCUSED = "focused"
"""One of `Control.states`: the control receives typed text."""
PASSWORD = "password"  # noqa: S105 - a control's state
"""One of `Control.states`: the control's content is secret."""


def purpose_of(context: Context, run: Run) -> Look:
    """Return the purpose of a look.

    The agent or a person decides on the look. All controls get labels. In SCREENSHOT only the controls that the model
    named get them, and when a person is asked only the controls of the actions in question.
    """
    if run.assign.target is None or not context.services.toolbox.surface(run.assign.target).pictures:
        return SHOWN
    return Look(annotate=_controls_to_label(run), masked=tuple(sorted({*_with_secrets(context, run)})))


def puts_secret(action: Action, tool: BoundTool | None) -> bool:
    """Return whether an argument of an action is secret or names one."""
    declared: frozenset[str] = frozenset() if tool is None else tool.place.declared
    return bool(secrets_named(action.arguments) or declared & action.arguments.keys())


def secret_controls(actions: Sequence[Action], tools: Tools, observation: Observation) -> set[str]:
    """Return the ids of the controls that actions put secrets into.

    They are the controls that such an action names. If it names none, as typed keys do, they are the focused controls
    and the controls of earlier actions, because a click moves the focus.
    """
    control_ids: set[str] = set()
    for number, action in enumerate(actions):
        if puts_secret(action, tools.get(action.tool)):
            focused = {control.id for control in observation.controls if _FOCUSED in control.states}
            earlier_controls = (_controls_named(earlier_action, observation) for earlier_action in actions[:number])
            control_ids |= _controls_named(action, observation) or focused.union(*earlier_controls)
    return control_ids


def _controls_named(action: Action, observation: Observation) -> set[str]:
    """Return the ids of the controls that an action names.

    Its arguments count, too.
    """
    ids, texts = {control.id for control in observation.controls}, set()

    def look(text: str) -> str:
        texts.add(text)
        return text

    each_text(action.arguments, look)
    return (texts & ids) | ({action.control.id} if action.control is not None else set())


async def presentable(context: Context, run: Run, look: Look, observation: Observation) -> Observation:
    """Redact an observation, label its picture, and cut it.

    The cut is to the look's budget.
    """
    secrets, redacted = context.services.secrets, observation
    if secrets.known:
        redactor = secrets.redactor(run.assign.task_id)
        redacted = redactor.redact(observation)
        hold = [
            redactor.long.text(f"{control.id}\n{control.kind}") != f"{control.id}\n{control.kind}"
            for control in redacted.controls
        ]
        if any(hold):
            shown_controls = tuple(control for control, holds in zip(redacted.controls, hold, strict=True) if not holds)
            note = f"{sum(hold)} controls are not shown: their ids or kinds hold a secret"
            redacted = redacted.model_copy(update={"controls": shown_controls, "notes": (*redacted.notes, note)})
    if observation.picture is not None or observation.annotated is not None:
        redacted = await _pictured(context, run, look, observation, redacted)
    return _bounded(redacted, look)


async def _pictured(
    context: Context, run: Run, look: Look, observation: Observation, redacted: Observation
) -> Observation:
    """Mask and label an observation's picture.

    A picture that may show a secret is removed.
    """
    shown_controls = {control.id: control for control in redacted.controls}
    private = {*look.masked, *_with_secrets(context, run)}
    private |= {control.id for control in observation.controls if shown_controls.get(control.id) != control}
    masked = [
        control
        for control in observation.controls
        if control.visible and (control.id in private or PASSWORD in control.states)
    ]
    chosen = [control for control in redacted.controls if control.id in look.annotate] or redacted.controls
    if context.is_operator:
        chosen = ()  # its model gets no labels; people see the points of the actions
    labels = {control.id: control.box for control in chosen if control.box is not None and control.visible}
    try:
        picture = _coverable(observation, redacted, masked, look)
        boxes = [control.box for control in masked if control.box is not None]
        drawing = functools.partial(_drawn, picture, boxes, labels, _strokes(run))
        clean, annotated = await _off_loop(context, run, drawing)
        return redacted.model_copy(update={"picture": clean, "annotated": annotated})
    except PictureError as error:
        note = f"the picture is not shown: {error}"
        return redacted.model_copy(update={"picture": None, "annotated": None, "notes": (*redacted.notes, note)})


def _off_loop(context: Context, run: Run, drawing: Callable[[], Drawn]) -> Awaitable[Drawn]:
    """Draw on the run's own thread.

    Drawing takes some tenths of a second.
    """
    return context.services.lanes.run(f"pictures/{run.assign.address}", drawing)


def _drawn(picture: bytes, masked: list[Box], labels: dict[str, Box], strokes: Strokes) -> Drawn:
    try:
        require_pillow("blacking out what must not be seen in a picture")
    except SettingsError as error:
        if masked:
            raise PictureError(str(error)) from error
        return Drawn(only_pixels(picture), None)
    return draw(picture, masked, labels, strokes)


def _coverable(observation: Observation, redacted: Observation, masked: list[Control], look: Look) -> bytes:
    """Return an observation's picture if every secret in it can be masked.

    Raises:
        PictureError: If a secret can't be masked, or the picture exceeds the budget.
    """
    if (observation.text, observation.window) != (redacted.text, redacted.window):
        msg = "the surface shows a secret, and where is not known"
        raise PictureError(msg)
    left_out = sorted({*look.masked} - {control.id for control in observation.controls})
    if left_out and len(observation.controls) >= look.budget.controls:
        msg = f"the control {left_out[0]}, which holds a secret, may be one of those that the surface left out"
        raise PictureError(msg)
    placeless = [control.id for control in masked if control.box is None or not control.box.width * control.box.height]
    if placeless:
        msg = f"where the control {placeless[0]}, which holds a secret, stands in it is not known"
        raise PictureError(msg)
    if observation.picture is None:
        msg = "the surface gave only one with labels of its own, in which nothing can be covered any more"
        raise PictureError(msg)
    if len(observation.picture) > look.budget.picture:
        msg = f"it has {len(observation.picture):,} bytes; at most {look.budget.picture:,} are taken"
        raise PictureError(msg)
    return observation.picture


def _bounded(observation: Observation, look: Look) -> Observation:
    """Cut an observation to the look's budget.

    A note about each cut is added.
    """
    budget, notes = look.budget, list(observation.notes)
    changes: dict[str, object] = {}
    if len(observation.controls) > budget.controls:
        changes["controls"] = observation.controls[: budget.controls]
        notes.append(f"{len(observation.controls) - budget.controls} more controls are not shown")
    if len(observation.text) > budget.text:
        changes["text"] = observation.text[: budget.text]
        notes.append(f"{len(observation.text) - budget.text} more characters of text are not shown")
    return observation.model_copy(update={**changes, "notes": tuple(notes)}) if changes else observation


def _controls_to_label(run: Run) -> tuple[str, ...]:
    """Return the ids of the controls to label; empty for all."""
    if run.status == AgentStatus.SCREENSHOT and run.records:
        named = {*run.records[-1].decision.reannotate}
        earlier_controls = run.records[-1].observation.controls
        return tuple(named | {control.id for control in earlier_controls if control.name in named})
    return tuple(controls_in_question(run))


def controls_in_question(run: Run) -> list[str]:
    """Return the ids of the controls that a person is asked about."""
    return [action.control.id for action in _actions_in_question(run) if action.control is not None]


def _strokes(run: Run) -> Strokes:
    """Return the points that a person is asked about, grouped by action."""
    return [action.points for action in _actions_in_question(run) if action.points]


def _actions_in_question(run: Run) -> tuple[Action, ...]:
    """Return the actions that a person is asked about."""
    if run.unfinished is not None:
        intent = run.unfinished.intent
        if intent is None:
            return ()
        return (Action(tool=intent.tool, arguments=intent.arguments, control=intent.control),)
    if run.status == AgentStatus.CONFIRM:
        return run.held
    return run.records[-1].decision.actions if run.status == AgentStatus.PENDING and run.records else ()


async def picture_before(context: Context, run: Run, now: Observation) -> bytes | None:
    """Draw the picture that the agent decided on.

    The controls in question are labelled. Returns None if the decision had no picture or the picture is unchanged.
    """
    unfinished = run.unfinished
    decided = unfinished.decided.observation if unfinished is not None and unfinished.decided is not None else None
    old_observation = decided or (run.memory[-1].observation if run.memory else None)
    if old_observation is None or old_observation.picture in {None, now.picture}:
        return None
    control_ids = controls_in_question(run)
    chosen = {
        control.id: control.box
        for control in old_observation.controls
        if control.id in control_ids and control.box is not None
    }
    try:
        drawing = functools.partial(_drawn, old_observation.picture, [], chosen, _strokes(run))
        clean, annotated = await _off_loop(context, run, drawing)
    except PictureError:  # a damaged picture, taken while Pillow was not installed
        return None
    return annotated or clean


def _with_secrets(context: Context, run: Run) -> Iterator[str]:
    """Yield the ids of the controls that hold secrets.

    The secrets are those of this or another open task. The controls of the run itself come from its journalled steps,
    so that they survive a crash.
    """
    target = run.assign.target
    yield from context.services.secrets.covered("" if target is None else target.native.id)
    tools = context.services.toolbox.actions(context.kind, target)
    done = [(record.decision.actions, record.observation) for record in run.records]
    if run.unfinished is not None and run.unfinished.decided is not None:
        done.append((run.unfinished.decided.actions, run.unfinished.decided.observation))
    for actions, step_observation in done:
        yield from secret_controls(actions, tools, step_observation)
