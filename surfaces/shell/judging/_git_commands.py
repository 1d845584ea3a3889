"""Analysis of git commands that only read.

Anything in the workspace may have written a repository's settings, which may name programs that even ``git status``
starts. So a command is accepted only if each setting of the repository and of the shell's home is known to start no
program. The system's own settings are trusted, as its programs are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._option_parsing import ProgramUsage, parse_options
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

if TYPE_CHECKING:
    from callboard.surfaces.shell.judging._touched_files import Touched

_LOOK = (
    "-aiEFPpuwbMqz -n: -S: -G: -U: -L: -# --oneline --stat? --numstat --shortstat --name-only --name-status"
    " --graph --all --decorate? --no-decorate --patch --no-patch -s --follow --format: --pretty? --abbrev-commit"
    " --no-merges --merges --date: --since: --until: --after: --before: --author: --committer: --grep: --reverse"
    " --first-parent --max-count: --skip: --cached --staged --word-diff? --unified: --diff-filter: --color? --no-"
    " color --no-ext-diff --no-textconv --summary --raw --branches? --tags? --remotes? --topo-order --date-order"
    " --no-renames --ignore-all-space --ignore-space-change --exit-code --quiet --minimal --histogram --patience"
    " --relative-date --check"
)
_COMMANDS = {
    "blame": ProgramUsage("-wlsefn -L: --date: --porcelain --line-porcelain --show-name --show-number --no-textconv"),
    "branch": ProgramUsage("-avrl --list --all --verbose --remotes --show-current --no-color --no-column", "none"),
    "cat-file": ProgramUsage("-tspe"),
    "describe": ProgramUsage("--tags --all --long --always --abbrev: --exact-match"),
    "diff": ProgramUsage(f"{_LOOK} --ignore-submodules?"),
    "log": ProgramUsage(_LOOK),
    "ls-files": ProgramUsage("-cdmosztuv --cached --deleted --modified --others --stage --exclude-standard"),
    "ls-tree": ProgramUsage("-rtdlz --name-only --long --full-tree --full-name"),
    "rev-list": ProgramUsage(f"{_LOOK} --count"),
    "rev-parse": ProgramUsage(
        "--show-toplevel --abbrev-ref? --short? --verify --git-dir --is-inside-work-tree --show-prefix --show-cdup"
    ),
    "shortlog": ProgramUsage("-sne --summary --numbered --email --all --no-merges"),
    "show": ProgramUsage(_LOOK),
    "status": ProgramUsage(
        "-sbvz -u? --short --branch --porcelain? --untracked-files? --ignored? --ignore-submodules? --long"
    ),
}
_REFRESHING = frozenset({"status", "diff"})
"""Commands that refresh git's index."""
_SETTING = re.compile(r"[ \t]*([A-Za-z][\w-]*)[ \t]*=[ \t]*([^\"\\\n]*)")
_SECTION = re.compile(r'[ \t]*\[([A-Za-z.-]+)(?:[ \t]+"([^"\\\n]*)")?\][ \t]*')
_HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol"
    r"|safecrlf|quotepath|abbrev|compression|pager|editor)|user\.(?:name|email|signingkey)|init\.defaultbranch"
    r"|remote\..*\.(?:url|fetch|pushurl)|branch\..*\.(?:remote|merge|rebase)|(?:color|advice|push|pull|gc|commit)\.[\w.]+"
    r"|safe\.directory",
    re.IGNORECASE,
)
_SIGNATURE = re.compile("%[-+ ]*G")
"""A part of a format that has a signature verified, by another program."""
_HEAD = re.compile(rb"ref: refs/[^\s\x00]+\n|[0-9a-f]{40}\n|[0-9a-f]{64}\n")
_MOST_OF_HEAD = 1_000
_MOST_DEPTH = 100


def git(words: list[Word], touched: Touched) -> None:
    """Record the effects of a git command.

    Raises:
        UnclearError: If its effects are unknown.
    """
    queue, locks = list(words), True
    while queue and queue[0].dashed:
        option = queue.pop(0).literal
        locks = locks and option != "--no-optional-locks"
        if option not in {"--no-pager", "-P", "--no-optional-locks"}:
            msg = f"the option {option!r} of git is not one that only reads"
            raise UnclearError(msg)
    name = queue.pop(0).literal if queue else ""
    if name not in _COMMANDS:
        msg = f"the command 'git {name}' is not one that only reads"
        raise UnclearError(msg)
    usage = _COMMANDS[name]
    arguments = parse_options(usage, queue)
    formats = [word.literal for word in arguments.values("--format", "--pretty")]
    if any(_SIGNATURE.search(text) for text in formats) or (usage.operands == "none" and arguments.operands):
        msg = f"'git {name}' may start a program, or change something, with these words"
        raise UnclearError(msg)
    if touched.writes or touched.moved:
        msg = "git runs after files were changed"
        raise UnclearError(msg)
    if not touched.disk.local:
        msg = "the settings of git on another machine are not read"
        raise UnclearError(msg)
    for folder in touched.folders:
        _check_repository(Path(folder), touched, submodules=name in _REFRESHING)
    for word in arguments.operands:  # a revision is not a file; a file outside the repository is read
        touched.read(word)
    if name in _REFRESHING and (locks or name == "diff"):  # `git diff` writes the index even then
        touched.caches = True


def _check_repository(folder: Path, touched: Touched, *, submodules: bool) -> None:
    root = Path(os.path.realpath(folder))
    while not os.path.lexists(root / ".git"):
        if os.path.lexists(root / "HEAD") or root in {touched.disk.workspace, root.parent}:
            msg = f"there is no repository at {folder}, or one of an unsupported form"
            raise UnclearError(msg)
        root = root.parent
    git_folder = root / ".git"
    hooks = [path.name for path in (git_folder / "hooks").iterdir()] if (git_folder / "hooks").is_dir() else []
    unsupported_names = [
        name for name in ("commondir", "modules", "config.worktree", "worktrees") if (git_folder / name).exists()
    ]
    if (
        not root.is_relative_to(touched.disk.workspace)
        or not _is_repository(git_folder)
        or os.path.lexists(root / "HEAD")
        or unsupported_names
        or (git_folder / "objects" / "info" / "alternates").exists()
        or not all(name.endswith(".sample") for name in hooks)
    ):
        msg = f"the repository {root} has hooks, or an unsupported form"
        raise UnclearError(msg)
    touched.read(Word(str(root)), follows=False)
    home = touched.variables.get("HOME", Word("", known=False)).literal
    for config in (git_folder / "config", Path(home, ".gitconfig"), Path(home, ".config/git/config")):
        _check_config(config)
    if submodules and any(entry.name == ".git" and level for level, entry in touched.entries(str(root), _MOST_DEPTH)):
        msg = f"there are repositories inside {root}"
        raise UnclearError(msg)


def _is_repository(git_folder: Path) -> bool:
    """Return whether git takes a folder for a repository."""
    head = git_folder / "HEAD"
    plain = all(
        path.is_dir() and not path.is_symlink() for path in (git_folder, git_folder / "objects", git_folder / "refs")
    )
    if not plain or head.is_symlink() or not head.is_file():
        return False
    with head.open("rb") as file:
        return _HEAD.fullmatch(file.read(_MOST_OF_HEAD)) is not None


def _check_config(path: Path) -> None:
    """Refuse settings that may start a program or read other files."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        msg = f"{path} can't be read"
        raise UnclearError(msg) from error
    section = ""
    for line in text.split("\n"):
        head, setting = _SECTION.fullmatch(line), _SETTING.fullmatch(line)
        if head is not None:
            section = f"{head[1]}.{head[2]}" if head[2] is not None else head[1]
        elif setting is not None and _HARMLESS.fullmatch(f"{section}.{setting[1]}"):
            continue
        elif line.strip() and not line.lstrip().startswith(("#", ";")):
            msg = f"the setting {line.strip()!r} in {path} may start a program"
            raise UnclearError(msg)
