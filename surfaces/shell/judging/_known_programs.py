"""Analysis of known programs; an unknown one needs an approval."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._environment_variables import check_variable
from callboard.surfaces.shell.judging._find_command import find
from callboard.surfaces.shell.judging._git_commands import git
from callboard.surfaces.shell.judging._option_parsing import ProgramUsage, parse_options
from callboard.surfaces.shell.judging._reading_programs import READS, reads
from callboard.surfaces.shell.judging._scripts import awk, printf_format, sed_script
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word
from callboard.surfaces.shell.judging._writing_programs import WRITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.shell.judging._touched_files import Touched

_NUMBER = re.compile(r"[0-9.]+[smhd]?")
_SET = re.compile(r"-[euo]+|-o|pipefail|errexit|nounset")
_PS = frozenset({"aux", "ax", "-e", "-f", "-ef", "-A", "-x"})
_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprstuwxzLOGNS")
_TEXTS = frozenset({"-n", "-z", "-t"})
_BINARY = frozenset({"=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_WRAPPERS = {
    "env": ProgramUsage("-0 --null"),
    "nice": ProgramUsage("-n: -# --adjustment:"),
    "nohup": ProgramUsage(),
    "stdbuf": ProgramUsage("-i: -o: -e: --input: --output: --error:"),
    "time": ProgramUsage("-p"),
    "timeout": ProgramUsage("-k: -s: -v --kill-after: --signal: --preserve-status --foreground --verbose"),
}


def program(name: Word, words: list[Word], touched: Touched) -> None:
    """Record the effects of a program with its arguments.

    Raises:
        UnclearError: If its effects are unknown.
    """
    bare = name.literal
    if bare in _SPECIAL:
        _SPECIAL[bare](words, touched)
    elif bare in WRITES:
        WRITES[bare](words, touched)
    elif bare in _WRAPPERS:
        _wrapped(bare, words, touched)
    elif bare in READS:
        reads(bare, words, touched)
    else:
        msg = f"the effects of the program {bare!r} are unknown"
        raise UnclearError(msg)


def _wrapped(name: str, words: list[Word], touched: Touched) -> None:
    """Record the effects of a program that a wrapper runs."""
    queue = list(words)
    options: list[Word] = []
    while queue and queue[0].dashed:
        options.append(queue.pop(0))
        last = options[-1].literal
        end = _WRAPPERS[name].table.get(last, "")
        if end == ":" and queue:
            options.append(queue.pop(0))
        if last == "--":
            break
    if parse_options(_WRAPPERS[name], options).operands:
        msg = f"the options of {name} are not supported"
        raise UnclearError(msg)
    if name == "timeout" and queue and not _NUMBER.fullmatch(queue.pop(0).literal):
        msg = "the duration of 'timeout' is not supported"
        raise UnclearError(msg)
    while name == "env" and queue and "=" in queue[0].literal:
        variable, _, value = queue.pop(0).literal.partition("=")
        check_variable(variable, value)
    if not queue or queue[0].literal in _BUILTINS:
        msg = f"{name} runs no program, and may show the environment"
        raise UnclearError(msg)
    program(queue[0], queue[1:], touched)


def _test(words: list[Word], touched: Touched) -> None:
    queue = list(words)
    if queue and queue[0].known and queue[0].text == "!":
        queue.pop(0)
    if any(word.split or word.glob for word in queue):
        msg = "the words of a test are not known"
        raise UnclearError(msg)
    if len(queue) == 2 and queue[0].literal in _UNARY:  # an operator and its operand
        if queue[0].text not in _TEXTS:
            touched.read(queue[1])
    elif len(queue) == 3 and queue[1].literal in _BINARY:  # an operator and its two operands
        return
    elif len(queue) > 1:
        msg = "the test is not supported"
        raise UnclearError(msg)


def _printf(words: list[Word], _: Touched) -> None:
    if words and words[0].known and words[0].text == "--":
        words = words[1:]
    if not words or words[0].dashed:
        msg = "printf may set a variable"
        raise UnclearError(msg)
    printf_format(words[0].literal)


def _cd(words: list[Word], touched: Touched) -> None:
    if len(words) != 1:
        msg = "the new working directory is unknown"
        raise UnclearError(msg)
    touched.enter(words[0])


def _sed(words: list[Word], touched: Touched) -> None:
    usage = ProgramUsage("-nErszu -e: -i? --quiet --silent --regexp-extended --expression: --null-data --in-place?")
    arguments = parse_options(usage, words)
    scripts, files = arguments.values("-e", "--expression"), list(arguments.operands)
    if not scripts and files:
        scripts = [files.pop(0)]
    for script in scripts:
        sed_script(script.literal)
    if arguments.doubtful:
        msg = "it is unknown which argument is sed's script"
        raise UnclearError(msg)
    changes = arguments.has("-i", "--in-place")
    if any(value.text for value in arguments.values("-i", "--in-place")):
        msg = "sed keeps a copy of each file that it changes"
        raise UnclearError(msg)
    for file in files:
        touched.read(file)
        if changes:
            touched.write(file, repeatable=False)


def _awk(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-F: -v:"), words)
    if arguments.mixed:
        msg = "awk reads options after its program as files"
        raise UnclearError(msg)
    for value in arguments.values("-v"):
        awk(value.literal)
    if arguments.operands:
        awk(arguments.operands[0].literal)
    for file in arguments.operands[1:]:
        if "=" in file.text or file.split:
            awk(file.literal)  # an assignment or a file
        touched.read(file)


def _all_in(allowed: Callable[[str], object]) -> Callable[[list[Word], Touched], None]:
    """Make the analysis of a program that takes only certain arguments."""

    def check(words: list[Word], _: Touched) -> None:
        for word in words:
            if not allowed(word.literal):
                msg = f"the argument {word.text!r} is not supported there"
                raise UnclearError(msg)

    return check


def _set(words: list[Word], _: Touched) -> None:
    if not words or not all(_SET.fullmatch(word.literal) for word in words):
        msg = "it may change how bash reads commands, or show all variables"
        raise UnclearError(msg)


def _anything(_: list[Word], __: Touched) -> None:
    """Record nothing: no argument of the program has an effect."""


_SPECIAL: dict[str, Callable[[list[Word], Touched], None]] = {
    ":": _anything,
    "[": _test,
    "awk": _awk,
    "cd": _cd,
    "echo": _anything,
    "exit": _all_in(_NUMBER.fullmatch),
    "find": find,
    "gawk": _awk,
    "git": git,
    "mawk": _awk,
    "printf": _printf,
    "ps": _all_in(_PS.__contains__),
    "sed": _sed,
    "set": _set,
    "test": _test,
}
_BUILTINS = frozenset({":", "cd", "exit", "set", "type"})
