"""Texts for people in one language: English, or a translation of it."""

from __future__ import annotations

import contextlib
import string
from contextvars import ContextVar
from gettext import c2py
from typing import TYPE_CHECKING

from callboard.config._english import ENGLISH
from callboard.config._yaml import YamlError, load_yaml
from callboard.messages import SettingsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


class Language:
    """The texts of a language.

    Those that a translation lacks are in English.

    Example:
        >>> Language({"tasks": "Aufgaben"})["tasks"]
        'Aufgaben'
    """

    def __init__(self, translation: Mapping[str, str | Sequence[str]]) -> None:
        """Check and take a translation of `callboard.config._english.ENGLISH`.

        Args:
            translation: Texts by their names. A text for a number is a list of forms, from which `plural` chooses: an
                expression as in catalogs of gettext, such as ``n != 1``, whose value is the number of the form.

        Raises:
            SettingsError: If it has an unknown name, or a text lacks a value that it must show, or the rule is invalid.
        """
        for name, text in translation.items():
            _check(name, text)
        texts = {**ENGLISH, **translation}
        self._forms = {name: (text,) if isinstance(text, str) else tuple(text) for name, text in texts.items()}
        try:
            self._rule = c2py(self._forms["plural"][0])
            self._rule(1)
        except (ValueError, ArithmeticError, RecursionError) as error:
            msg = f"texts: plural: {error}"
            raise SettingsError(msg) from error

    @classmethod
    def load(cls, path: Path) -> Language:
        """Read a translation from a YAML file.

        Raises:
            SettingsError: If it can't be read, or is no translation.
        """
        try:
            translation = load_yaml(path)
        except YamlError as error:
            raise SettingsError(str(error)) from error
        if not isinstance(translation, dict):
            msg = f"{path}: is no mapping of names to texts"
            raise SettingsError(msg)
        return cls(translation)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a text of a name."""
        return name in self._forms

    def __getitem__(self, name: str) -> str:
        """Return a text without values."""
        return self.pattern(name).format()

    def pattern(self, name: str, count: object = None) -> str:
        """Return a text, in the form for a number."""
        forms = self._forms[name]
        return forms[max(0, min(self._rule(count), len(forms) - 1)) if isinstance(count, int) else 0]


def _check(name: str, text: object) -> None:
    """Refuse a translated text that lacks something of the English one.

    Raises:
        SettingsError: If it does, or if there is no such text.
    """
    english = ENGLISH.get(name)
    if english is None:
        msg = f"texts: there is no text {name!r}{did_you_mean(name, ENGLISH)}"
        raise SettingsError(msg)
    forms = [text] if isinstance(text, str) else text
    if not isinstance(forms, list | tuple) or not forms or not all(isinstance(form, str) for form in forms):
        msg = f"texts: {name}: is neither a text nor a list of texts"
        raise SettingsError(msg)
    values = _values(english if isinstance(english, str) else english[0])
    for form in forms:
        try:
            translated_values = _values(form)
        except ValueError as error:
            msg = f"texts: {name}: {error}"
            raise SettingsError(msg) from error
        if translated_values.keys() != values.keys():
            names = ", ".join(f"{{{value}}}" for value in sorted(values)) or "none"
            msg = f"texts: {name}: has other values than the English text: {names}"
            raise SettingsError(msg)
        if any(format_spec not in {"", values[value]} for value, format_spec in translated_values.items()):
            msg = f"texts: {name}: formats a value in another way than the English text: {english}"
            raise SettingsError(msg)


def _values(text: str) -> dict[str, str]:
    """Return the values that a text names, with their formats."""
    parts = string.Formatter().parse(text)
    return {
        name: f"{spec}!{conversion}" if conversion else spec or ""
        for _, name, spec, conversion in parts
        if name is not None
    }


_ENGLISH = Language({})
_language: ContextVar[Language] = ContextVar("language", default=_ENGLISH)


@contextlib.contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Use the texts of a language within a block."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def current_language() -> Language:
    """Return the language in use."""
    return _language.get()


def text(name: str, /, **values: object) -> str:
    """Return a text in the language in use.

    Args:
        name: Its name in `callboard.config._english.ENGLISH`.
        values: The values that it shows; `count` also chooses its form.

    Example:
        >>> text("step_count", count=2)
        '2 steps'
    """
    return _language.get().pattern(name, values.get("count")).format(**values)


def term(group: str, value: str) -> str:
    """Return the word for a value of a fixed list."""
    name = f"{group}_{value}"
    return text(name) if name in _language.get() else value
