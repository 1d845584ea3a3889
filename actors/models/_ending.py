"""The end of a prompt, heeded most of all: remarks, what was done, in short, and what is asked once more."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from callboard.actors.models._fence import cut, fenced, tamed, written
from callboard.actors.models._labels import labelled
from callboard.actors.models._manual import either, makes, needed, singular
from callboard.actors.models._schema import legal_statuses, offered_tools, own_steps, own_subtasks
from callboard.messages import AgentKind, Effect, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.models._labels import Named
    from callboard.actors.models._model import ModelRequest, ToolInfo
    from callboard.messages import CommandResult, Observation, StepRecord

_LATEST = 8
"""So many of the things that were done are told once more at the end."""
_OUTCOMES = {
    ResultStatus.SUCCESS: "it succeeded",
    ResultStatus.FAILURE: "it FAILED",
    ResultStatus.SKIPPED: "it was not run",
    ResultStatus.NONE: "there was nothing to do",
}

_NOT = re.compile(r"\b(?:no|not|never|nothing|without)\b|n[’']t\b", re.IGNORECASE)  # noqa: RUF001 - as people write it
_JSON = "Answer with one JSON object."


def ending(request: ModelRequest, *, short: bool = False) -> Iterator[str]:
    """Write what stands last in a prompt; in a `short` one, what seems to come next is said, and not just hinted at."""
    if request.observation.notes:
        notes = "\n".join(f"- {cut(note, 1000)}" for note in request.observation.notes)
        yield "## Remarks on your last step\n\n" + fenced(notes)
    if request.reasons:
        reasons = "\n".join(f"- {cut(reason, 1500)}" for reason in request.reasons)
        yield "## Your last answer could not be used\n\nPut this right:\n\n" + fenced(reasons)
    host = request.kind is AgentKind.HOST
    done, what = _done(request), "the request" if host else "your subtask"
    yield f"Done so far, in this order:\n\n{fenced(done)}" if done else "Done so far: nothing."
    legal = legal_statuses(request)
    refused = [status for status in request.statuses if status not in legal]
    if refused:
        yield f"Status can't be {either(refused)} now."
    hints = "".join(f"{hint}\n" for hint in _hints(request, what, done, short=short))
    asked = tamed(written(cut(request.request, 500)))
    yield f"Decide about {what}, whether it is done, or what comes next: {asked}\n{hints}{_JSON}"


def _hints(request: ModelRequest, what: str, done: str, *, short: bool) -> Iterator[str]:
    """Say what is to be weighed."""
    results = [result for record in own_steps(request) for result in record.results]
    missed, usable = _missed(request), offered_tools(request)
    if done:
        yield "What succeeded is not done again."
    if results and results[-1].status is ResultStatus.FAILURE:
        yield "The last call FAILED: what it was for is not done."
    elif done and missed:
        first = next((f" Next is {tool.name}." for tool in missed if tool in usable and short), "")
        yield f"Not called yet: {', '.join(tool.name for tool in missed)}.{first}"
    elif done:
        made = _made(request)
        called = (
            f"{' and '.join(made)} {'were' if made[1:] else 'was'} called, and succeeded: that is done. "
            if made
            else ""
        )
        yield f"{called}If {what} asks for nothing else, it is done, and nothing is missing: FINISH."
    yield from (f"{tool.name} comes later: {needed(tool, usable)}" for tool in missed if tool not in usable)


def _done(request: ModelRequest) -> str:
    """Say in short what was done, at the end of a prompt: what stands in its middle is overlooked by small models."""
    if request.kind is AgentKind.HOST:
        lines = [
            f"- subtask {done.number}, {cut(written(done.request), 200)}: {done.outcome.value}"
            for done in own_subtasks(request)
        ]
    else:
        lines = []
    first = len(request.memory) - request.step + 2
    lines += [
        f"- step {number}: {_called(result, record)}, {_OUTCOMES.get(result.status, '')}"
        for number, record in enumerate(own_steps(request), first)
        for result in record.results
    ]
    return "\n".join([*lines[-_LATEST:], *_new(request)])


def _called(result: CommandResult, record: StepRecord) -> str:
    """Name a call by its tool, and by its control if the step had no other call."""
    control = record.decision.actions[0].control if len(record.decision.actions) == 1 else None
    return result.tool if control is None else f"{result.tool} on {cut(written(control.name or control.id), 100)}"


def _new(request: ModelRequest) -> Iterator[str]:
    """Tell what there is that was not there when the agent began; no more than a few."""
    steps = own_steps(request)
    if not steps:
        return
    before, now = _there(steps[0].observation), _there(request.observation)
    known = {(kind, thing.name or thing.id) for thing, kind in before.values()}  # ids may count what is there
    made = [
        f"{written(label)} ({kind})"
        for label, (thing, kind) in now.items()
        if (kind, thing.name or thing.id) not in known
    ]
    if 0 < len(made) <= _LATEST:
        yield f"- new since then: {', '.join(made)}"


def _missed(request: ModelRequest) -> list[ToolInfo]:
    """Give the tools that make what the subtask names, where they were not called, and there is nothing such.

    What has the name of a thing is easily taken for the thing: a table called Chart for a chart.
    """
    there = {singular(control.kind.casefold()) for control in request.observation.controls}
    called = {result.tool for record in own_steps(request) for result in record.results}
    return [tool for tool in _meant(request) if tool.name not in called and not makes(tool.name) & there]


def _made(request: ModelRequest) -> list[str]:
    """Name the tools that make what the subtask names, and that did."""
    succeeded = {
        result.tool
        for record in own_steps(request)
        for result in record.results
        if result.status is ResultStatus.SUCCESS
    }
    return [tool.name for tool in _meant(request) if tool.name in succeeded]


def _meant(request: ModelRequest) -> list[ToolInfo]:
    """Give the tools that make what the subtask names.

    Where several tools make it nobody knows which one is meant; and where something is not to be done, whether it is
    this.
    """
    if request.kind is not AgentKind.APP or _NOT.search(request.request):
        return []
    makers = [tool for tool in request.tools if tool.effect is not Effect.READ and makes(tool.name)]
    words = {singular(word) for word in re.findall(r"[^\W\d_]{3,}", request.request.casefold())}
    often = Counter(thing for tool in makers for thing in makes(tool.name))
    return [tool for tool in makers if any(often[thing] == 1 for thing in makes(tool.name) & words)]


def _there(seen: Observation) -> dict[str, tuple[Named, str]]:
    """Give what was seen by its label, with its kind."""
    controls: dict[str, tuple[Named, str]] = {
        label: (each, each.kind) for label, each in labelled(seen.controls).items()
    }
    return controls | {label: (each, each.kind.value) for label, each in labelled(seen.targets).items()}
