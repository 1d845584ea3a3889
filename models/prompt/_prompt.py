"""Write the prompt of a `ModelRequest`; untrusted text is fenced as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import Board, TargetKind, agent_kind
from callboard.models._references import References
from callboard.models.prompt._answer_schema import offered_tools, own_steps
from callboard.models.prompt._fence import cut, fenced, tamed, written
from callboard.models.prompt._judge_prompt import JUDGE, judge_parts
from callboard.models.prompt._labels import labelled
from callboard.models.prompt._prompt_budget import bounded, steps, subtasks
from callboard.models.prompt._prompt_tail import prompt_tail
from callboard.models.prompt._skill_parts import skills_read
from callboard.models.prompt._system import system_of
from callboard.models.prompt._tool_docs import not_now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from callboard.messages import Control, Target
    from callboard.models._model import ModelRequest
    from callboard.models.prompt._prompt_budget import PromptHistory


CHARACTERS = 4
"""Approximate number of characters per token, for estimates and limits."""
PICTURE = 1500
"""Approximate number of tokens per picture."""
MOST_ANSWERED = 4
"""Maximum number of pictures from tools in a prompt."""
_KINDS = {Board.REQUESTS: "earlier request of", Board.QUESTIONS: "answer of", Board.NOTES: "note of"}


@dataclass(frozen=True)
class Prompt:
    """A request as text and pictures."""

    system: str
    """The part that does not change between steps."""
    user: tuple[str | bytes, ...]
    """Texts and PNG pictures in order: first the part that grows, then the part that is new at each step."""
    summarised: int = 0
    """Number of earlier steps and subtasks cut to one line."""
    dropped: int = 0
    """Number of earlier steps and subtasks left out."""

    @property
    def tokens(self) -> int:
        """The approximate number of tokens."""
        texts = len(self.system) + sum(len(part) for part in self.user if isinstance(part, str))
        return texts // CHARACTERS + 1 + PICTURE * sum(isinstance(part, bytes) for part in self.user)


def prompt_of(
    request: ModelRequest, *, pictures: bool = True, short: bool = False, actions: int | None = None
) -> Prompt:
    """Write the prompt for a request.

    Args:
        request: The request to the model.
        pictures: Whether the model accepts pictures.
        short: Whether to list data by reference only, to give examples with the tools at hand, to leave out what is
            false or empty, and to suggest the next action.
        actions: The maximum number of actions in an answer, if the prompt has to state it.
    """
    if request.evidence is not None:
        return Prompt(JUDGE, tuple(judge_parts(request.evidence, request.reasons, pictures=pictures)))
    skill_sections, request = skills_read(request)
    room, named = request.history_tokens * CHARACTERS, References(request.memory, request.subtasks).parts()
    passed_on = named if short and not request.is_host else ()  # a HostAgent sees the data nowhere else
    subtask_history = subtasks(request, room // 2, passed_on)
    history = steps(request, room - subtask_history.characters)
    first_text = "\n\n".join(
        (
            *_request_section(request),
            *skill_sections,
            *_shared(request),
            *_history_sections(subtask_history, history, host=request.is_host),
            *_observation_sections(request, short=short),
            *_references(request, named),
        )
    )
    observation = request.observation
    picture = (None if request.is_operator else observation.annotated) or observation.picture if pictures else None
    picture_parts: tuple[str | bytes, ...] = () if picture is None else (_pictured(request), picture)
    picture_parts += tuple(_answered(request)) if pictures else ()
    last_text = "\n\n".join(prompt_tail(request, short=short))
    if actions is not None:
        last_text += f" Put at most {actions} action{'' if actions == 1 else 's'} into it."
    summarised, dropped = subtask_history.summarised + history.summarised, subtask_history.dropped + history.dropped
    return Prompt(system_of(request, short=short), (first_text, *picture_parts, last_text), summarised, dropped)


def _pictured(request: ModelRequest) -> str:
    """Introduce the picture; an operator needs its size to choose points."""
    size = request.observation.picture_size
    if not request.is_operator or size is None:
        return "The picture shows the same:"
    return f"The picture has {size[0]} x {size[1]} pixels; x counts from its left edge, y from its upper one:"


def _answered(request: ModelRequest) -> Iterator[str | bytes]:
    """Yield the pictures that tools returned in the latest step."""
    results = [result for record in own_steps(request)[-1:] for result in record.results]
    pictures = [picture for result in results for picture in result.pictures][:MOST_ANSWERED]
    if pictures:
        yield "Pictures that the latest actions returned, in their order:"
        yield from pictures


def _request_section(request: ModelRequest) -> Iterator[str]:
    if request.is_host:
        yield f"## The request\n\n{tamed(request.request)}"
    else:
        if request.task_request not in {"", request.request}:
            yield f"## The user's request, of which others do other parts\n\n{tamed(request.task_request)}"
        yield f"## Your subtask, and no more than that\n\n{tamed(request.request)}"
    if request.output_schema is not None:
        schema = tamed(written(request.output_schema))
        yield f"## The result\n\nWith FINISH, Result is a JSON value that fits this JSON Schema:\n\n{schema}"
    if request.plan and not request.memory:  # else the history shows it with its step and the results
        lines = "\n".join(f"- {' '.join(line.split())}" for line in request.plan)
        yield f"## Your plan so far\n\n{fenced(lines)}"


def _shared(request: ModelRequest) -> Iterator[str]:
    """Format the shared entries: earlier requests, people's answers and notes."""
    newest = [
        f"- {_KINDS[note.board]} {written(note.author)}: {' '.join(note.text.split())}"
        for note in reversed(request.observation.shared)
    ]
    if newest:
        lines = list(bounded(newest, request.history_tokens * CHARACTERS // 4))
        yield "## What all agents of this task know\n\n" + fenced("\n".join(reversed(lines)))


def _history_sections(subtask_history: PromptHistory, done: PromptHistory, *, host: bool) -> Iterator[str]:
    if subtask_history.lines:
        gone = f"({subtask_history.dropped} earlier subtasks are not shown)\n" if subtask_history.dropped else ""
        outcomes = fenced(gone + "\n".join(subtask_history.lines))
        where = (
            "" if host else "It is not in your window: what your subtask needs of it there, you have to put there.\n\n"
        )
        yield f"## What earlier subtasks left\n\n{where}{outcomes}"
    if done.lines:
        gone = f"({done.dropped} earlier steps are not shown)\n" if done.dropped else ""
        yield "## Your steps so far\n\n" + fenced(gone + "\n".join(done.lines))


def _observation_sections(request: ModelRequest, *, short: bool) -> Iterator[str]:
    observation, room = request.observation, request.observation_tokens * CHARACTERS
    if request.is_host:
        started = {
            application.address.split("/")[1]: application.name
            for application in observation.targets
            if application.kind is TargetKind.APPLICATION
        }
        targets = [
            _target(label, target, started, request.picture_kinds)
            for label, target in labelled(observation.targets).items()
        ]
        yield "## The targets that there are\n\n" + fenced("\n".join(bounded(targets, room)) or "none")
        desktop = [cut(written(observation.window), room // 4)] if observation.window else []
        desktop += [cut(observation.text, room // 4)] if observation.text else []
        if desktop:
            yield "## What the desktop shows\n\n" + fenced("\n".join(desktop))
        return
    lines: list[str] = []
    if request.target is not None:
        lines.append(f"{request.target.kind.value} {written(request.target.name)}")
    if observation.window:
        lines.append(cut(written(_telling(observation.window) if short else observation.window), room // 4))
    if request.is_operator:
        lines.append(
            "the picture below" if observation.picture is not None else "no picture: nothing can be pointed at now"
        )
        yield "## What you see now\n\n" + fenced("\n".join(lines))
        return
    controls = [_control(label, control, short=short) for label, control in labelled(observation.controls).items()]
    if controls:
        lines += ["controls:", *bounded(controls, room if not observation.text else room // 2)]
    if observation.text:
        lines += ["text:", cut(observation.text, room // 2)]
    if not controls and not observation.text:
        lines.append("no controls")
    yield "## What you see now\n\n" + fenced("\n".join(lines))
    usable = offered_tools(request)
    later = [tool for tool in request.tools if tool not in usable]
    if later and not short:  # small models call the tool that it says comes first, whatever they are asked for
        yield f"These tools can't be called yet:\n\n{not_now(later, usable)}"


def _references(request: ModelRequest, named: Mapping[str, JsonValue]) -> Iterator[str]:
    """List the data that can be passed on by reference."""
    lines = [f"- {written(name)}: {_amount(value)}" for name, value in named.items()]
    if lines:
        text = "\n".join(bounded(lines, request.history_tokens * CHARACTERS // 4))
        yield (
            "## Data that you can pass on\n\nWhere an argument needs all of one of these, its name is the whole value "
            f"of the argument; the tool gets the data. Don't copy them.\n\n{fenced(text)}"
        )


def _amount(value: JsonValue) -> str:
    if not isinstance(value, list):
        return f"a text of {len(str(value))} characters, {cut(written(value), 60)}"
    rows = bool(value) and all(isinstance(item, list) for item in value)
    return f"{len(value)} {'rows' if rows else 'items'}, the first {cut(written(value[0]), 120)}"


def _target(label: str, target: Target, started: Mapping[str, str], picture_kinds: frozenset[str]) -> str:
    at = "" if label == target.id else f" (id {written(target.id)})"
    root = target.address.split("/")[1]
    what = {
        TargetKind.WINDOW: f"open in {written(started.get(root, root))}",
        TargetKind.APPLICATION: "to make something new",
    }
    pictured = agent_kind(target.address) in picture_kinds
    how = ", by its picture alone: for what can't be done otherwise" if pictured else ""
    return f"- {written(label)}: {what.get(target.kind, target.kind)}{how}{_opening_parameters(target)}{at}"


def _opening_parameters(target: Target) -> str:
    """Describe the parameters for opening an application."""
    properties = target.takes.get("properties")
    if not isinstance(properties, dict) or not properties:
        return ""
    descriptions = (
        f"{name} ({part['description']})" if isinstance(part, dict) and part.get("description") else name
        for name, part in properties.items()
    )
    return f", opened with {cut(' '.join(', '.join(descriptions).split()), 300)}"


def _telling(facts: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Leave out facts that are false or empty."""
    return {key: value for key, value in facts.items() if value or (value == 0 and value is not False)}


def _control(label: str, control: Control, *, short: bool) -> str:
    more = [] if label == control.id else [f"id {control.id}"]
    more += [] if control.enabled else ["disabled"]
    more += [] if control.visible else ["not visible"]
    more += control.states
    detail = _telling(control.detail) if short else control.detail
    more += [f"{key} {cut(written(value), 300)}" for key, value in detail.items()]
    remarks = f" ({', '.join(more)})" if more else ""
    return f"- {written(label)}: {control.kind}{remarks}"
