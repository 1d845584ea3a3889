"""Checks of embedded scripts (sed, awk, printf, jq) that only read."""

from __future__ import annotations

import re

from callboard.surfaces.shell.judging._word_expansion import UnclearError

_PART = r"(?:[^{0}\\\n[]|\\[^\n]|\[\^?\]?[^{0}\]\n]*\])*"
"""A part of a sed command. Character sets must not contain its delimiter: implementations differ there."""
_SUBSTITUTE = "|".join(
    rf"s{sign}{part}{sign}{part}{sign}[gpIi0-9]*"
    for sign, part in ((re.escape(delimiter), _PART.format(delimiter)) for delimiter in "/|#,:@!")
)
_TRANSLATE = rf"y/{_PART.format('/')}/{_PART.format('/')}/"
_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_PART.format('/')}/I?)"
_RANGE = rf"(?:{_ADDRESS}(?:[ \t]*+,[ \t]*+(?:{_ADDRESS}|[+~][0-9]+))?[ \t]*+(?:![ \t]*+)?)?"
_COMMAND = rf"{_RANGE}(?:[pdDPgGhHxnN=]|[qQ][0-9]*|{_SUBSTITUTE}|{_TRANSLATE})?"
_SED = re.compile(rf"[ \t]*+{_COMMAND}[ \t]*+(?:[;\n][ \t]*+{_COMMAND}[ \t]*+)*+")
_AWK_WORDS = re.compile(
    r"system|getline|close|fflush|ARG[CIV]|PROCINFO|ENVIRON|SYMTAB|FUNCTAB|nextfile|extension|@|\bfunc|>>|\|&|\\\n"
)
"""Parts of awk programs that may do more than read. They may follow a digit directly, as in ``1ENVIRON``."""
_PRINTF_STORES = re.compile(r"%[^%a-zA-Z(]*[hlLjzt]*n")
_JQ = re.compile(r"\b(?:import|include|modulemeta|input_filename|get_search_list|env)\b|ENV")


def sed_script(script: str) -> None:
    """Refuse a sed script that may do more than read.

    It may write, read other files or run programs.

    Raises:
        UnclearError: If it may.
    """
    if _SED.fullmatch(script) is None:
        msg = f"the script {script!r} of sed is not one that only reads"
        raise UnclearError(msg)


def awk(text: str) -> None:
    """Refuse an awk program or assignment that may do more than read.

    It can write, read other files or run programs by a function, a redirect of its output, or a pipe.

    Raises:
        UnclearError: If it may.
    """
    prints = "print" in text
    pipes = "|" in text.replace("||", "")
    if _AWK_WORDS.search(text) or (prints and (">" in text or pipes)):
        msg = f"the program {text!r} of awk may do more than read"
        raise UnclearError(msg)


def printf_format(text: str) -> None:
    """Refuse a printf format that sets a variable.

    Raises:
        UnclearError: If it may.
    """
    if _PRINTF_STORES.search(text):
        msg = "printf may set a variable"
        raise UnclearError(msg)


def jq_filter(text: str) -> None:
    """Refuse a jq filter that reads other files.

    Raises:
        UnclearError: If it may.
    """
    if _JQ.search(text):
        msg = f"the filter {text!r} of jq may read other files"
        raise UnclearError(msg)
