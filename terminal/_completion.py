"""The script for completion in shells."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from callboard.terminal._commands import COMPLETE

_ASKED = ("demo", "docs", "fleet", "graph", "logs", "policy", "replay", "report", "routine", "schema", "show", "undo")
"""The commands whose values only the program knows. All else is in the script, so that no program starts for it."""
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
