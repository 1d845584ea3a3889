"""Programs that create, replace or delete files in a known way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._option_parsing import ParsedOptions, ProgramUsage, parse_options
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.shell.judging._touched_files import Touched


def _mkdir(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-pv --parents --verbose"), words)
    for word in arguments.operands:
        touched.write(word, repeatable=arguments.has("-p", "--parents"))


def _touch(words: list[Word], touched: Touched) -> None:
    for word in parse_options(ProgramUsage("-acm --no-create"), words).operands:
        for path in touched.targets(word):
            touched.writes.append((path, True))


def _tee(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-ai --append --ignore-interrupts"), words)
    for word in arguments.operands:
        touched.write(word, repeatable=not arguments.has("-a", "--append"))


def _rm(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-frRvd --force --recursive --verbose --dir"), words)
    for word in arguments.operands:
        touched.delete(word, repeatable=arguments.has("-f", "--force"))
    touched.moved = True


def _rmdir(words: list[Word], touched: Touched) -> None:
    for word in parse_options(ProgramUsage("-v --verbose"), words).operands:
        touched.delete(word, repeatable=False)
    touched.moved = True


def _cp(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-rRapvf --recursive --archive --verbose --force"), words)
    is_recursive = arguments.has("-r", "-R", "-a", "--recursive", "--archive")
    for source in arguments.operands[:-1]:
        touched.read(source, follows=False)
    for target in _targets(arguments, touched):
        touched.write(target, repeatable=False, folders=True)
        if is_recursive:
            touched.check_inside(target)
    touched.moved = touched.moved or is_recursive


def _mv(words: list[Word], touched: Touched) -> None:
    arguments = parse_options(ProgramUsage("-vf --verbose --force"), words)
    for target in _targets(arguments, touched):
        touched.write(target, repeatable=False, folders=True)
    for source in arguments.operands[:-1]:
        touched.delete(source, repeatable=False)
    touched.moved = True


def _targets(arguments: ParsedOptions, touched: Touched) -> list[Word]:
    """Return the target of each file that is copied or moved.

    Raises:
        UnclearError: If a target is unknown.
    """
    if len(arguments.operands) < 2:  # a source and a target
        msg = "the target is missing"
        raise UnclearError(msg)
    *sources, target = arguments.operands
    folders = [touched.disk.is_folder(path) for path in touched.targets(target)]
    if any(folders) and not all(folders):
        msg = f"it is unknown whether {target.text!r} is a folder"
        raise UnclearError(msg)
    if not any(folders):
        return [target]
    names = [Path(source.literal).name for source in sources]
    if not {"", ".", ".."}.isdisjoint(names):
        msg = "a folder is copied or moved under a name that is not its own"
        raise UnclearError(msg)
    return [Word(str(Path(target.text, name))) for name in names]


WRITES: dict[str, Callable[[list[Word], Touched], None]] = {
    "cp": _cp,
    "mkdir": _mkdir,
    "mv": _mv,
    "rm": _rm,
    "rmdir": _rmdir,
    "tee": _tee,
    "touch": _touch,
}
"""Analysis functions by program name."""
