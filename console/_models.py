"""Models as the command line names them: `--model host=openai:gpt-5,app=local:qwen`."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.console._mistakes import fail
from callboard.messages import AgentKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEXT = re.compile(r",\s*(?=\w+\s*=)")
"""What parts `host=A,app=B`; any other comma belongs to a name."""
_KIND = re.compile(r"\s*(\w*)\s*=(.*)", re.DOTALL)
"""`KIND=NAME`; a name's own equals sign, as in `recorded:FILE?by=order`, stands behind a colon."""
_IN_FILES = ("recorded", "scripted")


def models_of(options: Sequence[str]) -> dict[str, str]:
    """Read `--model` options: a kind of agent for each model; one without a kind is that of all the others.

    A relative file starts from the current folder, as everywhere in a call, and not from the settings'.
    """
    given: dict[str, str] = {}
    for part in (part for option in options for part in _NEXT.split(option)):
        kind, name = _read(part)
        if kind in given:
            fail(f"--model {part.strip()}: there is another one for {kind or 'all kinds of agents'}: {given[kind]}")
        given[kind] = name
    rest = given.pop("", None)
    return ({} if rest is None else dict.fromkeys(map(str, AgentKind), rest)) | given


def model_words(models: dict[str, str]) -> list[str]:
    """Write the options that name these models."""
    names = set(models.values())
    if len(names) == 1 and len(models) == len(AgentKind):
        return ["--model", *names]
    return [word for kind, name in models.items() for word in ("--model", f"{kind}={name}")]


def _read(part: str) -> tuple[str, str]:
    found = _KIND.fullmatch(part)
    kind, name = found.groups() if found else ("", part)
    if found and kind not in set(AgentKind):
        near = difflib.get_close_matches(kind.lower(), list(AgentKind), n=1, cutoff=0.5)
        hint = f"did you mean {str(near[0])!r}?" if near else f"there are: {', '.join(AgentKind)}"
        fail(f"--model {part.strip()}: there is no kind of agent {kind!r}; {hint}")
    form, _, rest = name.strip().partition(":")
    if not form or not rest:
        fail(
            f"--model {part.strip()}: {name.strip()!r} is no known model; "
            "known forms are: scripted:FILE, recorded:FILE, PROVIDER:MODEL"
        )
    return kind, f"{form}:{Path(rest).absolute()}" if form in _IN_FILES else name.strip()
