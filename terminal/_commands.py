"""Parse the command line, and report mistakes in one sentence."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from callboard.history import plain
from callboard.messages import (
    AgentKind,
    CallboardError,
    Outcome,
    SupervisorStoppedError,
    did_you_mean,
    plain_problems,
    reason_of,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from callboard.messages import TaskResult


_Mistake: Any = typer.BadParameter.__mro__[2]
"""The base class of typer's exceptions for mistakes in a call; it has no public name."""


class Commands(TyperGroup):
    """The commands.

    They show the usage on request only, not after a mistyped argument.
    """

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command, and leave with its exit code."""
        try:
            code = super().main(args=args, prog_name=prog_name, **{**extra, "standalone_mode": False})
        except typer.Abort:
            code = 1
        except _Mistake as error:
            context = getattr(error, "ctx", None)
            message = str(getattr(error, "message", "")).rstrip(".")
            if isinstance(error.__context__, ValidationError):  # of a parameter's type
                message = "; ".join(plain_problems(error.__context__.errors()))
            if type(error).__name__ == "NoArgsIsHelpError":  # a group of commands without one; Typer exports no class
                typer.echo(error.message, err=True)
                sys.exit(USAGE)
            parameter = getattr(error, "param", None)
            named = f"{parameter.opts[0]}: " if message and parameter is not None else ""
            help_hint = f"; see {context.command_path} --help" if context is not None else ""
            message = message or error.format_message().rstrip(".").replace(". Choose from:\n", ": one of ")
            message = _EXTRA_ARGUMENTS.sub(r"too many arguments: \1", " ".join(message.split()))
            try:
                fail(f"{named}{message}{help_hint}", USAGE)
            except typer.Exit as leaving:
                code = leaving.exit_code
        except Exception as error:  # the program's edge: a bug, or an error of a plug-in
            notes = getattr(error, "__notes__", [])
            error.__notes__ = []
            lines = "".join(traceback.format_exception(error)).splitlines()
            typer.echo("\n".join(map(visible, lines)), err=True)
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            what = f"an unexpected error ended the command: {reason}; please report it with the lines above"
            with contextlib.suppress(typer.Exit):
                fail("\n".join([what, *notes]))
            code = EXIT_CODES[Outcome.ERROR]
        sys.exit(code if isinstance(code, int) else 0)


_EXTRA_ARGUMENTS = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.+)\)")


def existing_path(path: Path | None) -> Path | None:
    """Parse an existing path whose name can be printed and encoded."""
    if path is None:
        return None
    try:
        str(path).encode()
    except UnicodeEncodeError:
        fail(f"{path}: its name is not UTF-8: rename it first")
    if not os.path.lexists(path):
        fail(f"{path}: there is no such file or folder")
    return path


def task_name(value: str) -> str:
    """Parse the name of a task, which is no path."""
    if "/" in value and os.path.lexists(value):
        fail(f"{value}: is a path, not a task: name the task before it, as in: TASK {shlex.quote(value)}")
    return value


EXIT_CODES = {
    Outcome.FINISHED: 0,
    Outcome.FAILED: 1,
    Outcome.ERROR: 3,
    Outcome.CANCELLED: 4,
    Outcome.TIMED_OUT: 5,
    Outcome.OUT_OF_BUDGET: 6,
    Outcome.REJECTED: 7,
}
"""The exit codes of `callboard run` when the task is over."""
USAGE, NOT_VERIFIED, INTERRUPTED = 2, 8, 130
COMPLETE = "_CALLBOARD_COMPLETE"
"""The variable with which the script asks for completions; typer reads it."""
WORSE = 9
"""The exit code of `callboard eval` if a pass rate is below the earlier one by more than the threshold."""
DEMO = "sales_report"
"""The example that needs no key, display or Office."""


class Again(StrEnum):
    """The runs that start again although they have a result."""

    NONE = "none"
    ERRORS = "errors"
    ALL = "all"


@contextlib.contextmanager
def mistakes() -> Iterator[None]:
    """Turn errors that a user can correct into a message.

    No traceback is printed.
    """
    try:
        yield
    except SupervisorStoppedError as error:
        fail("\n".join([str(error), *getattr(error, "__notes__", [])]), EXIT_CODES[Outcome.ERROR])
    except CallboardError as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except shutil.Error as error:
        fail("\n".join(f"{source}: can't be copied: {why}" for source, _, why in error.args[0]))
    except OSError as error:
        fail(reason_of(error))


def warn(warnings: Iterable[str]) -> None:
    """Print a warning about a possible mistake."""
    for text in warnings:
        typer.echo(f"callboard: warning: {plain(text)}", err=True)


def fail(text: str, code: int = USAGE) -> NoReturn:
    for line in text.splitlines():
        typer.echo(f"callboard: {plain(line)}", err=True)
    raise typer.Exit(code)


_NEXT = re.compile(r",\s*(?=\w+\s*=)")
"""The separator in `host=A,app=B`; any other comma belongs to a name."""
_KIND = re.compile(r"\s*(\w*)\s*=(.*)", re.DOTALL)
"""`KIND=NAME`; a name's own equals sign, as in `recorded:FILE?by=order`, stands behind a colon."""
_IN_FILES = ("recorded", "scripted")


def models_of(options: Sequence[str]) -> dict[str, str]:
    """Parse `--model` options into models by kind of agent.

    A model without a kind is for all other agents. A relative file starts from the current folder, as everywhere in a
    call, and not from the settings'.
    """
    models: dict[str, str] = {}
    for part in (part for option in options for part in _NEXT.split(option)):
        kind, name = _read(part)
        if kind in models:
            fail(
                f"--model {part.strip()}: there is already a model for {kind or 'all kinds of agents'}: {models[kind]}"
            )
        models[kind] = name
    default_model = models.pop("", None)
    return ({} if default_model is None else dict.fromkeys(map(str, AgentKind), default_model)) | models


def model_options(models: dict[str, str]) -> list[str]:
    """Format the options for these models."""
    names = set(models.values())
    if len(names) == 1 and len(models) == len(AgentKind):
        return ["--model", *names]
    return [word for kind, name in models.items() for word in ("--model", f"{kind}={name}")]


def _read(part: str) -> tuple[str, str]:
    match = _KIND.fullmatch(part)
    kind, name = match.groups() if match else ("", part)
    if match and kind not in set(AgentKind):
        hint = did_you_mean(kind.lower(), AgentKind, f"there are: {', '.join(AgentKind)}")
        fail(f"--model {part.strip()}: there is no kind of agent {kind!r}{hint}")
    form, _, target = name.strip().partition(":")
    if form and not target.strip() and ":" in name:
        missing, example = ("file", "FILE") if form in _IN_FILES else ("model", "MODEL, such as openai:gpt-5")
        fail(f"--model {part.strip()} names no {missing} after the colon: write {form}:{example}")
    if not form or not target:
        fail(
            f"--model {part.strip()}: {name.strip()!r} is not a known model; "
            "known forms are: scripted:FILE, recorded:FILE, PROVIDER:MODEL, such as openai:gpt-5"
        )
    return kind, f"{form}:{Path(target).absolute()}" if form in _IN_FILES else name.strip()


def exit_code(result: TaskResult) -> int:
    """Return the exit code of a task that is over."""
    refused = result.outcome in {Outcome.FINISHED, Outcome.FAILED} and result.verified is False
    failed = any(not check.held and check.source == "task" for check in result.checks)
    denied = result.outcome is Outcome.FAILED and any(judge_result.answer == "no" for judge_result in result.judged)
    return NOT_VERIFIED if denied or (refused and (failed or result.ok)) else EXIT_CODES[result.outcome]
