"""Print tasks, results and replays for a person."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from pydantic import JsonValue, TypeAdapter
from rich import box
from rich.table import Table
from rich.text import Text

from callboard.actors.processing import named_agents
from callboard.actors.replay import RecordedTask, replay
from callboard.config import Settings
from callboard.history import cut, failed_checks, numbered, plain, proposals, used, verdict
from callboard.journal import JournalReader
from callboard.messages import Outcome
from callboard.terminal._document_changes import OldDocuments
from callboard.terminal._journals import ending, find_task, journal_at, print_json, settings_at
from callboard.terminal._text import BAD, GOOD, print_hanging, short

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.actors.replay import Replay
    from callboard.messages import Event, PlannedAction, Task, TaskResult


_SHOWN_ARGUMENT = 60
_LABEL = 8
"""The width of a label, in columns."""
_VERDICT = 9
"""The width of a verdict, in columns."""
_WHOLE = {"made", "changed", "removed", "undo", "history"}
"""The labels of paths and commands, which people copy."""
_VERIFIED = {True: GOOD, False: BAD, None: "yellow"}
"""The styles of `TaskResult.verified`."""
_MEMBERS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def print_head(console: Console, task: Task, copy: Path | None, remark: str) -> None:
    """Print the task, its copy, and the source of answers.

    The task works on the copy.
    """
    console.print(Text(cut(plain(task.request)) or f"a plan of {len(task.plan)} steps", style="bold"))
    if task.may_change:
        console.print(Text(f"may change {plain(', '.join(task.may_change))}", style="dim"), soft_wrap=True)
    if task.dry_run:
        unchecked = "; checks are not run" if task.checks or any(step.checks for step in task.plan) else ""
        console.print(Text(f"a dry run: no action is executed, except tools that only read{unchecked}", style="dim"))
    if copy is not None:
        console.print(Text(f"on a copy in {plain(short(copy))}", style="dim"), soft_wrap=True)
    if remark:
        console.print(Text(remark, style="dim"), soft_wrap=True)


def print_result(
    console: Console, result: TaskResult, undo: str = "", *, old: OldDocuments | None = None, history: str = ""
) -> None:
    """Print the outcome of a task, its causes, results and cost.

    Args:
        console: The terminal.
        result: The result of the task.
        undo: The command that undoes its changes, if there is one.
        old: The documents before the task, to count the changes of them.
        history: The command that prints its history, if there is one.
    """
    ended = ending(result.outcome)
    ended.append(f" in {result.seconds:.1f} s", style="default")
    says = ": " if result.verified is not False else "; the agent said: "  # a claim that was not confirmed
    console.print(ended.append(f"{says}{plain(result.comment)}" if result.comment else "", style="default"))
    if words := verdict(result):
        console.print(Text(words, style=_VERIFIED[result.verified]))
    facts = [("check", text) for text in failed_checks(result)]
    facts += [("model", text) for text in (proposals(result),) if text]
    facts += [("judge", judge_result.told()) for judge_result in result.judged]
    facts += [("because", reason) for reason in _reasons(result)]
    facts += [("subtask", reason) for reason in _left_undone(result)]
    if result.ok and result.output is not None:
        output = result.output if isinstance(result.output, str) else json.dumps(result.output, ensure_ascii=False)
        facts.append(("output", cut(output)))
    if result.failed_actions:
        facts.append(("failed", f"{numbered(result.failed_actions, 'action')} on the way"))
    facts.append(("used", used(result.usage)))
    facts += [("planned", _planned(action)) for action in result.would_do]
    changes = (old or OldDocuments()).lines(result)
    facts += changes
    if not result.actions and not changes:
        facts.append(("changed", "nothing"))
    facts += [("undo", undo)] if undo else []
    facts += [("history", history)] if history else []
    for name, text in facts:  # paths and commands are not wrapped, so that people can copy them
        line = Text(f"{name:<{_LABEL}}", style="dim").append(plain(text), style="default")
        if name in _WHOLE:
            console.print(line, soft_wrap=True)
        else:
            print_hanging(console, line, 0)


def _planned(action: PlannedAction) -> str:
    """Describe an action that a dry run did not execute."""
    text = json.dumps(action.arguments, ensure_ascii=False)
    return f"{action.tool} {cut(text)}{f' on {action.target}' if action.target else ''}: {action.note}"


def print_verdicts(console: Console, verdicts: list[Event], result: TaskResult) -> None:
    """Print the policy's verdicts, each with the facts that it saw."""
    styles = {"allow": GOOD, "approve": "yellow", "deny": BAD}
    for event in verdicts:
        verdict = str(event.data["verdict"])
        line = Text(f"{verdict:<{_VERDICT}}", styles[verdict]).append(plain(str(event.data["tool"])), "bold")
        line.append(plain(f": {event.data['reason']} ({event.agent}, step {event.step})"), "default")
        print_hanging(console, line, 0, _VERDICT)
        for fact in _canonical_call(event):  # not wrapped, so that people can copy paths
            console.print(Text(" " * _VERDICT).append(plain(fact), "dim"), soft_wrap=True)
    ended = f"the trial run ended as {ending(result.outcome)}"
    console.print(f"\n{numbered(len(verdicts), 'action')}; {ended}")
    for reason in _reasons(result):
        print_hanging(console, Text("because ", style="dim").append(plain(reason), "default"), 0)


def _reasons(result: TaskResult) -> list[str]:
    """List the causes of an outcome, each once.

    Failed checks have lines of their own.
    """
    checks = [check.told("all") for check in result.checks if not check.held]
    checks += [judge_result.told() for judge_result in result.judged]
    causes = [cause for cause in result.causes if not any(check in cause.reason for check in checks)]
    distinct_causes = (
        cause
        for number, cause in enumerate(causes)
        if not any(cause.reason in nearer.reason for nearer in causes[:number])
    )
    return [f"{cause.reason} ({cause.where})" if cause.where else cause.reason for cause in distinct_causes]


def _left_undone(result: TaskResult) -> list[str]:
    """Describe the unfinished subtasks of a finished task.

    Those that a later subtask of the same agent made up for are left out.
    """
    last = {subtask.address: subtask for subtask in result.subtasks} if result.ok else {}
    return [
        ": ".join((f"{subtask.number} {ending(subtask.outcome)}", *(cause.reason for cause in subtask.causes[:1])))
        for subtask in last.values()
        if subtask.outcome is not Outcome.FINISHED
    ]


def _canonical_call(event: Event) -> list[str]:
    """Format a call's arguments as the rules saw them, and its resources.

    Empty arguments are left out.
    """
    arguments, resources = (_MEMBERS.validate_python(event.data[name]) for name in ("canonical", "resources"))
    lines = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items() if value != ""]
    return [*(cut(line, _SHOWN_ARGUMENT) for line in lines), *map(str, resources)]


def replay_task(console: Console, task_id: str, path: Path | None, settings: Path | None, *, as_json: bool) -> bool:
    """Replay a task of a journal, and print the result.

    Returns whether it went as recorded.
    """
    journal = journal_at(path)
    with JournalReader.open(journal) as reader:
        recording = RecordedTask.load(journal, find_task(reader, task_id))
    if settings is not None:
        loaded = Settings.load(settings_at(settings))
        done = replay(recording, loaded, agents=named_agents(loaded))
    elif path == journal and None not in recording.lives:
        done = replay(recording)
    else:
        loaded = Settings.load(settings_at(None if path == journal else path))
        done = replay(recording, otherwise=loaded, agents=named_agents(loaded))
    if as_json:
        facts = {
            "task": done.task.id,
            "same": done.same,
            "outcome": done.outcome.value if done.outcome is not None else None,
            "jobs": done.jobs,
            "taken": done.taken,
            "transitions": [dataclasses.asdict(transition) for transition in done.transitions],
            "difference": dataclasses.asdict(done.difference) if done.difference is not None else None,
        }
        print_json(facts)
    else:
        _print(console, done)
    return done.same


def _print(console: Console, done: Replay) -> None:
    console.print(Text(plain(done.task.id), style="cyan"))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("agent", "step", "transition", "by"):
        table.add_column(name)
    for transition in done.transitions:
        table.add_row(
            plain(transition.address), str(transition.step), f"{transition.source} → {transition.target}", transition.by
        )
    console.print(table)
    if done.difference is not None:
        console.print(Text("The first difference", style=BAD))
        for line in str(done.difference).splitlines():
            console.print(Text(plain(line)))
        return
    ended = "it was unfinished" if done.outcome is None else f"it ended as {ending(done.outcome)}"
    failure_note = f", {done.taken} failed steps taken as recorded" if done.taken else ""
    counted = f"{done.jobs} jobs, {len(done.transitions)} transitions{failure_note}"
    console.print(Text("the same as recorded", style=GOOD), Text(f"{counted}; {ended}"), sep=": ")
