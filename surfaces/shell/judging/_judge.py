"""Analysis of the files that a command will read and change."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from callboard.messages import Effect, Hazard
from callboard.surfaces._surface import UNKNOWN
from callboard.surfaces.shell.judging._braces import expand_braces
from callboard.surfaces.shell.judging._environment_variables import PATH, check_variable
from callboard.surfaces.shell.judging._known_programs import program
from callboard.surfaces.shell.judging._syntax import WORDS, parsed
from callboard.surfaces.shell.judging._touched_files import STREAMS, Touched
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word, evaluate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tree_sitter import Node

    from callboard.surfaces.shell.judging._disk import Disk

_ASSIGNMENT = re.compile(rb"([A-Za-z_]\w*)=(.*)", re.DOTALL | re.ASCII)
_BUILTIN = frozenset({":", "cd", "exit", "set", "type"})
_SHOWN = frozenset({"HOME", "LANG", "PAGER", "PATH", "TERM"})
_MOST_STEPS = 2_000


@dataclass(frozen=True)
class Judgement:
    """The result of a command's analysis."""

    effect: Effect
    hazards: frozenset[Hazard]
    resources: tuple[str, ...]
    """The files and folders that the command touches; a folder includes its content."""
    why: str = ""
    """The reason if the effects are unknown."""


UNSEEN = Judgement(Effect.ONCE, frozenset({Hazard.UNKNOWN}), (UNKNOWN,), "the files of its machine can't be listed")
"""The judgement if there are too many files, or their machine can't be reached."""


def judge(
    command: str,
    *,
    cwd: Path,
    disk: Disk,
    environment: Mapping[str, str],
    own_files: Collection[str] = (),
) -> Judgement:
    """Analyse a command; one that can't be analysed has the hazard `unknown`.

    The analysis reads the workspace, for links and for the names that a pattern may match, and changes nothing.

    Args:
        command: The command line for bash.
        cwd: The working directory, with links resolved.
        disk: The files of the machine, with the shell's workspace.
        environment: The whole environment of the command.
        own_files: Files that the task has created itself, as absolute paths.
    """
    touched = Touched(disk, cwd, own_files)
    why = _fill(touched, command, environment)
    if why:
        hazards = touched.hazards | {Hazard.UNKNOWN}
        return Judgement(Effect.ONCE, frozenset(hazards), (UNKNOWN,), why)
    paths = dict.fromkeys((*sorted(touched.reads), *(path for path, _ in touched.writes)))
    return Judgement(_effect(touched), frozenset(touched.hazards), tuple(f"file:{path}" for path in paths))


def touched_by(command: str, *, cwd: Path, disk: Disk, environment: Mapping[str, str]) -> tuple[Touched, bool]:
    """Record the files that a command touches; return whether all are known.

    The arguments are those of `judge`.
    """
    touched = Touched(disk, cwd)
    return touched, not _fill(touched, command, environment)


def _fill(touched: Touched, command: str, environment: Mapping[str, str]) -> str:
    """Record a command's effects; return why they are unknown, or nothing."""
    try:
        source = command.encode()
        _check_environment(environment, touched.disk)
        touched.variables = {
            name: Word(value) if name in _SHOWN else Word("", known=False, hidden=True)
            for name, value in environment.items()
        }
        touched.exported = frozenset(environment)
        if not Path(touched.folders[0]).is_relative_to(touched.disk.workspace):
            touched.hazards.add(Hazard.LEAVES)
        _Walk(source, touched).statement(parsed(source))
    except (UnclearError, UnicodeEncodeError, OSError) as error:
        return str(error) or type(error).__name__
    return ""


def _effect(touched: Touched) -> Effect:
    """Return the effect of a command from its record."""
    if touched.lasting or len(touched.writes) > 1:
        return Effect.ONCE
    if not touched.writes:
        return Effect.IDEMPOTENT if touched.caches else Effect.READ
    path, repeatable = touched.writes[0]
    reads_it = any(PurePosixPath(path).is_relative_to(read) for read in touched.reads)
    return Effect.IDEMPOTENT if repeatable and not reads_it else Effect.ONCE


def _check_environment(environment: Mapping[str, str], disk: Disk) -> None:
    folders = [disk.followed(folder) for folder in PATH.split(":")]
    outside = all(folder is not None and not folder.is_relative_to(disk.workspace) for folder in folders)
    if environment.get("PATH") != PATH or not outside:
        msg = "its programs are not those of the system"
        raise UnclearError(msg)
    for name, value in environment.items():
        if name not in {"PATH", "HOME"}:
            check_variable(name, value)


class _Walk:
    """A walk through a command in execution order."""

    def __init__(self, source: bytes, touched: Touched) -> None:
        self._source = source
        self._touched = touched
        self._steps = 0

    def statement(self, node: Node) -> None:
        """Record the effects of a statement.

        Raises:
            UnclearError: If its effects are unknown.
        """
        self._steps += 1
        if self._steps > _MOST_STEPS:
            msg = "it has too many steps"
            raise UnclearError(msg)
        steps = {
            "command": self._command,
            "compound_statement": self._children,
            "declaration_command": self._export,
            "do_group": self._children,
            "elif_clause": self._branches,
            "else_clause": self._branches,
            "for_statement": self._for,
            "if_statement": self._branches,
            "list": self._list,
            "negated_command": lambda negated: self.statement(negated.children[-1]),
            "pipeline": self._pipeline,
            "program": self._children,
            "redirected_statement": self._redirected,
            "subshell": lambda shell: self._touched.apart(lambda: self._children(shell)),
            "test_command": self._test,
            "variable_assignment": self._assign,
            "variable_assignments": self._children,
        }
        if node.type == "comment":
            return
        if node.type not in steps:
            msg = f"the form {node.type.replace('_', ' ')!r} is not supported"
            raise UnclearError(msg)
        steps[node.type](node)

    def _children(self, node: Node) -> None:
        for child in node.children:
            if child.is_named:
                self.statement(child)

    def _branches(self, node: Node) -> None:
        for child in node.children:
            if child.is_named:
                self._touched.sometimes(functools.partial(self.statement, child))

    def _list(self, node: Node) -> None:
        first, operator, second = (child for child in node.children if child.type != "comment")
        old_folders = self._touched.folders
        self.statement(first)
        if operator.type == "||":
            self._touched.folders = tuple(sorted({*old_folders, *self._touched.folders}))
        self._touched.sometimes(lambda: self.statement(second))

    def _pipeline(self, node: Node) -> None:
        for child in node.children:
            if child.is_named:
                self._touched.apart(functools.partial(self.statement, child))
        if self._touched.moved:
            msg = "it moves or deletes files while it uses others"
            raise UnclearError(msg)

    def _for(self, node: Node) -> None:
        word, name, *nodes = node.children
        if word.type != "for" or nodes[0].type != "in":
            msg = f"the form {word.type!r} is not supported"
            raise UnclearError(msg)
        body = nodes.pop()
        values = self._words(child for child in nodes if child.type not in {"in", ";", "comment"})
        variable = self._text(name).decode()
        check_variable(variable, "")
        for value in values:
            part = functools.partial(self._loop, variable, value, body)
            old_state, new_state = None, self._state()
            while old_state != new_state:  # a pattern may match several names: until another round changes nothing
                self._touched.sometimes(part)
                old_state, new_state = new_state if value.glob else self._state(), self._state()

    def _state(self) -> tuple[object, ...]:
        touched = self._touched
        return touched.folders, dict(touched.variables), bool(touched.writes), touched.moved

    def _loop(self, variable: str, value: Word, body: Node) -> None:
        self._touched.assign(variable, replace(value, names=value.glob))
        self.statement(body)

    def _redirected(self, node: Node) -> None:
        body, redirects = None, []
        for child in node.children:
            if child.type in {"file_redirect", "herestring_redirect"}:
                redirects.append(child)
            else:
                body = child
        for redirect in redirects:  # the body may change the target, so it is checked before and after
            self._redirect(redirect)
        if body is not None:
            self.statement(body)
            for redirect in redirects:
                self._redirect(redirect)

    def _redirect(self, node: Node) -> None:
        operator = next(child.type for child in node.children if not child.is_named)
        words = self._words(child for child in node.children if child.type in WORDS)
        if operator in {">&-", "<&-"} or node.type == "herestring_redirect":
            return
        if len(words) != 1:
            msg = "a redirect is not supported"
            raise UnclearError(msg)
        target = words[0]
        if operator in {">&", "<&"} and target.known and (target.text.isdecimal() or target.text == "-"):
            return
        if target.text.startswith("/dev/") and target.text not in STREAMS:
            msg = f"bash may connect to another machine for {target.text!r}"
            raise UnclearError(msg)
        if operator == "<" and not target.glob:
            self._touched.read(target)
        elif operator in {">", ">|", "&>", ">>", "&>>"}:
            self._written(target, repeatable=">>" not in operator)
        else:
            msg = f"the redirect {operator!r} is not supported"
            raise UnclearError(msg)

    def _written(self, target: Word, *, repeatable: bool) -> None:
        old_paths = [path for path, _ in self._touched.writes]
        count = len(old_paths)
        self._touched.write(target, repeatable=repeatable)
        if [path for path, _ in self._touched.writes[count:]] == old_paths[-1:]:  # the second check of a redirect
            del self._touched.writes[count:]

    def _command(self, node: Node) -> None:
        for child in node.children:
            if child.type == "variable_assignment":
                self._assign(child, exported=True)
            elif child.type in {"file_redirect", "herestring_redirect"}:
                self._redirect(child)
        skipped = {"variable_assignment", "file_redirect", "herestring_redirect", "comment"}
        every = self._words(child for child in node.children if child.type not in skipped)
        if not every:
            msg = "the name of a command is empty"
            raise UnclearError(msg)
        name, *words = every
        text = name.literal
        folder, _, bare = text.rpartition("/")
        if "/" in text and folder not in PATH.split(":"):
            msg = f"the program {text!r} is not one of the system's"
            raise UnclearError(msg)
        if folder and bare in _BUILTIN:
            msg = f"the effects of the program {text!r} are unknown"
            raise UnclearError(msg)
        self._touched.check_words(words)
        program(Word(bare), words, self._touched)

    def _test(self, node: Node) -> None:
        if node.children[0].type != "[":
            msg = "the form '[[' is not supported"
            raise UnclearError(msg)
        leaves: list[Node] = []
        stack = list(reversed(node.children[1:-1]))
        while stack:
            child = stack.pop()
            if child.type in {"unary_expression", "binary_expression"}:
                stack += reversed(child.children)
            else:
                leaves.append(child)
        program(Word("["), self._words(leaves), self._touched)

    def _export(self, node: Node) -> None:
        if node.children[0].type != "export" or len(node.children) == 1:
            msg = f"the form {node.children[0].type!r} is not supported"
            raise UnclearError(msg)
        for child in node.children[1:]:
            if child.type != "variable_assignment":
                msg = "the exported values are unknown"
                raise UnclearError(msg)
            if b"{" in self._text(child):
                msg = "bash may expand braces in an exported value"
                raise UnclearError(msg)
            self._assign(child)
        self._touched.lasting = True

    def _assign(self, node: Node, *, exported: bool = False) -> None:
        """Record an assignment; before a command it applies to that command only."""
        match = _ASSIGNMENT.fullmatch(self._text(node))
        if match is None or (
            node.parent is not None and node.parent.type == "declaration_command" and b"{" in match[2]
        ):
            msg = "the assignment is not supported"
            raise UnclearError(msg)
        name = match[1].decode()
        value = evaluate(match[2], self._touched.variables, assigned=True) if match[2] else Word("")
        value = value or Word("")
        check_variable(name, value.text if value.known and not value.glob else "\n")
        if not exported:
            self._touched.assign(name, value)

    def _words(self, nodes: Iterable[Node]) -> list[Word]:
        """Expand words; a pattern lists its folder, whatever the words are for."""
        raws = (raw for node in nodes for raw in expand_braces(self._text(node)))
        words = [word for raw in raws if (word := evaluate(raw, self._touched.variables)) is not None]
        for word in words:
            if word.glob and not word.names:
                self._touched.list_names(word)
        return words

    def _text(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]
