"""Analysis of `find`, which may delete files and run programs on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._reading_programs import READS, reads, several
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

if TYPE_CHECKING:
    from callboard.surfaces.shell.judging._touched_files import Touched

_ALONE = re.compile(
    "-(?:depth|d|mount|xdev|noleaf|daystart|empty|nouser|nogroup|readable|writable|executable|print|print0|ls|prune|quit"
    "|true|false|not|a|and|o|or|warn|nowarn|ignore_readdir_race)|[()!,]"
)
_WITH_VALUE = re.compile(
    "-(?:i?name|i?path|i?wholename|i?regex|regextype|i?lname|x?type|size|[mac]time|[mac]min|perm|user|group|uid|gid|links"
    "|inum|maxdepth|mindepth|fstype|used|printf|newermt)"
)


def find(words: list[Word], touched: Touched) -> None:
    """Record the effects of `find`.

    Raises:
        UnclearError: If its effects are unknown.
    """
    queue = list(words)
    follows, starts = False, []
    while queue and queue[0].known and queue[0].text in {"-P", "-H", "-L"}:
        follows = queue.pop(0).text == "-L" or follows
    while queue and not queue[0].dashed and queue[0].text not in {"(", ")", "!", ","}:
        starts.append(queue.pop(0))
    starts = starts or [Word(".")]
    for start in starts:
        touched.read(start, follows=follows)
    deletes = [_test(queue, starts, touched) for _ in words if queue]
    for start in starts if any(deletes) else ():
        touched.delete(start, repeatable=True)
        touched.moved = True


def _test(queue: list[Word], starts: list[Word], touched: Touched) -> bool:
    """Record the effects of one test or action; return whether it deletes."""
    test = queue.pop(0).literal
    if test == "-exec":
        _exec(queue, starts, touched)
    elif test in {"-newer", "-anewer", "-cnewer", "-samefile"} and queue:
        touched.read(queue.pop(0))
    elif _WITH_VALUE.fullmatch(test) and queue:
        if queue.pop(0).glob:
            msg = f"the pattern after {test} is without quotes: it may match files here"
            raise UnclearError(msg)
    elif test != "-delete" and not _ALONE.fullmatch(test):
        msg = f"the test {test!r} of find is not one that only reads"
        raise UnclearError(msg)
    return test == "-delete"


def _exec(queue: list[Word], starts: list[Word], touched: Touched) -> None:
    """Record the effects of a program that `find` runs on each file."""
    words: list[Word] = []
    while queue and (word := queue.pop(0)).literal != ";":
        if word.text == "+" and words[-1:] == [Word("{}")]:
            break
        words.append(word)
    name = words[0].literal if words else ""
    if name == "rm" and {word.text for word in words[1:]} <= {"{}", "-f", "-v", "--"}:
        for start in starts:
            touched.delete(start, repeatable=True)
        return
    if name not in READS:
        msg = f"the effects of {name!r} on the files that find finds are unknown"
        raise UnclearError(msg)
    for start in starts:
        if start.dashed or start.glob:
            raise UnclearError(several(start))
        touched.read(start, follows=True)
        name_of_file = Word(f"{start.text}/*", glob=True)  # a pattern: its names are no script and no option's value
        filled = [name_of_file if word.text == "{}" else word for word in words[1:]]
        old_writes = list(touched.writes)
        reads(name, filled, touched)
        if old_writes != touched.writes or any("{}" in word.text for word in filled):
            msg = "find inserts names into a word, or writes to the files that it finds"
            raise UnclearError(msg)
