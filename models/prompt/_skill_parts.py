"""Skills in prompts: their list, and the texts that were read.

They are the operator's words, as the agents' prompts are, so they are not fenced as data.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from callboard.config import READ_SKILL
from callboard.messages import ResultStatus
from callboard.models.prompt._fence import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.config import Skill
    from callboard.messages import CommandResult
    from callboard.models._model import ModelRequest

_CHARACTERS = 4
"""Approximate number of characters per token."""
_LIST = 12_000
"""The most characters of all descriptions."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDING = re.compile(r"(?:ings?|ed|es|s|e)$")
_EMPTY = re.compile(r"a(?:ll|n[dy]|re)|for|from|ha[sd]|have|how|into|its|not|th(?:at|e|em|is)|use[ds]?|w(?:hen|ith)")
"""Words that say nothing about the work."""
_ABOVE = "its text is above, under the skills"


def skill_list(request: ModelRequest, *, short: bool) -> Iterator[str]:
    """Yield the system message's section; a short one has the text."""
    skills = request.skills
    if short:
        for skill in skills[:1]:
            text = cut(skill.text, request.skill_tokens * _CHARACTERS // 4)
            yield f"## Skill: {skill.name}\n\nFollow this where it fits your work:\n\n{text}"
    elif skills:
        room = _LIST // len(skills)
        lines = "\n".join(f"- {skill.name}: {cut(skill.description, room)}" for skill in skills)
        passing = " In a subtask that one fits, name it: the agent there can read it, too." if request.is_host else ""
        yield (
            "## Skills\n\nThese are instructions for some kinds of work. Before you do such work, read the one that "
            f"fits with {READ_SKILL}, once, and follow it.{passing}\n\n{lines}"
        )


def skills_read(request: ModelRequest) -> tuple[list[str], ModelRequest]:
    """Move the skills that were read from the history to a section.

    The latest text of each file counts. Those that were read first are left out if there is no room.
    """
    if not request.skills:
        return [], request
    results = [result for record in request.memory for result in record.results]
    texts: dict[str, str] = {}
    for title, text in filter(None, map(_read, reversed(results))):
        texts.setdefault(title, text)
    if not texts:
        return [], request
    memory = tuple(
        record.model_copy(update={"results": tuple(map(_moved, record.results))})
        if any(map(_read, record.results))
        else record
        for record in request.memory
    )
    section = "\n\n".join(_section(texts, request.skill_tokens * _CHARACTERS))
    return [section], dataclasses.replace(request, memory=memory)


def _section(texts: dict[str, str], room: int) -> Iterator[str]:
    """Yield the texts in the order in which they were read."""
    parts: list[str] = []
    for title, text in texts.items():
        is_whole = not parts or len(text) <= room
        entry = cut(text, max(room, 0)) if is_whole else f"(there is no room for it: {READ_SKILL} shows it again)"
        parts.append(f"### {title}\n\n{entry}")
        room -= len(entry)
    yield "## Skills that you have read"
    yield from reversed(parts)


def _read(result: CommandResult) -> tuple[str, str] | None:
    """Return the title and text that a call has read.

    None for other calls.
    """
    value = result.value
    if result.tool != READ_SKILL or result.status is not ResultStatus.SUCCESS or not isinstance(value, dict):
        return None
    files = value.get("files")
    more = f"\n\n(further files: {', '.join(map(str, files))})" if isinstance(files, list) and files else ""
    return f"{value.get('skill')} {value.get('file') or ''}".strip(), f"{value.get('text')}{more}"


def _moved(result: CommandResult) -> CommandResult:
    return result.model_copy(update={"value": _ABOVE}) if _read(result) else result


def best_skill(request: ModelRequest) -> tuple[Skill, ...]:
    """Return the skill that shares most words with the work.

    It is empty if no skill shares any. The words are those of its name and description. A word counts the more, the
    fewer skills have it. Of equal ones, the first in the settings counts.
    """
    words = {skill: _stems(f"{skill.name} {skill.description}") for skill in request.skills}
    often = Counter(stem for stems in words.values() for stem in stems)
    work = _stems(f"{request.request} {request.task_request}")
    scores = {
        skill: sum(math.log(1 + len(words) / often[stem]) for stem in stems & work) for skill, stems in words.items()
    }
    best = max(scores, key=scores.__getitem__, default=None)
    return () if best is None or not scores[best] else (best,)


def _stems(text: str) -> set[str]:
    return {_ENDING.sub("", word) for word in _WORD.findall(text.casefold()) if not _EMPTY.fullmatch(word)}
