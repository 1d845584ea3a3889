"""Values of a task that may differ from run to run."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from callboard.messages import RoutineError
from callboard.routines._origins import parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from callboard.messages import Target
    from callboard.routines._journaled_task import JournaledTask

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_FORMS = {
    "text": r"\"([^\"\n]{1,80})\"|“([^”\n]{1,80})”|„([^“”\n]{1,80})[“”]|«([^»\n]{1,80})»|(?<!\w)'([^'\n]{1,80})'(?!\w)",
    "email": r"([\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
    "date": r"(?<![\w-])(\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?![\w-])",
    "month": rf"(?<![\w-])((?:{_MONTHS}) \d{{4}}|Q[1-4] \d{{4}}|\d{{4}}-\d{{2}})(?![\w-])",
    "file": r"(?<![\w/.-])([\w(][\w()/-]*(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{1,4})(?![\w-])",
    "amount": r"(?:[€$£] ?(\d[\d.,]*\d|\d))|(?:(\d[\d.,]*\d|\d) ?(?:[€$£]|EUR|USD|GBP|euros?|dollars?)(?!\w))",
}
"""The forms of values in requests, by the name of a parameter."""


def documents_in(task: JournaledTask, given: Mapping[str, str]) -> dict[str, str]:
    """Name the documents of a task that existed before it."""
    names = _names_of_documents(task)
    taken = {value: name for name, value in given.items()}
    documents: dict[str, str] = {}
    for document in names:
        number = len(documents) + 1
        name = "source" if number == 1 else f"source{number}"
        while name in given and document not in taken:
            number += 1
            name = f"source{number}"
        documents[taken.get(document, name)] = document
    return documents


def _names_of_documents(task: JournaledTask) -> list[str]:
    """List them in the order of their first use."""
    existing: dict[str, None] = {}
    host = task.host
    if host is not None and host.steps:
        existing |= dict.fromkeys(_documents(host.steps[0].record.observation.targets))
    elif task.subtasks[0].assign.target is not None:
        existing |= dict.fromkeys(_documents((task.subtasks[0].assign.target,)))
    targets = [run.assign.target for run in task.subtasks if run.assign.target is not None]
    texts = [*_documents(tuple(targets)), *_arguments(task)]
    made = {path.replace("\\", "/") for path in task.result.made}
    return [
        name
        for name in dict.fromkeys(texts)
        if name in existing and not any(path.endswith(f"/{name}") for path in made)
    ]


def _documents(targets: tuple[Target, ...]) -> Iterator[str]:
    for target in targets:
        document = target.binds.get("document")
        if isinstance(document, str):
            yield document


def _arguments(task: JournaledTask) -> Iterator[str]:
    for run in task.runs:
        for step in run.steps:
            for action, _ in step.calls:
                yield from (value for _, value in parts("", action.arguments) if isinstance(value, str))


def answered(task: JournaledTask, given: Mapping[str, str]) -> dict[str, str]:
    """Make a parameter of each answer of a person.

    Raises:
        RoutineError: If an answer is in no later argument: then it decided on the work in a way that nothing shows.
    """
    arguments = set(_arguments(task))
    answers: dict[str, str] = {}
    for question, answer in task.answers:
        if answer in {*given.values(), *answers.values()}:
            continue
        if answer not in arguments:
            msg = (
                f"the task {task.task.id} asked a person {question!r}, and the answer {answer!r} is in no argument of "
                "an action: a routine could not ask again. Run the task with the answer in its request first"
            )
            raise RoutineError(msg)
        names = ("answer" if number == 1 else f"answer{number}" for number in itertools.count(1))
        answers[next(name for name in names if name not in {*given, *answers})] = answer
    return answers


def proposed_parameters(task: JournaledTask, request: str, taken: Mapping[str, str]) -> dict[str, str]:
    """Propose values of the request as parameters.

    They also occur in an argument, a target or a check.
    """
    checks = [value for check in task.task.all_checks for _, value in parts("", check.model_dump(mode="json"))]
    texts = [
        *_arguments(task),
        *(run.assign.target.id for run in task.subtasks if run.assign.target is not None),
        *(value for value in checks if isinstance(value, str)),
    ]
    proposals: dict[str, str] = {}
    for name, form in _FORMS.items():
        for match in re.finditer(form, request):
            value = next(group for group in match.groups() if group)
            if value in {*taken.values(), *proposals.values()} or not _occurs(value, texts):
                continue
            number, free = 2, name
            while free in taken or free in proposals:
                free, number = f"{name}{number}", number + 1
            proposals[free] = value
    return proposals


def _occurs(value: str, texts: list[str]) -> bool:
    edges = re.compile(rf"(?<![\w-]){re.escape(value)}(?!\.?[\w-])")
    return any(edges.search(text) for text in texts)
