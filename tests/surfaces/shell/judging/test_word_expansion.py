"""Random words, expanded by bash and before that by the judge: to the same words, or the judge says unknown."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from callboard.surfaces.shell._base_shell import PATH
from callboard.surfaces.shell.judging import _judge
from callboard.surfaces.shell.judging._disk import LocalDisk

if TYPE_CHECKING:
    from callboard.surfaces.shell.judging._word_expansion import Word

FILES = ("a.log", "b.log", "a b", "x=y", "deep/c.txt", "deep/[x]", "{a,b}", "~", "one")
FRONT = "x=one; y=; z='a b'; g='*'; t='~'; b='{a,b}'; n=3; : ; false && u=unknown; "
"""Variables before each word: the judge knows all but the last one."""
PLAIN = ("a", "one", ".log", "deep/", "x", "1", "3", "-", "_", "%", "@", "+", "é", "/", "./", "..", ".")
EXPANSIONS = [
    kind.split("  ")
    for kind in r"""
''  ""  'a b'  "a b"  '*'  "{"  '}'  ","  '..'  "$x"  "${x}b"  "~"  '~'  '$x'  "\$x"  "\a"  "$u"  "$z"
"$g"  "$"  "\\"  "'"
\a  \{  \}  \,  \~  \ a  \$  \\  \*  \'  \"  \=  \/
$x  ${x}  $y  $z  $g  $t  $b  $n  $u  $?  $#  $@  "$@"  $*  "$*"  "$?"  $  $x$y  $HOME  $PWD  $0  $-  $_
${x:-d}  ${y:=d}  ${x#o}  ${x%e}  ${x/o/p}  ${#x}  ${x:1}  ${!x}  ${x^}  ${x@Q}  ${u:+a b}  ${x:-{a,b}}  ${b}
$'a'  $'a\tb'  $'\x73'  $"a"  $'{'  $''
~  ~/  ~/x  ~root  ~root/x  ~+  ~-  ~''  ~"user"  ~\x  ~$x  =~  :~  x=~  x:~/a  ~nobody/  ~1  a~  ~a  ~,  ~{a,b}  ~\/x
*  ?  [ab]  *.log  a*  deep/*  [!a]*  */  [  ]  a[  *'*'  [[:alpha:]]*  z*  ../*  .*  {*,x}  \**
{1..3}  {a..c}  {1..9..2}  {9..1..3}  {01..10..4}  {-1..1}  {1..-1..0}  {a..z..9}  {c..a}  {A..C}  {0..0}  {007..009}
{a..1}  {1..}  {..1}  {1..$n}  {1..'3'}  {Z..a}  {1...3}  {-01..3}  {1..3..-2}  {+1..3}  {a..c..}  {aa..c}  {1..3..a}
{00..5..5}  {5..5}  {-5..-05..0}  {1.5..3}  {010..-9..7}  {-0..2}  {1..2}{a..b}
{  }  ,  {}  {a}  {,}  {a,b  a,b}  {{  }}  {,a}  {$x}  {''}  ${x},  {a,b}  {$,x}
$(echo a)  `echo a`  $((1+1))  <(echo a)  "$(echo a)"  $(:)  "`echo b`"
=  :  =a  x=  #  #a  !  ^  ~  {fd}  [x]=  x+=  -n  --a=  %a
""".strip().split("\n")
]
EXPANSIONS += [["\\\n", '"a\\\nb"', "a\\\n", "\\\n{a,b}"]]
SIMPLE = re.split(
    r"  |\n",
    r"""
{a,b}.log  deep/{c,d}.txt  {1..3}  x{,.bak}  {a..c}{1..2}  'a b'{1,2}  {}  a,b  "$x"  $x  ${x}.log  ~  ~/x  a\ b  $?
*.log  deep/*  ./*  ?.log  [ab].log  --name='*.log'  -n  'a b'  "it's"  "$x.log"  a.log  deep/c.txt  a@b:c  50%
a=b  "a$n"
""".strip(),
)
"""Words as people write them."""


def word(chosen: Random, depth: int = 0) -> str:
    """Write a word of random parts; some are alternatives in braces, of random words themselves."""
    parts = []
    for _ in range(chosen.choice((1, 1, 2, 2, 3, 4))):
        kind = chosen.random()
        if kind < 0.3:
            parts.append(chosen.choice(PLAIN))
        elif kind < 0.55 and depth < 3:
            inside = [
                word(chosen, depth + 1) if chosen.random() < 0.85 else "" for _ in range(chosen.choice((1, 2, 2, 3)))
            ]
            parts.append("{" + ",".join(inside) + "}")
        else:
            parts.append(chosen.choice(chosen.choice(EXPANSIONS)))
    return "".join(parts)


@dataclass
class Tally:
    """Counts of a comparison."""

    words: int = 0
    agree: int = 0
    unknown: int = 0
    differ: list[str] = field(default_factory=list)


class Comparison:
    """A workspace with files, in which bash and the judge expand the same words."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = top / "work"
        for name in FILES:
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).touch()
        (top / "outside").touch()
        self.environment = {"PATH": PATH, "HOME": str(top / "home"), "LANG": "C.UTF-8"}
        self.words: list[Word] | None = None
        monkeypatch.setattr(_judge, "program", self._program)

    def _program(self, name: Word, words: list[Word], _: object) -> None:
        if name.text == "echo":
            self.words = words

    def judged(self, text: str) -> list[Word] | None:
        """Return the judge's words; None if they are unknown to it."""
        self.words = None
        found = _judge.judge(
            f"{FRONT}echo {text}", cwd=self.work, disk=LocalDisk(self.work), environment=self.environment
        )
        return None if found.why else self.words

    def expanded(self, texts: list[str]) -> list[list[str] | None]:
        """Return bash's words of each text; None for an error."""
        script = (
            "show() { printf '%s\\0' \"$@\"; }; while IFS= read -r -d '' line; do"
            " eval \"$line\" 2>/dev/null; printf '\\2\\0'; printf '\\3\\0'; done"
        )
        lines = "".join(f"{FRONT}show start {text}\0" for text in texts)
        ended = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash"],
            input=lines.encode(), cwd=self.work, env=self.environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        answers: list[list[str] | None] = []
        for part in ended.stdout.decode().split("\3\0")[:-1]:
            words = part.split("\0")[:-1]
            answers.append(words[1:-1] if words[-1:] == ["\2"] and words[0] == "start" else None)
        assert len(answers) == len(texts)
        return answers

    def compare(self, texts: list[str]) -> Tally:
        """Count the words on which both agree."""
        tally = Tally(len(texts))
        judged = {text: told for text in texts if (told := self.judged(text)) is not None}
        tally.unknown = sum(text not in judged for text in texts)
        for text, truth in zip(judged, self.expanded([*judged]), strict=True):
            if truth is None or not self._same(judged[text], truth):
                tally.differ.append(f"{text!r}: the judge {judged[text]}, bash {truth}")
        tally.agree = tally.words - tally.unknown - len(tally.differ)
        return tally

    def _same(self, told: list[Word], truth: list[str]) -> bool:
        """Return whether the judge's words, with patterns among them, may be those of bash."""
        if not told:
            return not truth
        first, *rest = told
        if not truth:
            return False
        if first.glob:
            return any(
                all(name == first.text or self._matches(first, name) for name in truth[:count])
                and self._same(rest, truth[count:])
                for count in range(1, len(truth) + 1)
            )
        same = truth[0] == first.text if first.known else truth[0].startswith(first.text) or truth[0].isdecimal()
        return same and self._same(rest, truth[1:])

    def _matches(self, pattern: Word, name: str) -> bool:
        stem = pattern.text[: min(pattern.text.find(sign) for sign in "*?[" if sign in pattern.text)].rpartition("/")
        return name.startswith(stem[0] + stem[1]) and os.path.lexists(self.work / name)


def random_words(seed: int, count: int) -> list[str]:
    """Write random words."""
    chosen = Random(seed)  # noqa: S311 - strategies of hypothesis take twenty times as long as the comparison
    return [word(chosen) for _ in range(count)]


@pytest.fixture
def comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Give a workspace with files."""
    return Comparison(tmp_path.resolve(), monkeypatch)


def test_random_words_are_expanded_like_bash_or_unknown(comparison: Comparison) -> None:
    tally = comparison.compare(random_words(0, 1_000))
    assert not tally.differ
    assert tally.agree > tally.words / 4


@pytest.mark.slow
def test_many_random_words_are_expanded_like_bash_or_unknown(comparison: Comparison) -> None:
    for seed in range(1, 21):
        tally = comparison.compare(random_words(seed, 5_000))
        assert not tally.differ, seed


def test_words_as_people_write_them_are_expanded(comparison: Comparison) -> None:
    tally = comparison.compare(SIMPLE)
    assert (tally.differ, tally.unknown) == ([], 0)
