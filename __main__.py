"""The command line: run a task in the terminal; print the machines, the messages' schema and the settings."""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import itertools
import json
import queue
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self

import typer
import yaml
from pydantic import Field, TypeAdapter, ValidationError
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from callboard.actors.models import named_models
from callboard.actors.processing import MACHINES
from callboard.actors.states import By, mermaid
from callboard.config import Settings
from callboard.messages import (
    AgentKind,
    CallboardError,
    Event,
    EventName,
    Message,
    Outcome,
    SupervisorStoppedError,
    Task,
    TaskResult,
)
from callboard.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from callboard.actors.root import TaskHandle

EXIT_CODES = {
    Outcome.FINISHED: 0,
    Outcome.FAILED: 1,
    Outcome.ERROR: 3,
    Outcome.CANCELLED: 4,
    Outcome.TIMED_OUT: 5,
    Outcome.OUT_OF_BUDGET: 6,
    Outcome.REJECTED: 7,
}
"""What `callboard run` exits with when the task is over."""
USAGE, INTERRUPTED = 2, 130

SETTINGS_FILE, TASK_FILE = "callboard.yaml", "task.yaml"

_CODES = {code: outcome.value.replace("_", " ") for outcome, code in EXIT_CODES.items()} | {
    USAGE: "a mistake in the call, the task or the settings",
    INTERRUPTED: "left at once by a second Ctrl-C",
}
_EXIT_HELP = "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in sorted(_CODES.items())) + "."
_TICK = 0.1
_SHOWN_LINES, _SHOWN_OUTPUT = 3, 400
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_GOOD, _BAD = "green", "bold red"

app = typer.Typer(
    help="Agents that work in documents, windows, devices and shells, one supervisor between them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def main() -> None:
    """Be the program `callboard`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that can't show a letter is no reason to fail
    app(prog_name="callboard")


@app.callback(invoke_without_command=True)
def _version(
    *, version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"callboard {importlib.metadata.version('callboard')}")
        raise typer.Exit


@app.command(epilog=_EXIT_HELP)
def run(  # noqa: PLR0913 - a command's options
    path: Annotated[
        Path, typer.Argument(exists=True, show_default=False, help="A folder as in examples/, or a task file.")
    ],
    *,
    settings: Annotated[
        Path | None, typer.Option(help="The settings for a task file; a folder has its own.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where the folder's copy goes.", show_default="runs/<folder>-<number>")
    ] = None,
    as_json: AsJson = False,
    log: Annotated[bool, typer.Option("--log", help="Write the log to the standard error stream.")] = False,
    log_file: Annotated[
        Path | None, typer.Option(help="Add the log to a file, one JSON object a line.", show_default=False)
    ] = None,
) -> None:
    """Run a task, show its progress, and say how it ended.

    A folder holds callboard.yaml (settings), task.yaml and what they name.
    Each run works on a fresh copy of it. A task file runs where it is.

    Questions and approvals can't be answered here yet: a task that asks is
    cancelled. Ctrl-C cancels too; a second one leaves at once.
    """
    console = Console(highlight=False, quiet=as_json)
    with _mistakes():
        changes: dict[str, Any] = {} if log else {"format": "off"}
        if log_file is not None:
            changes["file"] = log_file.absolute()
        task, placed = _prepare(path, settings, output, changes)
        console.print(Text(_plain(task.request) or f"a plan of {len(task.plan)} steps", style="bold"))
        if path.is_dir():
            console.print(Text(f"on a copy in {_short(placed.base)}", style="dim"), soft_wrap=True)
        board = Board(task.id, task.request)
        live = console.is_terminal and not (console.is_dumb_terminal or log or as_json)
        with Supervisor.start(placed) as supervisor, Interrupts() as interrupts:
            try:
                result = _play(supervisor, task, board, interrupts, console, live=live)
            except KeyboardInterrupt:
                supervisor.stop(timeout=0)
                raise
        if as_json:
            typer.echo(result.model_dump_json(indent=2))
        else:
            console.print(board.table(time.time()))
            _print_result(console, result)
        raise typer.Exit(EXIT_CODES[result.outcome])


@app.command()
def graph(
    agent: Annotated[AgentKind, typer.Argument(help="Whose machine.", show_default=False)], *, as_json: AsJson = False
) -> None:
    """Print an agent's state machine as a Mermaid diagram."""
    machine = MACHINES[agent]
    if not as_json:
        typer.echo(mermaid(machine), nl=False)
        return
    moves = {
        source: {target: [str(cause) for cause in By if cause in by] for target, by in row.items()}
        for source, row in machine.transitions.items()
    }
    typer.echo(json.dumps({"initial": machine.initial, "final": machine.final, "transitions": moves}, indent=2))


@app.command()
def schema(
    message: Annotated[
        str | None, typer.Argument(help="One message's tag, such as task; all by default.", show_default=False)
    ] = None,
) -> None:
    """Print the JSON Schema of the messages."""
    known = Message.registry
    if message is not None and message not in known:
        near = difflib.get_close_matches(message.lower().replace("-", "_"), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known))}"
        _fail(f"there is no message {message!r}; {hint}")
    if message is not None:
        found = known[message].model_json_schema()
    else:
        union: Any = reduce(or_, (known[tag] for tag in sorted(known)))
        found = TypeAdapter(Annotated[union, Field(discriminator="kind")]).json_schema()
    typer.echo(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **found}, indent=2))


@app.command()
def config(
    path: Annotated[
        Path | None, typer.Argument(help="A settings file, or a folder with one.", show_default=False)
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the settings in force as YAML: the file's, the environment's and the defaults; secrets are hidden."""
    with _mistakes():
        file = path / SETTINGS_FILE if path is not None and path.is_dir() else path
        shown = Settings.load(file).model_dump(mode="json", by_alias=True)
    text = json.dumps(shown, indent=2, ensure_ascii=False) + "\n" if as_json else _yaml(shown)
    typer.echo(text, nl=False)


class Interrupts:
    """Ctrl-C while a task runs: the first one asks for a cancel, the second is a `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether there was one that nobody has acted on."""

    def __enter__(self) -> Self:
        """Listen."""
        self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        signal.signal(signal.SIGINT, self._before)

    def _first(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Row:
    """One agent's work as the display shows it."""

    agent: str
    subtask: str
    started: float
    state: str = ""
    step: int = 0
    ended: float | None = None
    ok: bool | None = None


@dataclass
class Board:
    """What is shown of a task: a row for each piece of work, and the last lines; made from its events alone."""

    task_id: str
    request: str
    rows: dict[str, Row] = field(default_factory=dict)
    lines: list[Text] = field(default_factory=list)
    started: float | None = None

    def see(self, event: Event) -> Text | None:
        """Take an event in; returns the line that tells of it, if it deserves one."""
        self.started = event.at if self.started is None else self.started
        if event.agent:
            run_id = event.run_id or f"{self.task_id}/0"
            row = self.rows.get(run_id) or Row(event.agent, self.request, event.at)
            self.rows[run_id] = _advanced(row, event)
        told = _told(event)
        if not told:
            return None
        line = Text(f"{event.at - self.started:8.2f} s  ", style="dim")
        line.append(f"{event.agent or 'supervisor'}  ", style="cyan").append(_plain(told))
        self.lines = [*self.lines, line][-_SHOWN_LINES:]
        return line

    def table(self, now: float) -> Table:
        """Draw the rows."""
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("agent", style="cyan", overflow="fold", no_wrap=True)
        table.add_column("state", no_wrap=True)
        table.add_column("subtask")  # the one column that gives way on a narrow terminal
        table.add_column("step", justify="right")
        table.add_column("elapsed", justify="right", no_wrap=True)
        for row in self.rows.values():
            style = {None: "", True: _GOOD, False: _BAD}[row.ok]
            elapsed = f"{(row.ended or now) - row.started:.1f} s"
            subtask = Text(_plain(row.subtask), no_wrap=True, overflow="ellipsis")
            table.add_row(_plain(row.agent), Text(row.state, style), subtask, str(row.step), elapsed)
        return table

    def picture(self, now: float) -> Group:
        """Draw the rows and the last lines."""
        return Group(self.table(now), *self.lines)


def _advanced(row: Row, event: Event) -> Row:
    data = event.data
    match event.name:
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            return replace(row, subtask=str(data["request"]), ended=None, ok=None)
        case EventName.SUBTASK_QUEUED:
            return replace(row, state="QUEUED")
        case EventName.STATE_CHANGED:
            return replace(row, state=str(data["target"]))
        case EventName.STEP_STARTED if event.step is not None:
            return replace(row, step=event.step)
        case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
            outcome = str(data["outcome"])
            return replace(row, state=outcome, ended=event.at, ok=outcome == Outcome.FINISHED.value)
        case _:
            return row


def _told(event: Event) -> str:  # noqa: PLR0911 - one match, a case an event
    """Tell of an event in a few words; empty for those of no interest on a terminal."""
    data = event.data
    match event.name:
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            return f"starts: {data['request']}"
        case EventName.SUBTASK_QUEUED:
            return f"waits for its target, {data['ahead']} before it"
        case EventName.STATE_CHANGED if data["source"] not in {"", data["target"]}:
            return f"{data['source']} → {data['target']}"
        case EventName.COMMAND_ENDED:
            return f"{data['tool']}: {data['status']}" + (f", {data['error']}" if data["error"] else "")
        case EventName.MODEL_REPAIRED:
            return f"its model's answer was sent back: {data['reason']}"
        case EventName.STEP_FAILED | EventName.AGENT_CRASHED:
            return f"{event.name.value}: {next(iter(_listed(data['causes'])), '')}"
        case EventName.TASK_CANCELLING:
            return f"stopping: {data['reason']}"
        case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
            return str(data["outcome"])
        case EventName.EVENTS_MISSED:
            return f"{data['count']} events were missed here"
        case _:
            return ""


def _play(  # noqa: PLR0913 - the two sides of a display
    supervisor: Supervisor, task: Task, board: Board, interrupts: Interrupts, console: Console, *, live: bool
) -> TaskResult:
    """Run a task and show its events to the end: in a picture that changes, or line by line."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    supervisor.subscribe(events.put, task_id=task.id)
    handle = supervisor.submit(task)
    shown = Live(console=console, auto_refresh=False, transient=True) if live else contextlib.nullcontext()
    with shown as picture:
        for event in _events(events, handle):
            if interrupts.wanted:
                interrupts.wanted = False
                handle.cancel("cancelled from the keyboard")
            line = board.see(event) if event is not None else None
            if picture is not None:
                picture.update(board.picture(time.time()), refresh=True)
            elif line is not None:
                console.print(line, soft_wrap=True)
            if event is not None and event.name in {EventName.QUESTION_ASKED, EventName.APPROVAL_REQUESTED}:
                _nobody_answers(handle, event, console)
    return handle.result()


def _events(events: queue.SimpleQueue[Event], handle: TaskHandle) -> Iterator[Event | None]:
    """Give a task's events to its end, and None whenever nothing happened for a moment."""
    while True:
        try:
            event = events.get(timeout=_TICK)
        except queue.Empty:
            if handle.done():
                return
            yield None
            continue
        yield event
        if event.name is EventName.TASK_ENDED:
            return


def _nobody_answers(handle: TaskHandle, event: Event, console: Console) -> None:
    """Say what waits for a person, and end the task: there is no way to answer here yet."""
    asked: Any = event.data["request"]
    if event.name is EventName.QUESTION_ASKED:
        what = "; ".join(
            part["text"] + (f" ({' / '.join(part['choices'])})" if part.get("choices") else "")
            for part in asked["questions"]
        )
        why = f"{event.agent} asks: {what}"
    else:
        calls = [f"{call['tool']} {json.dumps(call.get('arguments', {}))}" for call in asked["actions"]]
        why = f"{event.agent} wants an approval ({asked['reason']}) for: {'; '.join(calls) or 'its decision'}"
    console.print(Text(_plain(why), style="bold yellow"))
    console.print("Nobody can answer on the command line yet, so the task is cancelled.")
    handle.cancel(f"nobody could answer: {why}")


def _prepare(path: Path, settings: Path | None, output: Path | None, log: dict[str, Any]) -> tuple[Task, Settings]:
    """Read the task and the settings, and place them: in a fresh copy of their folder, or where the task file is.

    Everything is read before anything is copied, so that a mistake is named where it can be mended.
    """
    if path.is_file():
        if output is not None:
            _fail("--output belongs to a folder; a task file runs where it is")
        return _named(_read_task(path), path.stem), Settings.load(settings, log=log)
    if settings is not None:
        _fail(f"--settings belongs to a task file; the folder {path} has its own {SETTINGS_FILE}")
    named_models(Settings.load(path / SETTINGS_FILE, log=log))
    task = _read_task(path / TASK_FILE)
    place = _place(path, output)

    def skipped(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if place.is_relative_to(Path(folder, name))]

    shutil.copytree(path.resolve(), place, symlinks=True, ignore=skipped, dirs_exist_ok=True)
    return _named(task, place.name), Settings.load(path / SETTINGS_FILE, base=place, log=log)


def _place(path: Path, output: Path | None) -> Path:
    """Make the folder of one run."""
    if output is not None:
        place = output.resolve()
        place.mkdir(parents=True)
        return place
    runs, name = Path("runs").resolve(), path.resolve().name
    runs.mkdir(exist_ok=True)
    return next(place for number in itertools.count(1) if _made(place := runs / f"{name}-{number}"))


def _made(place: Path) -> bool:
    try:
        place.mkdir()
    except FileExistsError:
        return False
    return True


def _read_task(file: Path) -> Task:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        _fail(f"{file}: is no YAML: {error}")
    if not isinstance(content, dict):
        _fail(f"{file}: holds no keys with values; a task needs at least: request: what is to be done")
    try:
        return Task.model_validate(content)
    except ValidationError as error:
        _fail("\n".join(f"{file}: {_problem(problem)}" for problem in error.errors()))


def _named(task: Task, name: str) -> Task:
    """Call a task without an id of its own as its run is called, for people who read addresses."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:100]
    return task if "id" in task.model_fields_set or not name else task.model_copy(update={"id": name})


def _problem(problem: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    where = ".".join(map(str, problem["loc"]))
    what = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(problem["loc"][-1]), Task.model_fields, n=1, cutoff=0.5)
        what = (
            f"unknown key; did you mean {near[0]!r}?"
            if near
            else f"unknown key; known are {', '.join(Task.model_fields)}"
        )
    return f"{where}: {what}" if where else what


def _print_result(console: Console, result: TaskResult) -> None:
    """Say how a task ended, why, and what it left."""
    ended = Text(result.outcome.value.replace("_", " "), style=_GOOD if result.ok else _BAD)
    ended.append(f" in {result.seconds:.1f} s", style="default")
    console.print(ended.append(f": {_plain(result.comment)}" if result.comment else "", style="default"))
    facts: list[tuple[str, str]] = []
    for number, cause in enumerate(result.causes):
        if not any(cause.reason in nearer.reason for nearer in result.causes[:number]):
            facts.append(("because", f"{cause.reason} ({cause.where})" if cause.where else cause.reason))
    if result.ok and result.output is not None:
        said = result.output if isinstance(result.output, str) else json.dumps(result.output, ensure_ascii=False)
        facts.append(("output", said if len(said) <= _SHOWN_OUTPUT else f"{said[:_SHOWN_OUTPUT]} …"))
    used = result.usage
    facts.append(("used", f"steps {used.steps}, model calls {used.model_calls}, tool calls {used.commands}"))
    facts += [("made", _short(Path(artifact))) for artifact in result.artifacts]
    for name, text in facts:
        console.print(Text(f"{name:<8}", style="dim").append(_plain(text), style="default"), soft_wrap=name == "made")


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _plain(text: str) -> str:
    """Take control characters out: what documents and models say must not drive the terminal."""
    return _CONTROL.sub(" ", text)


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _yaml(content: Any) -> str:  # noqa: ANN401 - any JSON
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return text


@contextlib.contextmanager
def _mistakes() -> Iterator[None]:
    """Turn what a user can mend into a message, without a traceback."""
    try:
        yield
    except SupervisorStoppedError as error:
        _fail(str(error), EXIT_CODES[Outcome.ERROR])
    except CallboardError as error:
        _fail(str(error))
    except BrokenPipeError:
        raise
    except shutil.Error as error:
        _fail("\n".join(f"{source}: can't be copied: {why}" for source, _, why in error.args[0]))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _fail(text: str, code: int = USAGE) -> NoReturn:
    for line in text.splitlines():
        typer.echo(f"callboard: {line}", err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
