"""What a user can mend becomes a message, without a traceback."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, NoReturn

import typer

from callboard.console._text import plain
from callboard.messages import CallboardError, Outcome, SupervisorStoppedError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


@contextlib.contextmanager
def mistakes() -> Iterator[None]:
    """Turn what a user can mend into a message, without a traceback."""
    try:
        yield
    except SupervisorStoppedError as error:
        fail(str(error), EXIT_CODES[Outcome.ERROR])
    except CallboardError as error:
        fail(str(error))
    except BrokenPipeError:
        raise
    except shutil.Error as error:
        fail("\n".join(f"{source}: can't be copied: {why}" for source, _, why in error.args[0]))
    except OSError as error:
        fail(reason_of(error))


def warn(warnings: Iterable[str]) -> None:
    """Tell of what is no mistake for sure."""
    for text in warnings:
        typer.echo(f"callboard: warning: {plain(text)}", err=True)


def fail(text: str, code: int = USAGE) -> NoReturn:
    for line in text.splitlines():
        typer.echo(f"callboard: {plain(line)}", err=True)
    raise typer.Exit(code)
