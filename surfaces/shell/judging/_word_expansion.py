"""Words of a command line: their tokens, and their expansion by bash."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARIABLE = rb"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[?#$!@*0-9-])"
_SINGLE = rb"'[^']*'"
_DOUBLE = rb'"(?:[^"\\`$]|\\.|\$(?![\[({])|\$\{[A-Za-z_]\w*\})*"'
_PLAIN = rb"[^\x00-\x20\x7f'\"\\$`|&;<>()]"
PIECES = re.compile(
    rb"(?P<single>%b)|(?P<double>%b)|(?P<variable>%b)|(?P<escaped>\\[^\n\x80-\xff])|(?P<plain>(?:%b)+|\$(?![\[({'\"\w]))"
    % (_SINGLE, _DOUBLE, _VARIABLE, _PLAIN),
    re.DOTALL | re.ASCII,
)
"""The parts of a word: quoted texts, variables, escaped characters, and others."""
_TOKENS = re.compile(
    rb"(?P<blank>[ \t]+(?:\\\n[ \t]*)*)|(?P<newline>\n)|(?P<comment>#[^\n]*)|(?P<operator>[0-9]+(?=[<>])|&&|\|\||\|&|\|"
    rb"|;|&>>|&>|\(|\)|<<<|>&-|<&-|<&|>&|>>|>\||<(?![<>(])|>(?!\())|(?P<word>(?:%b)+)"
    % re.sub(rb"\?P<\w+>", b"?:", PIECES.pattern),
    re.DOTALL | re.ASCII,
)
_QUOTED_VARIABLE = re.compile(rb"(?P<escaped>\\[$`\"\\\n])|(?P<variable>%b)" % _VARIABLE, re.ASCII)
_HOME = re.compile(rb"~(?=/|\Z)")
_INNER_HOME = re.compile(rb"[=:]~")
_NO_HOME = re.compile(rb"~(?=['\"\\])")
_DIGITS = frozenset({b"$?", b"$#", b"$$"})
_SAFE_UNQUOTED = re.compile(r"[\w./+,@%=:-]*")


class UnclearError(Exception):
    """A command whose effects are unknown; the text gives the reason."""


@dataclass(frozen=True)
class ShellToken:
    """A word, an operator or a newline, by position in bytes."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Word:
    """The expansion of a word by bash."""

    text: str
    """The text; a pattern keeps its wildcards, and of an unknown text it is the known beginning."""
    glob: bool = False
    """Whether the text is a pattern for names of files, such as ``*.log``."""
    known: bool = True
    hidden: bool = False
    """Whether the text may be a secret of the settings."""
    names: bool = False
    """Whether the word is one of a pattern's matches, and no longer the pattern."""
    split: bool = False
    """Whether bash splits the unknown text, or the pattern's matches, at blanks."""

    @property
    def literal(self) -> str:
        """The text.

        Raises:
            UnclearError: If the text is not known.
        """
        if not self.known or self.glob:
            msg = f"the value of {self.text + '…' if self.text else 'a variable'!r} is not known"
            raise UnclearError(msg)
        return self.text

    @property
    def dashed(self) -> bool:
        """True if a program may read the word as an option."""
        return self.text.startswith("-") or not (self.known or self.text)


def tokens(source: bytes) -> list[ShellToken]:
    """Split a command into tokens like bash, independently of the parser.

    Raises:
        UnclearError: If the command has an unsupported form, such as a substitution or a here-document.
    """
    shell_tokens: list[ShellToken] = []
    offset = 0
    while offset < len(source):
        match = _TOKENS.match(source, offset)
        if match is None or match.lastgroup is None:
            excerpt = source[offset : offset + 20].decode(errors="replace")
            msg = f"the form {excerpt!r} is not supported"
            raise UnclearError(msg)
        offset = match.end()
        if match.lastgroup in {"word", "operator", "newline"}:
            shell_tokens.append(ShellToken(match.start(), offset, match.lastgroup))
        if match.lastgroup == "word" and source[offset - 1 : offset + 1] in {b"}<", b"}>"}:
            msg = "a redirect with a named descriptor is not supported"
            raise UnclearError(msg)
    return shell_tokens


def evaluate(raw: bytes, variables: Mapping[str, Word], *, assigned: bool = False) -> Word | None:
    """Expand a word without braces like bash; None if it is removed.

    Args:
        raw: A word of `expand_braces`, or the value of an assignment, in which bash expands no braces.
        variables: The values of known variables.
        assigned: Whether the word is the value of an assignment, in which patterns are not expanded.

    Raises:
        UnclearError: If the expansion is unknown.
    """
    parts: list[Word] = []
    quoted, offset = False, 0
    while offset < len(raw):
        match = PIECES.match(raw, offset)
        if match is None:
            msg = f"the form {raw.decode(errors='replace')!r} is not supported"
            raise UnclearError(msg)
        piece, offset = match[0], match.end()
        if match.lastgroup == "single":
            parts.append(Word(piece[1:-1].decode()))
        elif match.lastgroup == "double":
            parts += _in_quotes(piece[1:-1], variables)
        elif match.lastgroup == "variable":
            parts.append(_unquoted(piece, variables, assigned=assigned))
        elif match.lastgroup == "escaped":
            parts.append(Word(piece[1:].decode()))
        else:
            parts.append(_plain(raw, match, variables, assigned=assigned))
        quoted = quoted or match.lastgroup in {"single", "double"}
    joined = _joined(parts)
    return joined if quoted or joined.text or not joined.known else None


def _joined(parts: list[Word]) -> Word:
    """Join the parts of a word.

    Raises:
        UnclearError: If an unknown part is split, or is in a pattern: the word may be any number of names.
    """
    alone = len([part for part in parts if part.text or not part.known]) == 1
    if not alone:  # the pattern of a variable is lost: its match is a part of another word
        parts = [Word("", known=False, split=part.split) if part.names else part for part in parts]
    glob, split = any(part.glob for part in parts), any(part.split for part in parts)
    if not all(part.known for part in parts):
        if glob or split:
            msg = "the value of an unknown variable is split, or is a part of a pattern"
            raise UnclearError(msg)
        end = next(index for index, part in enumerate(parts) if not part.known)
        return Word("".join(part.text for part in parts[: end + 1]), known=False)
    text = "".join(part.text for part in parts)
    return Word(text, glob, split=split, names=glob and any(part.names for part in parts))


def _plain(raw: bytes, match: re.Match[bytes], variables: Mapping[str, Word], *, assigned: bool) -> Word:
    piece, start = match[0], match.start()
    if any(
        raw[start + tilde.start() - 1 : start + tilde.start()] in {b"=", b":"} for tilde in re.finditer(b"~", piece)
    ):
        msg = f"the expansion in {raw.decode(errors='replace')!r} is not supported"
        raise UnclearError(msg)
    text, glob = piece.decode(), not assigned and any(sign in piece for sign in (b"*", b"?", b"["))
    if start or not text.startswith("~") or _NO_HOME.match(raw):
        return Word(text, glob)
    home = variables.get("HOME")
    if home is None or not _HOME.match(raw) or not _SAFE_UNQUOTED.fullmatch(home.literal):
        msg = f"the home in {text!r} is not known"
        raise UnclearError(msg)
    return Word(home.literal + text[1:], glob)


def _in_quotes(inner: bytes, variables: Mapping[str, Word]) -> Iterator[Word]:
    offset = 0
    for match in _QUOTED_VARIABLE.finditer(inner):
        yield Word(inner[offset : match.start()].decode())
        offset = match.end()
        if match.lastgroup == "escaped":
            yield Word(match[0][1:].decode().replace("\n", ""))
        else:
            yield _value(match[0], variables)
    yield Word(inner[offset:].decode())


def _value(piece: bytes, variables: Mapping[str, Word]) -> Word:
    name = piece.decode().strip("${}")
    if piece in _DIGITS:
        return Word("", known=False)
    if name == "@":
        msg = "the number of words of '$@' is not known"
        raise UnclearError(msg)
    value = variables.get(name, Word("", known=False))
    if value.hidden:
        msg = f"it uses the value of {name}, which may be secret"
        raise UnclearError(msg)
    return value


def _unquoted(piece: bytes, variables: Mapping[str, Word], *, assigned: bool) -> Word:
    value = _value(piece, variables)
    if assigned or piece in _DIGITS:
        return value
    if value.glob:
        return replace(value, split=True)
    if not _SAFE_UNQUOTED.fullmatch(value.literal):
        msg = f"the value {value.text!r} of an unquoted variable is split or expanded"
        raise UnclearError(msg)
    return value
