"""The ways in which the programs of a device fail."""

from __future__ import annotations

from typing import NoReturn


class ProgramError(Exception):
    """A program ends with an exit code, an output and an error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        super().__init__(err or out)
        self.code = code
        self.out = out
        self.err = err


def fail(err: str = "", code: int = 255, out: str = "") -> NoReturn:
    """End a program with lines of output and of error.

    Raises:
        ProgramError: Always.
    """
    raise ProgramError(code, out and f"{out}\n", err and f"{err}\n")


def thrown(command: str, what: str) -> NoReturn:
    """End a program with a service's exception: ``BasicShellCommandHandler.exec``.

    Raises:
        ProgramError: Always.
    """
    fail(f"\nException occurred while executing '{command}':\n{what}")


def argument(words: list[str], index: int, command: str) -> str:
    """Return a required argument.

    Raises:
        ProgramError: If it is missing.
    """
    if index >= len(words):
        last = words[-1] if words else command
        thrown(command, f'java.lang.IllegalArgumentException: Argument expected after "{last}"')
    return words[index]
