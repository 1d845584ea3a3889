"""Completion in shells: the script, and the ids of tasks."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

from callboard.config import Settings
from callboard.journal import JournalReader
from callboard.messages import CallboardError
from callboard.terminal._journals import journal_in, settings_at

COMPLETE = "_CALLBOARD_COMPLETE"
"""The variable with which the script asks for completions; typer reads it."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
"""The form of a task's id, which has no characters with a meaning in a shell; a damaged journal may have others."""
_ASKED = ("demo", "docs", "graph", "logs", "policy", "replay", "schema", "show", "undo")
"""The commands whose values only the program knows. Its start takes a second: all else is in the script."""
_SCRIPT = """\
# Completes `callboard` in bash 4 or newer; in zsh after: autoload -U bashcompinit && bashcompinit
_callboard_completion() {{
    local line known="" word="${{COMP_WORDS[COMP_CWORD]}}"
    COMPREPLY=()
    case "$COMP_CWORD:${{COMP_WORDS[1]}}:$word" in
        1:*:-*) known="{top}" ;;
        1:*) known="{commands}" ;;
{options}
        {asked})
            while IFS= read -r line; do
                if [ -n "$line" ]; then COMPREPLY+=("$line"); fi
            done < <(COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD="$COMP_CWORD" {variable}=complete_bash \\
                {program} 2>/dev/null </dev/null)
            return ;;
    esac
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$known" -- "$word")
}}
complete -o default -F _callboard_completion callboard
"""


def completion_script(program: Any) -> str:
    """Write the script that completes the commands of a program in bash.

    It runs this installation by its absolute path: the word before the cursor may name a program of the current folder,
    as in `./callboard`. `-P` and `-E` keep Python from importing modules of that folder.
    """
    lines = [
        f'        *:{name}:-*) known="{_options(command)}" ;;'
        for name, command in program.commands.items()
        if not hasattr(command, "commands")
    ]
    return _SCRIPT.format(
        variable=COMPLETE,
        program=shlex.join([sys.executable, "-PE", "-m", "callboard"]),
        top=_options(program),
        commands=" ".join(program.commands),
        options="\n".join(lines),
        asked=" | ".join(f"*:{name}:*" for name in _ASKED),
    )


def _options(command: Any) -> str:
    names = [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
    return " ".join([*names, "--help"])


def task_ids(incomplete: str) -> list[str]:
    """List the ids of the current folder's journal, the latest first.

    A folder without settings or without a readable journal has none.
    """
    try:
        journal = journal_in(Settings.load(settings_at(None)))
        if journal is None:
            return []
        with JournalReader.open(journal) as reader:
            ids = [task.id for task in reader.tasks()]
    except (CallboardError, OSError):  # completion has no place for errors; the command itself reports them
        return []
    return [task_id for task_id in reversed(ids) if task_id.startswith(incomplete) and _ID.fullmatch(task_id)]
