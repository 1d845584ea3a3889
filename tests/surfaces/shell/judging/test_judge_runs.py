"""Random commands that are judged to read only, run by bash: they change nothing, and show nothing from outside."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.messages import Effect, Hazard
from callboard.surfaces.shell._base_shell import PATH
from callboard.surfaces.shell._isolation import sandbox, why_not
from callboard.surfaces.shell._local import _SCRIPT
from callboard.surfaces.shell.judging._disk import LocalDisk
from callboard.surfaces.shell.judging._judge import judge
from callboard.surfaces.shell.judging._reading_programs import READS

HIDDEN = "what lies outside"
UNLISTED = "its-name-lies-outside"
_NAMES = "a.txt|b.log|deep|deep/c.txt|a b|--output=made|-o|new|out|out/secret|..|.|-"
_PATTERNS = (
    "* ?* ./* *.txt [a-z]* -* deep/* */* {a,b} ~ ~/x a\\ b 'a?b' '-o' {a''.txt,out/secret} {.'',-delete} {a.txt,$x} $x"
    " {'out',deep}/* ../{outside,}/* ../* out/* ''~ \"$x\"* x{-o,''} {.,-exec,rm,'{}',';'} {1..2} ../outside/?*"
    " {a.txt,-o,b.log} .* .?"
)
_TEXTS = """x 1 1p s/a/b/ 's/a/b/w~made' '{print~$1}' '{print>"made"}' . -name +%s $HOME "$f" $f"""
_BEYOND = "-o -i -w --output=made --out -delete -exec -fprint -- -x --help -C -s"
_OTHERS = "touch rm tee sh cp xargs ./run export cd set [ git mkdir eval read"
_SED = (
    "s/a/b/ s/o/touch&made/ w~made e~touch~made r~a.txt p d 1 $ ! , ; ; ; / | # [ ] [/] \\ g e w q { } n N = y/a/b/"
    " \n y/[/]/x/ 2q"
)
_AWK = (
    '{ } print printf "x" > "made" | "sh" $1 1 ; , ( ) /a/ /a|b/ getline < NR == && || BEGIN END n++ = / \\'
    ' system("date>made")'
)
_FIND = (
    "-name x -type f -delete -exec rm ls cat sort -o {} + ; ! ( ) -print -fprint made -ls -newer a.txt -quit"
    " -maxdepth 1 . deep"
)
_TEST = "-f a.txt = x -v -n ! -a -o ( ) 1 -eq x[$(touch~made)] ] -nt -t -R -lt $x"


def split(text: str, sign: str = " ") -> tuple[str, ...]:
    """Divide a list of words, in which a blank is written as a tilde in the middle."""
    return tuple(re.sub(r"(?<=\w)~|(?<='.)~", " ", each) for each in text.split(sign))


NAMES, PATTERNS, TEXTS, BEYOND, OTHERS = split(_NAMES, "|"), *map(split, (_PATTERNS, _TEXTS, _BEYOND, _OTHERS))
SCRIPTS = {"sed": split(_SED), "awk": split(_AWK), "find": split(_FIND), "test": split(_TEST)}
"""By the program, the parts of its scripts, or of its words."""
LISTED = tuple(sorted(READS.keys() - {"sleep", "tail", "date", "hostname"}))
PROGRAMS = (*LISTED, *(4 * tuple(SCRIPTS)), "echo", "printf")


def simple(chosen: Random) -> str:
    """Write one program with words that it mostly understands."""
    name = chosen.choice(PROGRAMS if chosen.random() < 0.9 else OTHERS)
    options = sorted(READS[name].table) if name in READS and READS[name].table else ["-n", "-e"]
    if name in SCRIPTS and chosen.random() < 0.7:
        return scripted(chosen, name)
    words = [word(chosen, options) for _ in range(chosen.choice((0, 1, 1, 2, 2, 3, 4)))]
    front = chosen.choice(("", "", "", "", "", "env A=1 ", "nice ", "X=1 ", "timeout 1 ", "! ", "time "))
    behind = chosen.choice(("", "", "", "", "", " 2>&1", " < a.txt", " > /dev/null", " > new", " >&2", " 2>>b.log"))
    return f"{front}{' '.join((name, *words))}{behind}"


def scripted(chosen: Random, name: str) -> str:
    """Write a program with a script of its own language."""
    pieces = [chosen.choice(SCRIPTS[name]) for _ in range(chosen.randint(1, 7))]
    if name in {"sed", "awk"}:
        return f"{name} {chosen.choice(('', '-n ', '-E '))}'{chosen.choice(('', ' ')).join(pieces)}' a.txt"
    return f"{name} {' '.join(shlex.quote(piece) if chosen.random() < 0.8 else piece for piece in pieces)}"


def word(chosen: Random, options: list[str]) -> str:
    """Write an option, with a value or without, or a possible operand."""
    kind = chosen.random()
    if kind < 0.1:
        return f"-{chosen.choice(options).lstrip('-')[:1]}{chosen.choice(options).lstrip('-')[:1]}".replace("#", "1")
    if kind < 0.3:
        return chosen.choice(options).replace("#", "1")
    if kind < 0.45:
        return chosen.choice(options) + chosen.choice(("", "=", " ")) + chosen.choice((*TEXTS, *NAMES))
    return chosen.choice(BEYOND if kind < 0.5 else NAMES if kind < 0.75 else (*NAMES, *PATTERNS, *TEXTS))


def command(chosen: Random) -> str:
    """Write a command line; into some, characters are put at random."""
    text = simple(chosen)
    for _ in range(chosen.choice((0, 0, 1, 2))):
        text += chosen.choice((" | ", " | ", "; ", " && ", " || ", "\n", " |& ", " & ")) + simple(chosen)
    unset = "false && x='-o b.log'; {}"
    around = (
        unset,
        "({})",
        "for f in *.txt a; do {}; done",
        "for f in *; do {}; done",
        "false && x='-o b.log'; {}",
        "if {}; then ls; fi",
        "cd deep && {}",
    )
    text = chosen.choice(("{}", "{}", "{}", *around)).replace("{}", text)
    for _ in range(chosen.choice((0, 0, 0, 1, 2))):
        place = chosen.randint(0, len(text))
        text = text[:place] + chosen.choice("'\"\\$`(){};&|<># \n\t*?[]~-=!,:%a1\r\x0b\xa0é") + text[place:]
    return text


class Place:
    """A workspace with a link out of it, and its contents."""

    def __init__(self, top: Path) -> None:
        self.top, self.work, self.state = top, top / "work", top.with_name(f"{top.name}-state")
        self.state.mkdir()
        (self.work / "deep").mkdir(parents=True)
        (top / "outside").mkdir()
        (top / "outside" / "secret").write_text(HIDDEN, encoding="utf-8")
        (top / "outside" / UNLISTED).touch()
        for name in ("a.txt", "b.log", "deep/c.txt", "a b", "--output=made", "-o"):
            (self.work / name).write_text(f"one {name}\ntwo\n1\n", encoding="utf-8")
        (self.work / "run").write_text("#!/bin/sh\ntouch made\n", encoding="utf-8")
        (self.work / "run").chmod(0o755)
        (self.work / "out").symlink_to(top / "outside")
        self.before = self.stands()
        self.environment = {"PATH": PATH, "HOME": str(top / "home"), "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat"}

    def stands(self) -> list[tuple[object, ...]]:
        """Give the names, contents, modes, links and times of all that is there."""
        found: list[tuple[object, ...]] = []
        for path in sorted(self.top.rglob("*")):
            state = path.lstat()
            content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found.append((str(path), content, state.st_mode, state.st_mtime_ns, state.st_ino))
        return found

    def run(self, text: str) -> bytes:
        """Run a command as a shell does, and give its output."""
        words = ["/bin/bash", "--noprofile", "--norc", "-c", _SCRIPT, "bash", text, str(self.state)]
        if not why_not():
            words = [*sandbox(self.top, self.work, (self.state,), network=False, folder=self.state), *words]
        ended = subprocess.run(
            ["timeout", "-k", "1", "5", *words],  # noqa: S607 - whichever there is
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return ended.stdout


@settings(max_examples=int(os.environ.get("JUDGED_COMMANDS", "25")))
@given(seed=st.integers(0, 2**40))
def test_commands_judged_to_read_change_nothing(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    place = Place(tmp_path_factory.mktemp("judged"))
    chosen = Random(seed)  # noqa: S311 - strategies of hypothesis take twenty times as long as the commands
    for text in [command(chosen) for _ in range(12)]:
        judged = judge(text, cwd=place.work, disk=LocalDisk(place.work), environment=place.environment)
        if judged.effect is not Effect.READ:
            continue
        assert Hazard.UNKNOWN not in judged.hazards
        printed = place.run(text)
        assert place.stands() == place.before, text
        if Hazard.LEAVES not in judged.hazards:
            assert HIDDEN.encode() not in printed, text
            assert UNLISTED.encode() not in printed, text
