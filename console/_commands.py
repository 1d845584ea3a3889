"""How the command line takes what is typed: a mistake in a call is one sentence, like every other mistake."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from callboard.console._mistakes import USAGE, fail

if TYPE_CHECKING:
    from collections.abc import Sequence


_Mistake: Any = typer.BadParameter.__mro__[2]
"""What typer raises for all mistakes in a call; it has no public name."""


class Commands(TyperGroup):
    """The commands; the usage is shown to who asks for it, not to who mistyped a word."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run a command, and leave with its exit code."""
        try:
            code = super().main(args=args, prog_name=prog_name, **{**extra, "standalone_mode": False})
        except typer.Abort:
            code = 1
        except _Mistake as error:
            said = str(getattr(error, "message", "")).removeprefix("Value error, ").rstrip(".")
            parameter = getattr(error, "param", None)
            named = f"{parameter.opts[0]}: " if said and parameter is not None else ""
            context = getattr(error, "ctx", None)
            asked = f"; see {context.command_path} --help" if context is not None else ""
            said = said or error.format_message().rstrip(".")
            try:
                fail(f"{named}{said}{asked}", USAGE)
            except typer.Exit as leaving:
                code = leaving.exit_code
        sys.exit(code if isinstance(code, int) else 0)


def there(path: Path | None) -> Path | None:
    """Take the path of something that is there, and has a name that can be shown and written down."""
    if path is None:
        return None
    try:
        str(path).encode()
    except UnicodeEncodeError:
        fail(f"{path}: its name is no UTF-8: rename it first")
    if not os.path.lexists(path):
        fail(f"{path}: there is no such file or folder")
    return path
