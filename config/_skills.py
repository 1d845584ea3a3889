"""Skills: folders with instructions for some kind of work.

The settings name them. The format is that of https://agentskills.io/specification: a file ``SKILL.md`` with a YAML
front matter. All of it is read once, at the start, so that nothing changes the agents' instructions while the
supervisor runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.config._yaml import YamlError, parse_yaml
from callboard.messages import SettingsError, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from callboard.config._settings import Settings

READ_SKILL = "read_skill"
"""The tool that reads skills. No other tool may have this name while there are skills."""
SKILL_FILE = "SKILL.md"
MOST_SKILLS = 50
MOST_ENTRIES = 1000
"""The most files and folders of one skill."""
LONGEST_TEXT = 32_000
"""The most characters of one text."""
LONGEST_TEXTS = 500_000
"""The most characters of all texts of one skill."""
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_MARK = "---"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and the bytes of a file's name that are not UTF-8: no JSON could have them."""
_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""No link is followed, and no pipe waits for its other end."""


@dataclass(frozen=True)
class Skill:
    """Instructions for some kind of work, as models see them."""

    name: str
    description: str
    """Its purpose, and when to use it."""
    text: str
    """The instructions, without the front matter."""


@dataclass(frozen=True)
class SkillFolder:
    """A skill with its further files."""

    skill: Skill
    path: Path
    files: dict[str, str] = field(default_factory=dict)
    """The texts of its further files, by their paths in the folder, with ``/``."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """The reasons why its other files can't be read, by their paths."""
    digest: str = ""
    """The SHA-256 of all texts and their paths, in hexadecimal."""


def load_skills(settings: Settings) -> tuple[SkillFolder, ...]:
    """Read the skills that the settings name, in their order.

    Raises:
        SettingsError: If a folder is no skill, one is too large, or two have one name.
    """
    if len(settings.skills) > MOST_SKILLS:
        msg = f"skills: there are {len(settings.skills)}, and at most {MOST_SKILLS} are possible"
        raise SettingsError(msg)
    folders: dict[str, SkillFolder] = {}
    for number, named_path in enumerate(settings.skills):
        path = settings.path(named_path)
        try:
            folder = _folder(path)
        except _SkillError as error:
            msg = f"skills.{number}: {path}: {error}"
            raise SettingsError(msg) from None
        first = folders.setdefault(folder.skill.name, folder)
        if first is not folder:
            msg = f"skills.{number}: {path}: {first.path} has the same name, {folder.skill.name!r}: leave one out"
            raise SettingsError(msg)
    return tuple(folders.values())


class _SkillError(Exception):
    """A folder is no skill; the text gives the reason."""


def _folder(path: Path) -> SkillFolder:
    if not path.is_dir():
        raise _SkillError("it is no folder" if path.exists() else "there is no such folder")
    texts: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for name in _names(path):
        try:
            texts[name] = _text(path / name)
        except _SkillError as error:
            unreadable[name] = str(error)
    if SKILL_FILE not in texts:
        reason = unreadable.get(SKILL_FILE)
        raise _SkillError(f"{SKILL_FILE} {reason}" if reason else f"it has no file {SKILL_FILE}")
    if sum(map(len, texts.values())) > LONGEST_TEXTS:
        msg = f"its texts have more than {LONGEST_TEXTS:,} characters: leave some files out"
        raise _SkillError(msg)
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()
    skill = _skill(texts.pop(SKILL_FILE), path.resolve().name)
    return SkillFolder(skill, path, texts, unreadable, digest)


def _names(folder: Path) -> Iterator[str]:
    """Yield the paths of files and links; hidden ones are left out.

    Raises:
        _SkillError: If there are too many, or a folder can't be listed.
    """
    pending_folders, count = [""], 0
    while pending_folders:
        inner = pending_folders.pop()
        try:
            entries = sorted(os.scandir(folder / inner), key=lambda entry: entry.name)
        except OSError as error:
            msg = f"the folder {inner or '.'!r} can't be listed: {error.strerror}"
            raise _SkillError(msg) from None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            count += 1
            if count > MOST_ENTRIES:
                msg = f"it has more than {MOST_ENTRIES:,} files and folders"
                raise _SkillError(msg)
            if _CONTROL.search(entry.name):
                msg = f"the name {entry.name!r} has a character that can't be shown: rename the file"
                raise _SkillError(msg)
            if entry.is_dir(follow_symlinks=False):
                pending_folders.append(f"{inner}{entry.name}/")
            else:
                yield f"{inner}{entry.name}"


def _text(path: Path) -> str:
    """Read a text file; follow no link, wait for no pipe.

    Raises:
        _SkillError: If it is no text file, or too large.
    """
    if path.is_symlink():
        msg = "is a link: put the file itself into the folder"
        raise _SkillError(msg)
    try:
        with open(os.open(path, os.O_RDONLY | _SAFE), "rb") as file:  # noqa: PTH123 - opened without following a link
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                msg = "is no regular file"
                raise _SkillError(msg)
            content = file.read(4 * LONGEST_TEXT + 1)  # a character has at most four bytes
        text = content.decode("utf-8-sig") if len(content) <= 4 * LONGEST_TEXT else ""
    except OSError as error:
        msg = f"can't be read: {error.strerror}"
        raise _SkillError(msg) from None
    except UnicodeDecodeError:
        msg = "is not UTF-8 text"
        raise _SkillError(msg) from None
    if len(content) > 4 * LONGEST_TEXT or len(text) > LONGEST_TEXT:
        msg = f"is too large: it has more than {LONGEST_TEXT:,} characters"
        raise _SkillError(msg)
    return text.replace("\r\n", "\n")


def _skill(content: str, folder: str) -> Skill:
    """Read the front matter and the text behind it.

    Raises:
        _SkillError: If they do not fit the format.
    """
    first, *lines = content.split("\n")
    end = next((number for number, line in enumerate(lines) if line.rstrip() == _MARK), None)
    if first.rstrip() != _MARK or end is None:
        msg = f"{SKILL_FILE} does not begin with a front matter: lines between two lines {_MARK}"
        raise _SkillError(msg)
    try:
        fields = parse_yaml("\n".join(lines[:end]))
    except YamlError as error:
        msg = f"{SKILL_FILE}: its front matter {error}"
        raise _SkillError(msg) from None
    name = _field(fields, "name", _LONGEST_NAME)
    if not _is_name(name):
        msg = f"{SKILL_FILE}: name: {name!r} must be of lower-case letters, digits and single hyphens between them"
        raise _SkillError(msg)
    if unicodedata.normalize("NFKC", folder) != name:
        msg = f"{SKILL_FILE}: name: {name!r} must be the name of its folder, {folder!r}"
        raise _SkillError(msg)
    description = " ".join(_field(fields, "description", _LONGEST_DESCRIPTION).split())
    if _CONTROL.search(description):
        msg = f"{SKILL_FILE}: description: it has a character that can't be shown: {visible(description)}"
        raise _SkillError(msg)
    text = "\n".join(lines[end + 1 :]).strip()
    if not text:
        msg = f"{SKILL_FILE}: it has no text after its front matter"
        raise _SkillError(msg)
    return Skill(name, description, text)


def _field(fields: Any, key: str, longest: int) -> str:
    value = fields.get(key) if isinstance(fields, dict) else None
    if not isinstance(value, str) or not value.strip():
        msg = f"{SKILL_FILE}: its front matter needs a text `{key}`"
        raise _SkillError(msg)
    text = unicodedata.normalize("NFKC", value.strip()) if key == "name" else value.strip()
    if len(text) > longest:
        msg = f"{SKILL_FILE}: {key}: it has {len(text):,} characters, and at most {longest:,} are possible"
        raise _SkillError(msg)
    return text


def _is_name(name: str) -> bool:
    words = name.split("-")
    return all(word.isalnum() and word == word.lower() for word in words)
