"""Parsing of command lines into options and operands, like GNU programs."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

_DIGITS = re.compile(r"-[0-9]+")
_SINGLE = re.compile(r"-[^-]|--.*|-[0-9]+", re.DOTALL)
_DASHED_VALUE = re.compile(r"-[0-9]*")


@dataclass(frozen=True)
class ProgramUsage:
    """The supported options and operands of a program.

    An option is written as in its manual: ``-n``, ``--null``. A suffix describes its value: ``:`` for a value, ``?``
    for an optional one, only after an equals sign, ``<`` for a file that the program reads, ``>`` for one that it
    writes. ``@`` marks an option that follows links below the operands. ``-#`` is a number, as in ``-20``. Short
    options without a value may be written together.
    """

    options: str = ""
    operands: str = "files"
    """``files`` that are read, ``texts``, ``text files`` for a text and files, ``none``; ``in out`` for a file that is
    read and one that is written; ``+text`` for a text after a plus sign; ``programs`` for texts, and paths to find."""
    here: bool = False
    """Whether the program reads the working directory if it gets no files."""
    follows: bool = False
    """Whether the program follows links below its folders."""
    single: bool = False
    """Whether the program has its own syntax, in which short options and their values must be separate."""
    instead: str = ""
    """Options that replace the text of ``text files``."""

    @functools.cached_property
    def table(self) -> dict[str, str]:
        """The suffix of each option."""
        suffixes: dict[str, str] = {}
        for option in self.options.split():
            bare, end = (option[:-1], option[-1]) if option[-1] in ":?<>@" else (option, "")
            names = [bare] if bare.startswith("--") or bare == "-#" else [f"-{letter}" for letter in bare[1:]]
            suffixes.update(dict.fromkeys(names, end))
        return suffixes


@dataclass
class ParsedOptions:
    """The options and operands of one command line."""

    options: list[tuple[str, Word | None]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    mixed: bool = False
    """Whether an option follows an operand: some programs read it as an operand."""
    doubtful: list[Word] = field(default_factory=list)
    """Values of such options, which some programs read as operands."""

    def has(self, *names: str) -> bool:
        """Return whether one of the options was given."""
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[Word]:
        """Return the values of options."""
        return [value for name, value in self.options if name in names and value is not None]


def parse_options(usage: ProgramUsage, words: list[Word]) -> ParsedOptions:
    """Parse a program's arguments; options may follow operands, until ``--``.

    Raises:
        UnclearError: If an option is not supported, abbreviated, or lacks its value.
    """
    arguments, queue = ParsedOptions(), list(words)
    while queue:
        word = queue.pop(0)
        if word.known and not word.glob and word.text == "--":
            arguments.operands += queue
            break
        if not word.dashed or word.text == "-":
            arguments.operands.append(word)
            continue
        if usage.single and not _SINGLE.fullmatch(word.text):
            raise UnclearError(_unknown(word.text))
        arguments.mixed = arguments.mixed or bool(arguments.operands)
        following = list(queue)
        if word.text.startswith("--"):
            _long(usage.table, word, queue, arguments)
        else:
            _short(usage.table, word, queue, arguments)
        if arguments.mixed:
            arguments.doubtful += following[: len(following) - len(queue)]
    return arguments


def _long(table: dict[str, str], word: Word, queue: list[Word], arguments: ParsedOptions) -> None:
    name, equals, value = word.text.partition("=")
    end = table.get(name)
    if end is None or (word.split and not word.known) or (not equals and (word.glob or not word.known)):
        raise UnclearError(_unknown(name))
    if equals:
        if end in {"", "@"}:
            raise UnclearError(_unknown(word.text))
        arguments.options.append((name, Word(value, word.glob, known=word.known)))
    elif end in {"", "?", "@"}:
        arguments.options.append((name, None))
    else:
        arguments.options.append((name, _next(name, queue)))


def _short(table: dict[str, str], word: Word, queue: list[Word], arguments: ParsedOptions) -> None:
    if not word.known or word.glob:
        raise UnclearError(_unknown(word.text))
    if _DIGITS.fullmatch(word.text) and "-#" in table:
        arguments.options.append(("-#", Word(word.text[1:])))
        return
    for index, letter in enumerate(word.text[1:], 2):
        name, tail = f"-{letter}", word.text[index:]
        end = table.get(name)
        if end is None:
            raise UnclearError(_unknown(word.text))
        if end not in {"", "@"}:
            attached = Word(tail) if tail or end == "?" else _next(name, queue)
            arguments.options.append((name, attached))
            return
        arguments.options.append((name, None))


def _next(name: str, queue: list[Word]) -> Word:
    if not queue or queue[0].glob or queue[0].split or (queue[0].dashed and not _DASHED_VALUE.fullmatch(queue[0].text)):
        msg = f"the value of the option {name} is not known"
        raise UnclearError(msg)
    return queue.pop(0)


def _unknown(name: str) -> str:
    return f"the option {name!r} is not one that only reads"
