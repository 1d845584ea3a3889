"""The command line: run a task in the terminal; print the machines, the messages' schema and the settings."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import sys
import tempfile
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import Field, TypeAdapter
from rich.console import Console
from rich.text import Text

from callboard.actors.processing import MACHINES
from callboard.actors.states import By, mermaid
from callboard.config import Settings
from callboard.console import (
    EXIT_CODES,
    INTERRUPTED,
    SETTINGS_FILE,
    USAGE,
    Attendance,
    Stage,
    attendance,
    fail,
    keep_inside,
    mistakes,
    plain,
    play,
    prepare,
    print_result,
    print_verdicts,
    short,
)
from callboard.messages import AgentKind, EventName, Message, Task
from callboard.supervisor import Supervisor

_CODES = {code: outcome.value.replace("_", " ") for outcome, code in EXIT_CODES.items()} | {
    USAGE: "a mistake in the call, the task or the settings",
    INTERRUPTED: "left at once by a second Ctrl-C",
}
_EXIT_HELP = "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in sorted(_CODES.items())) + "."
app = typer.Typer(
    help="Agents that work in documents, windows, devices and shells, one supervisor between them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

policy_app = typer.Typer(help="Try the policy.", no_args_is_help=True)
app.add_typer(policy_app, name="policy")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def main() -> None:
    """Be the program `callboard`."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a letter that can't be shown or read is no reason to fail
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
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve everything that asks for approval; questions are still put.")
    ] = False,
    no_input: Annotated[
        bool,
        typer.Option("--no-input", help="Never ask: reject what asks for approval; agents learn that nobody answers."),
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Write the log to the standard error stream.")] = False,
    log_file: Annotated[
        Path | None, typer.Option(help="Add the log to a file, one JSON object a line.", show_default=False)
    ] = None,
) -> None:
    """Run a task, show its progress, and say how it ended.

    A folder holds callboard.yaml (settings), task.yaml and what they name.
    Each run works on a fresh copy of it. A task file runs where it is.

    Approvals and questions are put in the terminal; Enter alone is always the
    safe answer. Without a terminal, or with --json, nobody is asked, as with
    --no-input. Ctrl-C cancels; a second one leaves at once.
    """
    if yes and no_input:
        fail("--yes and --no-input exclude each other")
    who = attendance(yes=yes, no_input=no_input, as_json=as_json)
    console = Console(highlight=False, quiet=as_json)
    live = console.is_terminal and not (console.is_dumb_terminal or log or as_json)
    with mistakes():
        task, placed = prepare(path, settings, output, _changes(who, log_file, log=log))
        _print_head(console, task, placed.base if path.is_dir() else None, who)
        with Supervisor.start(placed) as supervisor:
            result = play(supervisor, who.sign(task), Stage(console, live, who))
            print_result(console, result)
            if as_json:
                typer.echo(result.model_dump_json(indent=2))
        raise typer.Exit(EXIT_CODES[result.outcome])


def _changes(who: Attendance, log_file: Path | None, *, log: bool) -> dict[str, Any]:
    """Say what the options change in the settings."""
    changes: dict[str, Any] = {"log": {} if log else {"format": "off"}}
    if log_file is not None:
        changes["log"]["file"] = log_file.absolute()
    if who.absent:
        changes["system"] = {"ask_question": False}
    return changes


def _print_head(console: Console, task: Task, copy: Path | None, who: Attendance) -> None:
    console.print(Text(plain(task.request) or f"a plan of {len(task.plan)} steps", style="bold"))
    if copy is not None:
        console.print(Text(f"on a copy in {short(copy)}", style="dim"), soft_wrap=True)
    if who.remark:
        console.print(Text(who.remark, style="dim"), soft_wrap=True)


@policy_app.command("check")
def check(
    path: Annotated[Path, typer.Argument(exists=True, show_default=False, help="A folder as in examples/.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show what the policy's rules say to a scripted run.

    The task runs for real, on a copy that is thrown away: nobody is asked, what
    would need an approval runs, and what is denied does not. Tasks with MCP
    servers of third parties can't be tried so, and are refused; so are those
    whose workspace lies outside of the folder.
    """
    if path.is_file():
        fail(f"a trial run needs a folder that it can copy, as in examples/; {path} is a file")
    with mistakes(), tempfile.TemporaryDirectory() as folder:
        quiet = {"log": {"format": "off", "file": None}, "system": {"safe_guard": False, "ask_question": False}}
        task, placed = prepare(path, None, Path(folder, path.resolve().name), quiet)
        if placed.mcp_servers:
            fail(
                f"a trial run would really call the tools of {', '.join(placed.mcp_servers)}: only documents are copied"
            )
        keep_inside(placed)
        with Supervisor.start(placed) as supervisor:
            handle = supervisor.submit(task)
            verdicts = [event for event in handle.events() if event.name is EventName.POLICY_DECIDED]
            result = handle.result()
    if as_json:
        typer.echo(
            json.dumps([{"agent": event.agent, "step": event.step, **event.data} for event in verdicts], indent=2)
        )
    else:
        print_verdicts(Console(highlight=False), verdicts, result)


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
        fail(f"there is no message {message!r}; {hint}")
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
    with mistakes():
        file = path / SETTINGS_FILE if path is not None and path.is_dir() else path
        shown = Settings.load(file).model_dump(mode="json", by_alias=True)
    text = json.dumps(shown, indent=2, ensure_ascii=False) + "\n" if as_json else _yaml(shown)
    typer.echo(text, nl=False)


def _yaml(content: Any) -> str:  # noqa: ANN401 - any JSON
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return text


if __name__ == "__main__":
    main()
