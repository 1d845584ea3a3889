"""The commands of `callboard`.

Each imports the parts that it runs when it is called, through `parts`, so that help and completion come at once.
"""

from __future__ import annotations

import importlib.metadata
import json
import tempfile
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import callboard
import callboard.terminal as parts
from callboard.messages import AgentKind, EventName, Message, Outcome, did_you_mean
from callboard.terminal._commands import (
    DEMO,
    EXIT_CODES,
    INTERRUPTED,
    NOT_VERIFIED,
    USAGE,
    WORSE,
    Again,
    Commands,
    existing_path,
    fail,
    mistakes,
    models_of,
    warn,
)
from callboard.terminal._options import (
    Abandon,
    AsJson,
    Checks,
    Journal,
    JournalFile,
    Log,
    LogFile,
    MayChange,
    Model,
    NoInput,
    Record,
    SettingsPath,
    SettingsPlace,
    TaskId,
    WithConsole,
    Yes,
)
from callboard.terminal._routine_group import routine_app

if TYPE_CHECKING:
    from rich.console import Console

    from callboard.terminal import Attendance, TaskSession

_CODES = {code: outcome.value.replace("_", " ") for outcome, code in EXIT_CODES.items()} | {
    NOT_VERIFIED: "failed because checks do not hold",
    USAGE: "invalid arguments, task or settings, or an unusable journal",
    INTERRUPTED: "interrupted by a second Ctrl-C",
}
_EXIT_HELP = "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in sorted(_CODES.items())) + "."
_EVAL_CODES = (
    f"Exit codes: 0 all runs have a result, {USAGE} {_CODES[USAGE]}, {EXIT_CODES[Outcome.ERROR]} some runs have no "
    f"result, {WORSE} a pass rate is lower than in --against, {INTERRUPTED} interrupted."
)
_NO_FLEET = {"url": None, "serve": False, "monitor": None, "local": 0, "local_parts": None}
"""The settings of a run that belongs to no fleet."""


def _demo_names() -> list[str]:
    return list(parts.demo_names())


def _page_names() -> list[str]:
    return list(parts.page_names())


app = typer.Typer(
    cls=Commands,
    help="Run agents that work in documents, windows, devices and shells.\n\n"
    "`callboard demo` shows a run, and `callboard init FOLDER` writes a first project.",
    no_args_is_help=True,
    add_completion=False,  # its scripts run the program that the line names, and evaluate its output in zsh
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes break lines within sentences, and show a type for flags
)

policy_app = typer.Typer(help="Try the policy's rules on a task.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(policy_app, name="policy")
fleet_app = typer.Typer(rich_markup_mode=None)
app.add_typer(fleet_app, name="fleet")
app.add_typer(routine_app, name="routine")


@app.callback(invoke_without_command=True)
def _version(
    *, version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"callboard {importlib.metadata.version('callboard')}")
        raise typer.Exit


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder of the project.", show_default="the current one")] = Path(),
) -> None:
    """Write a first project that runs at once.

    It has settings, a task, a document and a test. A script answers in place of a
    language model. Existing files are never changed: if one is there, nothing is
    written.
    """
    with mistakes():
        parts.write_project(parts.terminal(), folder)


@app.command(epilog=_EXIT_HELP)
def run(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER | TASK.yaml | REQUEST DOCUMENT... | NAME.routine.yaml DOCUMENT...",
            show_default=False,
            help="A folder as `callboard init` writes it, a task file, a request in quotes and the documents to work "
            "on, or a routine and its documents.",
        ),
    ],
    *,
    settings: Annotated[
        Path | None,
        typer.Option(
            help="For a task file: its settings file, or a folder with one. Without it, those of the environment.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The folder for the copy.", show_default="runs/<name>-<number>")
    ] = None,
    model: Model = None,
    may_change: MayChange = None,
    check: Checks = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="Work on the documents of a request themselves, not on copies. `callboard undo` brings them back; "
            "changing other files, and deleting, needs an approval.",
        ),
    ] = False,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A value of a routine's parameter. May be repeated.", show_default=False
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail at the first step of a routine that can't be repeated; ask no model."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Execute no action, except tools that only read, and list what would have been done. Agents look, "
            "decide and ask the policy; no person is asked for an approval, and checks are not run.",
        ),
    ] = False,
    no_fleet: Annotated[
        bool,
        typer.Option(
            "--no-fleet",
            help="Offer no targets of other machines and start none, whatever fleet.url and fleet.local say.",
        ),
    ] = False,
    journal: JournalFile = None,
    record: Record = None,
    as_json: AsJson = False,
    yes: Yes = False,
    no_input: NoInput = False,
    log: Log = False,
    log_file: LogFile = None,
    abandon: Abandon = False,
    with_console: WithConsole = False,
) -> None:
    """Run a task, and show its progress.

    A folder contains callboard.yaml (settings), task.yaml and the files that they
    name. Each run works on a fresh copy of it. A task file runs in place.

    A request needs no files of settings, but --model. The argument that is no
    existing path is the request; all others are documents, and the run works on
    copies of them, or on themselves with --in-place:

    callboard run "Chart the prices" prices.xlsx --model openai:gpt-5

    Approvals and questions appear in the terminal; Enter alone is always the
    safe answer. Without a terminal, or with --json, no person is asked, as with
    --no-input. Ctrl-C cancels; a second one exits immediately. `callboard resume`
    continues the unfinished tasks of a journal.
    """
    # Before the supervisor starts: an interrupt of a later import would offer to resume a task that does not exist.
    from callboard.actors.commands import Secrets
    from callboard.terminal import (
        exit_code,
        journal_in,
        keep_repair,
        named_journal,
        play,
        print_head,
        print_result,
        task_command,
        undo_command,
        with_resume_hint,
    )

    who = _who(yes=yes, no_input=no_input, as_json=as_json, has_console=with_console)
    console = parts.terminal(quiet=as_json)
    with mistakes():
        models, checks = models_of(model or ()), parts.checks_of(check or ())
        changes = _changes(who, log_file, journal, log=log) | {"models": models | _recording(record)}
        changes |= {"fleet": _NO_FLEET} if no_fleet else {}
        call = parts.prepared(
            arguments,
            settings,
            output,
            changes,
            may_change=may_change or (),
            checks=checks,
            in_place=in_place,
            sets=values or (),
            strict=strict,
        )
        call = call.dry() if dry_run else call
        if with_console and call.settings.journal.path is None:
            fail("--console shows a journal, and none is named: set journal.path, or use --journal")
        supervisor = parts.started(call)  # before it the journal has no task to resume
        with (
            with_resume_hint(call.resume_command(journal, models)),
            parts.removed_if_refused(call),
            supervisor,
            parts.console_of(supervisor, stays=with_console),
        ):

            def head() -> None:
                print_head(console, Secrets(call.settings.secrets).as_kept(call.task), call.copy, who.remark)
                warn(supervisor.warnings)

            result = play(supervisor, who.sign(call.task), _stage(console, who, log=log, abandon=abandon), head)
            journal_path = named_journal(call.settings, call.settings_file, journal)
            undo = undo_command(call.task, result, journal_path)
            history = task_command("show", call.task.id, journal_path)
            print_result(console, result, undo, old=call.old_documents, history=history)
            if as_json:
                typer.echo(result.model_dump_json(indent=2))
        keep_repair(console, call.task, result, journal_in(call.settings), call.settings.routines.promote_after)
        raise typer.Exit(exit_code(result))


@app.command(epilog=_EXIT_HELP)
def demo(
    name: Annotated[str, typer.Argument(help="The example.", autocompletion=_demo_names)] = DEMO,
    *,
    output: Annotated[
        Path | None, typer.Option(help="The folder for the copy.", show_default="runs/<name>-<number>")
    ] = None,
    model: Model = None,
    as_json: AsJson = False,
    yes: Yes = False,
    no_input: NoInput = False,
) -> None:
    """Run an installed example on a copy.

    Without a name it is the report from a Word document to an Excel chart, which
    needs no key, display or Office. A script decides in place of a language model;
    --model names a live one.
    """
    console = parts.terminal(quiet=as_json)
    folder = parts.demo_folder(name)
    other_names = ", ".join(example for example in parts.demo_names() if example != name)
    console.print(f"the example {name}; others: {other_names}", style="dim", soft_wrap=True)
    run([str(folder)], output=output, model=model, as_json=as_json, yes=yes, no_input=no_input)


@app.command(epilog=_EXIT_HELP)
def resume(
    path: Annotated[
        Path | None,
        typer.Argument(
            callback=existing_path, show_default="./callboard.yaml", help="A run's folder, or a settings file."
        ),
    ] = None,
    *,
    model: Model = None,
    journal: JournalFile = None,
    as_json: AsJson = False,
    yes: Yes = False,
    no_input: NoInput = False,
    log: Log = False,
    log_file: LogFile = None,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon",
            help="Cancel the tasks, and do not wait for other machines of the fleet; what they did is in doubt.",
        ),
    ] = False,
    with_console: WithConsole = False,
) -> None:
    """Resume the unfinished tasks of a journal.

    The settings name the journal, the models and the documents, as they did when
    the tasks were submitted. Completed actions are not run again, and models are
    not asked again for answers that the journal has. Open approvals and questions
    appear in the terminal.

    Ctrl-C cancels the tasks; a second one exits immediately. The exit code is that
    of the first task that did not finish.
    """
    who = _who(yes=yes, no_input=no_input, as_json=as_json, has_console=with_console)
    console = parts.terminal(quiet=as_json)
    with mistakes():
        models = models_of(model or ())
        settings, histories = parts.take_over(path, who, _changes(who, log_file, journal, log=log) | {"models": models})
        for resumed in histories:
            parts.print_head(console, resumed.task, None, "")
        if not histories:
            console.print("nothing to resume: the journal has no unfinished task")
            if as_json:
                typer.echo("[]")
            return
        with (
            parts.with_resume_hint(parts.resume_command(path, journal, models)),
            callboard.Supervisor.start(settings) as supervisor,
            parts.console_of(supervisor, stays=with_console),
        ):
            warn(supervisor.warnings)
            stage = _stage(console, who, log=log, abandon=abandon)
            results = parts.resume_tasks(supervisor, histories, stage, cancel=abandon)
            journal_path = parts.named_journal(settings, path or parts.settings_at(None), journal)
            for resumed, result in zip(histories, results, strict=True):
                undo = parts.undo_command(resumed.task, result, journal_path)
                history = parts.task_command("show", resumed.task.id, journal_path)
                parts.print_result(console, result, undo, history=history)
            if as_json:
                typer.echo(json.dumps([result.model_dump(mode="json") for result in results], indent=2))
        for resumed, result in zip(histories, results, strict=True):
            parts.keep_repair(
                console, resumed.task, result, parts.journal_in(settings), settings.routines.promote_after
            )
        raise typer.Exit(next(filter(None, map(parts.exit_code, results)), 0))


@app.command("eval", epilog=_EVAL_CODES)
def evaluate(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="SET",
            callback=existing_path,
            show_default=False,
            help="A file, a folder with an eval.yaml, or a folder of folders as `callboard run` takes them.",
        ),
    ],
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Run the tasks with this model: one of the set by its name there, or one such as openai:gpt-5 or "
            "host=openai:gpt-5,app=local:qwen. May be repeated, to compare several.",
            show_default="those of the set",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="The number of runs.", show_default="as in the set")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", metavar="NAME", help="One of the tasks. May be repeated.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, max=64, help="The most runs at a time.", show_default="as in the set")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The folder of the runs and results.", show_default="evals/<name>")
    ] = None,
    again: Annotated[
        Again, typer.Option(help="Start runs again that have a result: those that ended by an error, or all.")
    ] = Again.NONE,
    against: Annotated[
        Path | None,
        typer.Option(callback=existing_path, help="The report.json of an earlier run to compare with."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="The decrease of a pass rate that is accepted, such as 0.05.")
    ] = 0.0,
    html: Annotated[Path | None, typer.Option(help="Also write the report as a page of HTML.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Run tasks with checks repeatedly, and count those that pass.

    A set has tasks, models and seeds. Each run works on a copy, with a journal of
    its own, in the folder evals. A run passes if all checks of its task hold. A
    run that has a result is not run again, and the same command continues
    unfinished ones, also after a crash.

    No person is asked: requests for approval are rejected without --yes.
    """
    who = parts.Attendance(yes=yes, absent="callboard eval")
    choices = parts.EvalChoices(
        who,
        models=model or (),
        seeds=seeds,
        tasks=task or (),
        at_once=at_once,
        output=output,
        again=again,
        against=against,
        threshold=threshold,
        html=html,
        as_json=as_json,
    )
    with mistakes():
        code = parts.run_set(path, choices)
    raise typer.Exit(code)


@app.command("tasks")
def tasks(
    journal: Journal = None,
    *,
    find: Annotated[str, typer.Option(help="Words of the request or the result; the last may be cut short.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="A label, as NAME=VALUE.")] = None,
    outcome: Annotated[list[str] | None, typer.Option(help="An outcome, or `unfinished`; repeat for several.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks of a journal.

    Each has its outcome. The journal may be in use. A run on a copy has its
    journal in its own folder.
    """
    with mistakes():
        task_filter = parts.task_filter(find, label or (), outcome or ())
        parts.list_tasks(parts.terminal(), journal, task_filter, as_json=as_json)


@app.command("show")
def show(
    task: TaskId,
    journal: Journal = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the history of a task.

    It has the requests and answers, the decisions and actions, the actions in
    doubt after a crash, and the outcome. The journal may be in use.
    """
    with mistakes():
        parts.show_task(parts.terminal(), task, journal, as_json=as_json)


@app.command("console")
def console(
    journal: Journal = None,
    *,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port; 0 for a free one.", show_default="8437, or a free one"),
    ] = None,
    link: Annotated[
        bool,
        typer.Option("--link", help="Print a new link to the console that is open on the port, and end."),
    ] = False,
) -> None:
    """Show a journal in the browser, until Ctrl-C.

    It has the tasks with their histories, and what waits for people. Nothing is
    started or changed. The journal may be in use.
    """
    with mistakes():
        parts.print_new_link(journal, port) if link else parts.open_console(journal, port)


@app.command("report")
def report(
    task: TaskId,
    journal: Journal = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The new file; .md for Markdown.",
            show_default="<task id>.html, in the current folder",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown, without pictures.")] = False,
    pictures: Annotated[
        float, typer.Option(min=0, max=1000, metavar="MB", help="The most megabytes of pictures; 0 for none.")
    ] = 10,
) -> None:
    """Write a report of a task to one file.

    It has the history with its pictures, as in the console, and can be sent or
    printed: it needs no other file, runs no script and loads nothing. The latest
    pictures that fit are in it. Secrets are redacted as in the journal; look
    through it before you send it. The journal may be in use.
    """
    with mistakes():
        parts.write_report(parts.terminal(), task, journal, output, markdown=markdown, picture_megabytes=pictures)


@app.command("undo")
def undo(
    task: TaskId,
    journal: Journal = None,
    *,
    file: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="One of its files. May be repeated.", show_default="all of its files"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring back the files that a task changed.

    These are the files that it names in may_change; their versions from before
    its first change are kept as long as the journal keeps the task. If one of
    them was changed since by another program or task, or is open in one, nothing
    is brought back.
    """
    with mistakes():
        parts.undo_task(parts.terminal(), task, journal, file or (), as_json=as_json)


@app.command("logs")
def logs(
    task: TaskId,
    journal: Journal = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Follow new events until the task ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on a terminal too, one event per line.")] = False,
) -> None:
    """Print the log of a task.

    It has the task's events, one per line. The journal may be in use.
    """
    with mistakes():
        parts.print_log(task, journal, follow=follow, as_json=as_json)


@app.command("replay")
def replay(
    task: TaskId,
    journal: Journal = None,
    *,
    settings: Annotated[
        Path | None,
        typer.Option(
            callback=existing_path,
            help="Another settings file, or a folder with one.",
            show_default="those of the original run",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay a task without models and surfaces.

    The models' answers and the tools' results are the recorded ones. All else runs
    again: parsing of answers, the policy, the limits, the machines. Prints the
    transitions up to the first difference; the exit code is 1 if there is one.
    """
    with mistakes():
        same = parts.replay_task(parts.terminal(), task, journal, settings, as_json=as_json)
    raise typer.Exit(0 if same else 1)


def _who(*, yes: bool, no_input: bool, as_json: bool, has_console: bool = False) -> Attendance:
    if yes and no_input:
        fail("--yes and --no-input can't be combined")
    return parts.attendance(yes=yes, no_input=no_input, as_json=as_json, has_console=has_console)


def _stage(console: Console, who: Attendance, *, log: bool, abandon: bool) -> TaskSession:
    live = console.is_terminal and not (console.is_dumb_terminal or console.quiet or log)
    return parts.TaskSession(console, live, who, abandon=abandon)


def _changes(who: Attendance, log_file: Path | None, journal: Path | None, *, log: bool) -> dict[str, Any]:
    """Return the changes that the options make to the settings."""
    changes: dict[str, Any] = {"log": {"stream": "auto" if log else "off"}}
    if log_file is not None:
        changes["log"]["file"] = log_file.absolute()
    if journal is not None:
        changes["journal"] = {"path": journal.absolute()}
    if who.absent:
        changes["system"] = {"ask_question": False}
    return changes


def _recording(file: Path | None) -> dict[str, Any]:
    """Return the change for `--record`.

    An existing file is refused, since a recording has one run.
    """
    if file is None:
        return {}
    if file.exists():
        fail(f"{file}: already exists; give the recording another name, or delete the file")
    return {"record": file.absolute()}


@policy_app.command("check")
def check(
    path: Annotated[Path, typer.Argument(callback=existing_path, show_default=False, help="A folder to run.")],
    *,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Show the policy's verdict on each action.

    The policy allows an action, denies it, or has a person approve it. The task
    really runs, on a copy that is deleted afterwards. No person is asked: actions
    that need an approval run, and denied ones do not. Tasks are refused whose tools
    act beyond the copy: MCP servers, plug-ins, mail, browsers, devices, displays of
    people, shells that are not isolated, and workspaces outside the folder.
    """
    if path.is_file():
        fail(f"a trial run needs a folder that it can copy, as `callboard init` writes it; {path} is a file")
    with mistakes(), tempfile.TemporaryDirectory() as folder:
        quiet = {
            "log": {"stream": "off", "file": None},
            "journal": {"path": Path(folder, "trial.db"), "durability": "process"},
            "models": models_of(model or ()) | {"record": None},
            "system": {"safe_guard": False, "ask_question": False},
            "fleet": _NO_FLEET,
        }
        task, placed = parts.prepare(path, None, Path(folder, path.resolve().name), quiet)
        placed = parts.keep_inside(placed)
        explained = placed.policy.model_copy(update={"explain": True})
        with callboard.Supervisor.start(placed.model_copy(update={"policy": explained})) as supervisor:
            warn(supervisor.warnings)
            handle = supervisor.submit(task)
            verdicts = [event for event in handle.events() if event.name is EventName.POLICY_DECIDED]
            result = handle.result()
    if as_json:
        typer.echo(
            json.dumps([{"agent": event.agent, "step": event.step, **event.data} for event in verdicts], indent=2)
        )
    else:
        parts.print_verdicts(parts.terminal(), verdicts, result)


@fleet_app.callback(invoke_without_command=True)
def fleet(context: typer.Context, *, settings: SettingsPath = None, as_json: AsJson = False) -> None:
    """List the machines of a fleet, or serve it.

    Each machine has its state, its version of Callboard, the number of its
    targets, the running and queued tasks of other machines, and the time since its
    last sign. The server has its version, and whether it writes to its disk before
    it confirms. Nothing is changed.
    """
    if context.invoked_subcommand is not None:
        if settings is not None or as_json:
            fail(f"--settings and --json belong to the list: write callboard fleet {context.invoked_subcommand} FILE")
        return
    with mistakes():
        parts.print_machines(parts.terminal(), settings, as_json=as_json)


@fleet_app.command("setup")
def setup(
    path: SettingsPlace = None,
    *,
    machine: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A machine. May be repeated.", show_default="that of the settings"),
    ] = None,
) -> None:
    """Make the streams on the server, and print its configuration.

    It uses the credentials of the settings, which must be allowed to make streams.
    The configuration has the settings of the server's version, and each machine
    as a user with the permissions that it needs. What is there is kept.
    """
    with mistakes():
        parts.set_up_fleet(path, machine or ())


@fleet_app.command("serve")
def serve(
    path: SettingsPlace = None,
    *,
    model: Model = None,
    journal: JournalFile = None,
    log: Log = False,
    log_file: LogFile = None,
) -> None:
    """Do subtasks of other machines, until Ctrl-C.

    The first Ctrl-C drains: no more work is begun, and the command ends once the
    begun work has ended. SIGTERM does the same. A second one stops at once: the
    journal keeps the tasks, and they are resumed by the next start.

    Questions and approvals are put to the people where a task was submitted.
    """
    changes = _changes(parts.Attendance(), log_file, journal, log=log)
    with mistakes():
        parts.serve_fleet(parts.terminal(), path, changes | {"models": models_of(model or ())})


@app.command("mcp")
def mcp(
    path: SettingsPlace = None,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Serve all callers with a token over HTTP on 127.0.0.1, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port of --http; 0 for a free one.", show_default="8438"),
    ] = None,
    caller: Annotated[
        str | None,
        typer.Option(help="The caller over stdio, of mcp_server.callers in the settings.", show_default="local"),
    ] = None,
    new_token: Annotated[
        bool,
        typer.Option("--new-token", help="Print a token for a caller over HTTP and its lines of settings, and end."),
    ] = False,
    with_console: Annotated[
        bool, typer.Option("--console/--no-console", help="Let people answer in the console in the browser.")
    ] = True,
    model: Model = None,
    journal: JournalFile = None,
    log: Log = False,
    log_file: LogFile = None,
) -> None:
    """Serve other agents as an MCP server, over stdio or HTTP.

    They give tasks, wait, and get verified results. Approvals stay with people: in
    the console, and with --http in the terminal. The standard error has the link of
    the console, or over stdio, where the client reads it, a command that prints one.

    The journal keeps the tasks. When this command ends, unfinished ones are
    suspended, and its next start resumes them.
    """
    if new_token:
        parts.print_new_token(caller)
        return
    if http and caller is not None:
        fail("--caller is for stdio; over HTTP, the token of a request says who calls")
    if port is not None and not http:
        fail("--port belongs to --http")
    changes = _changes(parts.Attendance(), log_file, journal, log=log)
    with mistakes():
        settings = parts.mcp_settings(path, changes | {"models": models_of(model or ())})
        console = parts.terminal(stderr=True)
        parts.serve_mcp(console, settings, caller=caller, http=http, port=port, has_console=with_console)


@app.command()
def graph(
    agent: Annotated[AgentKind, typer.Argument(help="The kind of agent.", show_default=False)],
    *,
    as_json: AsJson = False,
) -> None:
    """Print the state machine of an agent.

    It is a diagram in Mermaid.
    """
    from callboard.actors.processing import MACHINES
    from callboard.actors.states import By, mermaid

    machine = MACHINES[agent]
    if not as_json:
        typer.echo(mermaid(machine), nl=False)
        return
    moves = {
        source: {target: [str(cause) for cause in By if cause in by] for target, by in row.items()}
        for source, row in machine.transitions.items()
    }
    typer.echo(json.dumps({"initial": machine.initial, "final": machine.final, "transitions": moves}, indent=2))


def schema_names() -> list[str]:
    """List the messages and files that have a schema."""
    return [*parts.file_schemas(), *sorted(Message.registry)]


@app.command()
def schema(
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE | FILE",
            autocompletion=schema_names,
            help="The tag of one message, such as task; all by default. "
            "Or the name of a file: callboard.yaml, task.yaml, script.yaml, routine.yaml.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the schemas of messages and files.

    They are in JSON Schema.
    """
    messages, files = Message.registry, parts.file_schemas()
    if message in files:  # for editors
        typer.echo(files[message].read_text(encoding="utf-8"), nl=False)
        return
    if message is not None and message not in messages:
        every = schema_names()
        hint = did_you_mean(message.lower().replace("-", "_"), every, f"there are: {', '.join(every)}")
        fail(f"there is no message or file {message!r}{hint}")
    if message is not None:
        content = messages[message].model_json_schema()
    else:
        union: Any = reduce(or_, (messages[tag] for tag in sorted(messages)))
        from pydantic import Field, TypeAdapter

        content = TypeAdapter(Annotated[union, Field(discriminator="kind")]).json_schema()
    typer.echo(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **content}, indent=2))


@app.command()
def completion() -> None:
    """Print a script for completion in bash and zsh.

    callboard completion > ~/.local/share/bash-completion/completions/callboard
    """
    typer.echo(parts.completion_script(typer.main.get_command(app)), nl=False)


@app.command("docs")
def docs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAGE]", help="A page; a list of all by default.", autocompletion=_page_names, show_default=False
        ),
    ] = None,
) -> None:
    """List the pages of the documentation, or print one.

    The page README is an index by purpose. The pages are installed with the
    package; a mention of docs/models.md is the page models. A terminal shows a
    page's layout; a file or pipe gets its Markdown.
    """
    if name is None:
        typer.echo(parts.page_list(), nl=False)
    else:
        parts.print_page(parts.terminal(), name)


@app.command("tools")
def tools(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER] [NAME]",
            help="A settings file, or a folder with one; and a surface, an MCP server or a tool, all by default.",
            show_default=False,
        ),
    ] = None,
    *,
    settings: SettingsPath = None,
    as_json: AsJson = False,
) -> None:
    """List the tools that agents have.

    The list has their arguments, effects, hazards and resources. The tools are
    those of the surfaces, plug-ins and MCP servers in the settings.
    MCP servers are started, and ended afterwards; the exit code is 1 if one can't
    be started.
    """
    with mistakes():
        path, name = parts.folder_and_name(arguments or (), settings)
        complete = parts.list_tools(
            parts.terminal(), callboard.Settings.load(parts.settings_at(path)), name, as_json=as_json
        )
    raise typer.Exit(0 if complete else 1)


@app.command("doctor")
def doctor(
    path: SettingsPlace = None,
    *,
    online: Annotated[bool, typer.Option("--online", help="Also start the MCP servers, or connect to them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation for missing parts.

    Checks the settings, the journal, the surfaces, MCP servers, models and
    extras, and prints the commands that install missing parts. Without --online
    no program is started, and nothing is sent. The exit code is 1 if a part that
    is configured does not work.
    """
    with mistakes():
        works = parts.examine(parts.terminal(), parts.settings_at(path), online=online, as_json=as_json)
    raise typer.Exit(0 if works else 1)


@app.command()
def config(
    path: SettingsPlace = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the effective settings as YAML.

    They come from the file, the environment and the defaults. Secrets are
    hidden.
    """
    with mistakes():
        sections = callboard.Settings.load(parts.settings_at(path)).model_dump(mode="json", by_alias=True)
    text = json.dumps(sections, indent=2, ensure_ascii=False) + "\n" if as_json else _yaml(sections)
    typer.echo(text, nl=False)


def _yaml(content: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return text
