"""Formats of other programs, each with a way out."""

from __future__ import annotations

from pathlib import PurePath

_MACROS = "it may hold macros"
_OPEN = "OpenDocument files can't be read"
_SLIDES = "presentations can't be read"
_WAYS_OUT = {
    ".doc": ("the format of Word 97 can't be read", ".docx"),
    ".docm": (_MACROS, ".docx"),
    ".dot": ("the format of Word 97 can't be read", ".docx"),
    ".dotm": (_MACROS, ".docx"),
    ".dotx": ("it is a template", ".docx"),
    ".htm": ("web pages can't be read", ".docx or .txt"),
    ".html": ("web pages can't be read", ".docx or .txt"),
    ".key": (_SLIDES, ".pdf to have it read"),
    ".msg": ("Outlook's own format can't be read", ".eml"),
    ".numbers": ("the format of Numbers can't be read", ".xlsx"),
    ".odp": (_SLIDES, ".pdf to have it read"),
    ".ods": (_OPEN, ".xlsx"),
    ".odt": (_OPEN, ".docx"),
    ".pages": ("the format of Pages can't be read", ".docx"),
    ".ppt": (_SLIDES, ".pdf to have it read"),
    ".pptx": (_SLIDES, ".pdf to have it read"),
    ".rtf": ("rich text can't be read", ".docx"),
    ".wpd": ("the format of WordPerfect can't be read", ".docx"),
    ".xls": ("the format of Excel 97 can't be read", ".xlsx"),
    ".xlsb": ("binary workbooks can't be read", ".xlsx"),
    ".xlt": ("the format of Excel 97 can't be read", ".xlsx"),
    ".xltm": ("templates with macros can't be read", ".xlsm or .xlsx"),
    ".xltx": ("it is a template", ".xlsx"),
}
"""Why files with a suffix are not opened, and the format to save them in."""


def advice_on(name: str) -> str:
    """Explain why another format is not opened, and what to do.

    Args:
        name: The name or path of the file.

    Returns:
        Empty if the suffix is none of these formats.
    """
    reason, suffix = _WAYS_OUT.get(PurePath(name).suffix.lower(), ("", ""))
    return f"{reason}; save it as {suffix}" if reason else ""
