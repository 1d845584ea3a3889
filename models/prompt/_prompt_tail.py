"""Write the end of a prompt, which models heed most.

It has remarks, progress and the request.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from callboard.messages import AgentStatus, Effect, ResultStatus
from callboard.models._responses import AppResponse
from callboard.models.prompt._answer_schema import legal_statuses, offered_tools, own_steps, own_subtasks
from callboard.models.prompt._fence import cut, fenced, tamed, written
from callboard.models.prompt._labels import labelled
from callboard.models.prompt._short import (
    NEGATION,
    asks_change,
    asks_question,
    existing_things,
    likely_tools,
    postponed,
)
from callboard.models.prompt._tool_docs import MAKING, either, lowered, makes, needed, singular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.messages import CommandResult, Observation, StepRecord
    from callboard.models._model import ModelRequest
    from callboard.models.prompt._labels import Named


_LATEST = 8
"""Maximum number of results repeated at the end, and of new objects listed there."""
_OUTCOMES = {
    ResultStatus.SUCCESS: "it succeeded",
    ResultStatus.FAILURE: "it FAILED",
    ResultStatus.SKIPPED: "it was not run",
    ResultStatus.NONE: "there was nothing to do",
    ResultStatus.DRY_RUN: "it was not executed, since this is a dry run: it counts as done",
}

_WORD = re.compile(r"[^\W\d_]{3,}")
_SEVERAL = re.compile(r"\b(?:all|both|each|every|several|two|three|four|five|six|seven|eight|nine|ten|\d+)\b")
_JSON = "Answer with one JSON object."


def prompt_tail(request: ModelRequest, *, short: bool = False) -> Iterator[str]:
    """Yield the last sections of a prompt.

    A `short` one suggests the next action.
    """
    if request.observation.notes:
        notes = "\n".join(f"- {cut(note, 1000)}" for note in request.observation.notes)
        yield "## Remarks on your last step\n\n" + fenced(notes)
    if request.reasons:
        reasons = "\n".join(f"- {cut(reason, 1500)}" for reason in request.reasons)
        yield "## Your last answer could not be used\n\nPut this right:\n\n" + fenced(reasons)
    host = request.is_host
    done, what = _done(request), "the request" if host else "your subtask"
    yield f"Done so far, in this order:\n\n{fenced(done)}" if done else "Done so far: nothing."
    legal = legal_statuses(request, short=short)
    refused = [status for status in request.statuses if status not in legal]
    if refused:
        yield f"Status can't be {either(refused)} now."
    hints = "".join(f"{hint}\n" for hint in _hints(request, what, done, short=short))
    request_text = tamed(written(cut(request.request, 500)))
    yield f"Decide about {what}, whether it is done, or what comes next: {request_text}\n{hints}{_JSON}"


def _hints(request: ModelRequest, what: str, done: str, *, short: bool) -> Iterator[str]:
    """Yield hints.

    A small model also gets hints derived from its subtask's text.
    """
    results = [result for record in own_steps(request) for result in record.results]
    subtask_tools = _SubtaskTools(request, results) if short else None
    reads = {tool.name for tool in request.tools if tool.effect is Effect.READ}
    if request.is_host and not own_subtasks(request):
        yield "What is open has something in it. A new one is empty: there is nothing to read in it."
    if subtask_tools is not None and subtask_tools.named and not done:
        yield f"The words of {what} fit {either(subtask_tools.named)}: call that, with what {what} says."
    if done:
        yield "What succeeded is not done again."
    if results and results[-1].status is ResultStatus.FAILURE:
        yield "The last call FAILED: what it was for is not done."
        if short and not request.is_host:
            yield "Your steps tell why it FAILED: call it again without that mistake, or call another tool."
    elif done and subtask_tools is not None and subtask_tools.missed:
        yield f"Not called yet: {', '.join(tool.name for tool in subtask_tools.missed)}.{subtask_tools.next}"
    elif (
        done
        and AgentStatus.FINISH in legal_statuses(request)
        and not (subtask_tools is not None and subtask_tools.failed)
    ):
        if subtask_tools is None or request.is_host:
            yield f"If nothing of {what} is missing any more: FINISH."
        elif subtask_tools.writes and asks_change(request) and all(result.tool in reads for result in results):
            yield f"So far you only read, and changed nothing. Next is {either(subtask_tools.writes)}."
        else:  # worded for copying, because small models repeat it
            were = "were" if subtask_tools.made[1:] else "was"
            called = (
                f"{' and '.join(subtask_tools.made)} {were} called, and succeeded: that is done. "
                if subtask_tools.made
                else ""
            )
            yield f"{called}If {what} asks for nothing else, it is done, and nothing is missing: FINISH."
            yield from _handed_over(request)
    yield from subtask_tools.later() if subtask_tools is not None else ()


def _handed_over(request: ModelRequest) -> Iterator[str]:
    """Suggest the form of a result for small models."""
    if asks_question(request):
        yield "It asks a question: with FINISH, Result is the answer to it, in words, from what was read."
        return
    reads = {tool.name for tool in request.tools if tool.effect is Effect.READ}
    for number, record in reversed(list(enumerate(request.memory, 1))[len(request.memory) - request.step + 1 :]):
        for index, result in enumerate(record.results):
            if result.tool in reads and result.status is ResultStatus.SUCCESS and result.value is not None:
                yield f'With FINISH, Result "${{steps.{number}.results.{index}.value}}" hands over all that it read.'
                return


def _done(request: ModelRequest) -> str:
    """Summarise the results; small models overlook the middle of a prompt."""
    if request.is_host:
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
    """Describe a call by its tool.

    An only call is described with its control.
    """
    control = record.decision.actions[0].control if len(record.decision.actions) == 1 else None
    return result.tool if control is None else f"{result.tool} on {cut(written(control.name or control.id), 100)}"


def _new(request: ModelRequest) -> Iterator[str]:
    """List the objects created since the agent began.

    If there are too many, none is listed.
    """
    steps = own_steps(request)
    if not steps:
        return
    old_things, new_things = _named(steps[0].observation), _named(request.observation)
    old_names = {(kind, thing.name or thing.id) for thing, kind in old_things.values()}  # ids may be counters
    labels = [
        f"{written(label)} ({kind})"
        for label, (thing, kind) in new_things.items()
        if (kind, thing.name or thing.id) not in old_names
    ]
    if 0 < len(labels) <= _LATEST:
        yield f"- new since then: {', '.join(labels)}"


class _SubtaskTools:
    """The tools that create the objects named in a subtask.

    They are grouped by outcome. A name is easily mistaken for an object, such as a table called Chart for a chart.
    Objects that several tools create are ignored, because the intended tool is unknown; so is a subtask with a
    negation, which may concern the object.
    """

    def __init__(self, request: ModelRequest, results: Sequence[CommandResult]) -> None:
        """Find the tools by the words of an AppAgent's subtask."""
        text = lowered(request.request)
        words = set(_WORD.findall(text))
        self._wants = bool(words & (MAKING - {"new"}))
        makers = [tool for tool in request.tools if tool.effect is not Effect.READ and makes(tool.name)]
        often = Counter(thing for tool in makers for thing in makes(tool.name))
        things = {singular(word) for word in words if often[singular(word)] == 1}
        things -= existing_things(request, things)
        applies = issubclass(request.response, AppResponse) and not NEGATION.search(text)
        asks = self._wants or bool(request.subtasks)  # "sort the table" asks for none, but data may be waiting for one
        wanted_tools = [tool for tool in makers if applies and asks and makes(tool.name) & things]
        kinds = {singular(control.kind.casefold()) for control in request.observation.controls}
        done, tried = {r.tool for r in results if r.status is ResultStatus.SUCCESS}, {r.tool for r in results}
        self.missed = [tool for tool in wanted_tools if tool.name not in tried and makes(tool.name) & things - kinds]
        """Tools that were not called and whose object does not exist."""
        self.failed = [tool for tool in wanted_tools if tool.name in tried - done]
        successful_tools = [tool.name for tool in wanted_tools if tool.name in done and makes(tool.name) & words]
        self.made = successful_tools if len(successful_tools) == len(wanted_tools) and not _SEVERAL.search(text) else []
        """Tools that created all named objects, if the subtask names one of each."""

        self._usable = offered_tools(request)
        likely = [tool for tool in likely_tools(request) if tool in self._usable] if applies else []
        later = postponed(request)
        self._makers = self._usable if later is None else likely
        self.named = [tool.name for tool in likely] if later is None else []
        """Tools that can be called, and that the subtask's words fit."""
        self.writes = [tool.name for tool in likely if tool.effect is not Effect.READ and not makes(tool.name) & kinds]
        """Those that change something, without makers of things that exist."""

    @property
    def next(self) -> str:
        """A hint at the next tool, if it is certain."""
        sure = self._wants and len(self.missed) == 1 and self.missed[0] in self._usable
        return f" Next is {self.missed[0].name}." if sure else ""

    def later(self) -> Iterator[str]:
        """Yield the requirements of the tools that can't be called yet."""
        missed = (tool for tool in self.missed if tool not in self._usable)
        yield from (f"{tool.name} comes later: {needed(tool, self._makers)}" for tool in missed)


def _named(observation: Observation) -> dict[str, tuple[Named, str]]:
    """Return the observed controls and targets with their kinds, by label."""
    controls: dict[str, tuple[Named, str]] = {
        label: (thing, thing.kind) for label, thing in labelled(observation.controls).items()
    }
    return controls | {label: (thing, thing.kind) for label, thing in labelled(observation.targets).items()}
