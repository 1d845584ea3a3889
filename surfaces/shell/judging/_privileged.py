"""Detection of commands that run a program as another user."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._environment_variables import PATH
from callboard.surfaces.shell.judging._lenient_reader import UNKNOWN_PART, LenientReader, decode_escapes
from callboard.surfaces.shell.judging._reading_programs import READS
from callboard.surfaces.shell.judging._writing_programs import WRITES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from callboard.surfaces.shell.judging._lenient_reader import SimpleCommand

_SWITCHING = """
sudo sudoedit sudo-rs visudo su su-rs su-exec gosu doas pkexec run0 runuser dzdo pfexec gksu gksudo kdesu kdesudo
"""
_TAKING_DATA = """
: [ [[ adduser apk apropos apt apt-cache apt-get aptitude brew cd chgrp chmod chown dnf dpkg echo exit export getent gh
git gpasswd groupadd groups hg info kill killall less ln man more npm pacman pgrep pidof pip pip3 pkill printf ps rpm
set snap strings systemctl test usermod whatis whereis yum zypper
"""
_RUNNING_SCRIPTS = "bash rbash sh dash zsh ksh mksh ash fish eval source . at batch ssh xargs parallel script"
_RUNNING = """
env nice nohup timeout stdbuf setsid ionice chrt taskset watch unshare nsenter chroot flock strace ltrace busybox
command builtin exec trap alias time
"""
PRIVILEGED = frozenset(_SWITCHING.split())
DATA_PROGRAMS = READS.keys() | WRITES.keys() | frozenset(_TAKING_DATA.split())
"""Programs whose words are texts, names and patterns. The words of all others may be a command."""
_SHELLS = frozenset(_RUNNING_SCRIPTS.split())
RUNNERS = _SHELLS | frozenset(_RUNNING.split())
_CODED = frozenset({"awk", "gawk", "mawk", "sed"})
FINDERS = frozenset({"find", "fd", "fdfind"})
EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
FIRST_IS_DATA = frozenset({"flock", "chroot", "ssh", "taskset"})
_JOINED = frozenset({"eval", "ssh", "watch", "parallel"})
_PRINTERS = frozenset({"echo", "printf"})
_NAMES = "|".join(sorted(map(re.escape, PRIVILEGED), key=len, reverse=True))
_ANYWHERE = re.compile(rf"(?<![\w.-])({_NAMES})(?![\w.-])")
_BEGINS = re.compile(rf"(?:^|[;&|(`!\n])[ \t]*(?:/[\w./-]*/)?({_NAMES})(?![\w./-])")
_CODE = re.compile(
    rf"(?:(?:\w[ \t]*\([ \t]*\[?[ \t]*|\b(?:system|exec|spawn|popen|qx)[ \t]*[{{(]?[ \t]*|\|[ \t]*)[\"'`]"
    rf"|(?<![A-Za-z])(?:spawn|qx\W|e)[ \t]+|[\"](?=[^\"]*\"[ \t]*\|))(?:/[\w./-]*/)?({_NAMES})(?![\w./-])"
)
"""In other languages: a call with the name first, a pipe, `exec`; in sed the command `e`."""
_WILD = frozenset("*?[")
_MOST_STEPS = 200_000
"""The most characters and words that are searched, each time that they are."""


def privileged(command: str) -> str:
    """Name the program by which a command would switch users, if any.

    It is found wherever a program's name or a script may be: after ``env``, ``xargs`` and programs that are not known,
    in scripts for shells and other languages, in here-documents, and in what is piped into a shell. If a program's
    name or a shell's script is put together when the command runs, it is found anywhere in the text. A name that is
    itself put together then is not found.
    """
    search = _Search(command)
    while search.texts and not search.name:
        search.text(search.texts.pop())
    return search.name


class _Search:
    """A search for the name of a privileged program in a command."""

    def __init__(self, command: str) -> None:
        self.name = ""
        self.texts = [command]
        """Scripts that are not searched yet."""
        self._command = command
        self._steps = 0
        self._texts = {command}

    def text(self, text: str) -> None:
        """Search a script."""
        if not self._may_go_on(len(text)):
            return
        reader = LenientReader(text)
        reader.read()
        if reader.doubtful:
            self._anywhere()
        commands = [command for pipeline in reader.pipelines for command in pipeline]
        waits = any(_reads_its_script(command.words) for command in commands)  # from wherever its input comes
        for pipeline in [commands] if waits else reader.pipelines:
            self._inputs(pipeline)
            for command in pipeline:
                for value in command.assigned if command.words else ():
                    self._matches(_BEGINS, value)
                self._words(command.words)

    def _words(self, words: list[str]) -> None:
        """Search a command, and those that its words are."""
        lists = [words]
        while lists and not self.name and self._may_go_on(len(lists[-1])):
            head, *arguments = lists.pop() or [""]
            program = head.split()[:1]
            name = program[0].rpartition("/")[2] if program else ""
            self._program(head, name)
            if name in FINDERS:
                lists += [arguments[index + 1 :] for index, word in enumerate(arguments) if word in EXECS]
            if name in _CODED or name in FINDERS:
                self._code(arguments)
            elif name not in DATA_PROGRAMS and not (name == "command" and arguments[:1] in (["-v"], ["-V"])):
                lists += self._arguments(name, arguments)

    def _program(self, head: str, name: str) -> None:
        """Check the name of a program."""
        folder = head.rpartition("/")[0]
        patterns = folder in PATH.split(":") or not _WILD.isdisjoint(folder)
        patterns = patterns and not _WILD.isdisjoint(name) and any(sign.isalnum() for sign in name)
        self.name = self.name or next(
            (
                candidate
                for candidate in PRIVILEGED
                if name == candidate or (patterns and fnmatch.fnmatchcase(candidate, name))
            ),
            "",
        )
        if UNKNOWN_PART in head:
            self._anywhere()

    def _arguments(self, name: str, words: list[str]) -> Iterator[list[str]]:
        """Search words that may be run; yield commands among them."""
        operands = [index for index, word in enumerate(words) if not word.startswith("-")]
        if name in FIRST_IS_DATA and operands:
            words = words[operands[0] + 1 :]
            operands = [index for index, word in enumerate(words) if not word.startswith("-")]
        if name in _SHELLS and any(UNKNOWN_PART in words[index] for index in operands[:1]):
            self._anywhere()
        if name in _JOINED:
            self._script(" ".join(words[operands[0] :] if operands and name not in FIRST_IS_DATA else words))
        self._code(words)
        for index, word in enumerate(words):
            folder, _, bare = word.rpartition("/")
            if (not folder or folder in PATH.split(":")) and bare in DATA_PROGRAMS | RUNNERS | _CODED | FINDERS:
                yield words[index:]
                return
            for part in (word, word.partition("=")[2], word.rpartition("=")[2], word[2:] if word[:2] == "-S" else ""):
                self._matches(_BEGINS, part)
                if name in RUNNERS and re.search(r"\W", part):
                    self._script(part)

    def _inputs(self, pipeline: list[SimpleCommand]) -> None:
        """Search the texts that a shell or an unknown program reads."""
        unknown = [command.words for command in pipeline if not DATA_PROGRAMS.issuperset(command.words[:1])]
        texts = [text for command in pipeline for text in command.inputs]
        for command in pipeline:
            if command.words[:1] and command.words[0] in _PRINTERS:
                texts += [" ".join(command.words[1:]), *command.words[1:]]
        if any(word.rpartition("/")[2] in _SHELLS for words in unknown for word in words):
            for text in texts:
                self._script(decode_escapes(text))
                if UNKNOWN_PART in text:
                    self._anywhere()
        if unknown:
            self._code(texts)

    def _code(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._matches(_CODE, text)

    def _may_go_on(self, steps: int) -> bool:
        """Count steps; after too many, a name counts anywhere."""
        self._steps += steps
        if self._steps > _MOST_STEPS:
            self._anywhere()
        return self._steps <= _MOST_STEPS

    def _script(self, text: str) -> None:
        if text not in self._texts:
            self._texts.add(text)
            self.texts.append(text)

    def _anywhere(self) -> None:
        self._matches(_ANYWHERE, self._command)

    def _matches(self, pattern: re.Pattern[str], text: str) -> None:
        match = pattern.search(text)
        if match is not None:
            self.name = self.name or match[1]


def _reads_its_script(words: list[str]) -> bool:
    """Return whether a command is a shell without a script."""
    name = words[0].rpartition("/")[2] if words else ""
    return name in _SHELLS and not any(word[:1] not in {"-", "+"} for word in words[1:])
