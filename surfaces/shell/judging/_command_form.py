"""The form of a command, which no filled value may change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._braces import expand_braces
from callboard.surfaces.shell.judging._lenient_reader import LenientReader
from callboard.surfaces.shell.judging._privileged import (
    DATA_PROGRAMS,
    EXECS,
    FINDERS,
    FIRST_IS_DATA,
    PRIVILEGED,
    RUNNERS,
)
from callboard.surfaces.shell.judging._syntax import WORDS, parsed
from callboard.surfaces.shell.judging._word_expansion import UnclearError, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue
    from tree_sitter import Node

_LETTERS = re.compile(r"\w+")
_DIGITS = re.compile(r"\d+")
_PLAIN = re.compile(r"[\w./,:=@%+ -]*")
"""The signs of names, numbers and addresses."""
_NO_PROGRAM = re.compile(r"-|[\d.]+[smhd]?$|\w+=")
"""An option, a number or an assignment before the program that another one runs."""
_JOINED_VALUE = re.compile(r"-\w[^A-Za-z]")
"""A short option with its value, such as ``-n1``."""
_FLAGS = {
    "env": "0iv",
    "ssh": "46ACTXnqtvx",
    "sudo": "AEHPSbins",
    "xargs": "0prtx",
    **dict.fromkeys(("bash", "dash", "sh"), "ceilnuvx"),
}
"""Options without a value of programs that run others."""
_RUNNING = RUNNERS | PRIVILEGED
_CODED = _RUNNING | {"awk", "gawk", "mawk", "sed", "find", "xargs"}
"""Programs whose words are commands, scripts or expressions, also where they look like names."""


def command_form(command: str) -> list[JsonValue]:
    """Return the form of a command, as `Server.form` describes it.

    Programs, operators, keywords, names of variables and options are keys of objects, and all words are texts, each
    as its program gets it. In a word that bash expands, and in the words of a program that may read them as code, the
    signs are a key, too: a value may change its letters and digits alone. The same holds for a whole command that can't
    be parsed.
    """
    try:
        source = command.encode()
        return _node(source, parsed(source))
    except (UnclearError, UnicodeEncodeError):
        return [{_signs(command): command}, *_programs(command)]


def _node(source: bytes, node: Node) -> list[JsonValue]:
    """Return the form of a part of a command."""
    if node.type == "comment":
        return []
    if node.type in WORDS:
        return list(_words(source, node))
    if node.type == "command":
        return [_command(source, node)]
    if node.type == "variable_assignment":
        name, _, value = _text(source, node).partition("=")
        return [{f"{name}={_signs(value)}": value}]
    if not node.children:
        return [{_text(source, node): None}]
    return [{node.type: [part for child in node.children for part in _node(source, child)]}]


def _command(source: bytes, node: Node) -> JsonValue:
    others: list[JsonValue] = []
    words: list[JsonValue] = []
    for child in node.children:
        if child.type == "command_name" or child.type in WORDS:
            words += _words(source, child)
        else:
            others += _node(source, child)
    if not words or not isinstance(words[0], str):  # bash puts the program's name together
        return {"": [*words, *others]}
    return {words[0]: [*_arguments(words[0], words[1:]), *others]}


def _arguments(program: str, words: Sequence[JsonValue]) -> list[JsonValue]:
    """Return a program's words; options, code and further programs have keys."""
    bare = program.rpartition("/")[2]
    arguments = [_argument(bare, word) for word in words]
    for place in _program_places(bare, words):
        arguments[place] = {"runs": [arguments[place], *_programs(str(words[place]))]}
    return arguments


def _program_places(program: str, words: Sequence[JsonValue]) -> Iterator[int]:
    """Yield the places of words that another program may run.

    A word after an option may be its value, or the program.
    """
    before: JsonValue = ""
    first = int(program in FIRST_IS_DATA)
    operands = certain = 0
    for place, word in enumerate(words):
        if program in FINDERS and isinstance(before, str) and before in EXECS:
            yield place
        if program in _RUNNING and certain <= first and isinstance(word, str) and not _NO_PROGRAM.match(word):
            operands += 1
            certain += not _may_take_value(program, before)
            if operands > first:
                yield place
        before = word


def _may_take_value(program: str, word: JsonValue) -> bool:
    """Return whether an option may have the next word as value."""
    if not isinstance(word, str) or not word.startswith("-") or "=" in word:
        return False
    return not _JOINED_VALUE.match(word) and not set(word[1:]) <= set(_FLAGS.get(program, ""))


def _argument(program: str, word: JsonValue) -> JsonValue:
    if not isinstance(word, str):
        return word
    if word.startswith("-") and word != "-":
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        return {_DIGITS.sub("0", f"{name}{equals}"): _data(program, value)}
    return _data(program, word)


def _data(program: str, word: str) -> JsonValue:
    """Return a word that is no option, with signs if code."""
    if program not in _CODED and (program in DATA_PROGRAMS or _PLAIN.fullmatch(word)):
        return word
    return {_signs(word): word}


def _programs(script: str) -> list[JsonValue]:
    """Return the programs that a text runs, as keys."""
    reader = LenientReader(script)
    reader.read()
    return [{word: None} for pipeline in reader.pipelines for command in pipeline for word in command.words[:1]]


def _words(source: bytes, node: Node) -> list[JsonValue]:
    """Return the words that bash makes of one."""
    words: list[JsonValue] = []
    for raw in expand_braces(source[node.start_byte : node.end_byte]):
        text = raw.decode()
        try:
            word = evaluate(raw, {})
        except UnclearError:  # it holds a variable, or a home
            words.append({_signs(text): text})
            continue
        if word is None:
            continue
        plain = word.known and not word.glob
        words.append(word.text if plain else {_signs(text): text})
    return words


def _signs(text: str) -> str:
    """Replace letters and digits that are side by side by one letter."""
    return _LETTERS.sub("w", text)


def _text(source: bytes, node: Node) -> str:
    return source[node.start_byte : node.end_byte].decode()
