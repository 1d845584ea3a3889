"""Detection of commands that run a program as another user."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from callboard.actors.servers.shell._syntax import LONGEST, WORDS, parser

_PRIVILEGED = frozenset({"sudo", "sudoedit", "su", "doas", "pkexec", "run0", "runuser"})
_KEYWORDS = "time exec command builtin coproc"
_RUNNERS = frozenset(
    f"{_KEYWORDS} env nice nohup timeout stdbuf xargs setsid ionice chrt taskset watch parallel unshare nsenter chroot"
    " flock strace ltrace busybox".split()
)
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "eval", "trap", "script"})
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PROGRAM = re.compile(r"[a-z./][\w./+-]*")
_MOST = 50


def privileged(command: str) -> str:
    """Name the program by which a command would switch users, if any.

    It is found at each position of a program's name: after ``env``, ``xargs`` and the like, and in scripts passed to a
    shell. A name that is built at run time, for example from a variable, is not found.
    """
    found = parser()
    left: list[str | list[str]] = [command]
    for _ in range(_MOST):
        if found is None or not left:
            break
        each = left.pop()
        if isinstance(each, list):
            if PurePosixPath(each[0]).name in _PRIVILEGED:
                return PurePosixPath(each[0]).name
            left += _run_by(each)
        elif len(each) <= LONGEST:
            nodes = [found.parse(each.encode(errors="replace")).root_node]
            while nodes:
                node = nodes.pop()
                nodes += node.children
                words = [_bare(child.text) for child in node.children if child.type in WORDS | {"command_name"}]
                left += [words] if node.type == "command" and words else []
    return ""


def _run_by(words: list[str]) -> list[str | list[str]]:
    """Return the commands and scripts that a command's words run."""
    name = PurePosixPath(words[0]).name
    if name in _SHELLS:
        return [" ".join(words[1:]), *(word for word in words[1:] if " " in word)]
    if name == "find":
        return [words[place + 1 :] for place, word in enumerate(words[:-1]) if word in _EXECS]
    if name in _RUNNERS:
        first = next((place for place, word in enumerate(words) if place and _PROGRAM.fullmatch(word)), 0)
        return [words[first:]] if first else []
    return []


def _bare(text: bytes | None) -> str:
    return re.sub(r"[\"'\\]", "", (text or b"").decode(errors="replace"))
