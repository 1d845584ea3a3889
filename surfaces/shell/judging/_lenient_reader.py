"""A lenient reader of shell commands.

The judge refuses each form that it does not understand. This reader is for questions that need an answer about any
text: it follows bash's quotes, operators, here-documents and substitutions where it can, and goes on where it can't.
Then the structure is `doubtful`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from callboard.surfaces.shell.judging._braces import expand_braces
from callboard.surfaces.shell.judging._word_expansion import UnclearError

UNKNOWN_PART = "\0"
"""The sign for a part of a word that only bash knows, such as the output of a command."""
_CASE_ENDS = frozenset({";;", ";&", ";;&"})
_MOST_DEPTH = 40
_MOST_WORDS = 20_000
_MOST_DOCUMENTS = 20
_SPACE = re.compile(r"[ \t\r]+|\\\n|#[^\n]*")
_OPERATOR = re.compile(
    r"(?:[0-9]+(?=[<>]))?(?:<<<|<<-?|&>>|&>|>>|>&|<&|<>|>\||[<>](?!\())|;;&|;;|;&|&&|\|\||\|&|[;&|()\n]"
)
_WORD_END = re.compile(r"[\s;&|()]|[<>](?!\()")
_PLAIN = re.compile(r"[^\\'\"$`<>\s;&|(){}\]]+")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.DOTALL)
_NAME = re.compile(r"\$([A-Za-z_]\w*|[0-9?#$!@*-])")
_DEFAULT = re.compile(r"(\w+)(?::?[-=+](.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?\+?=(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0?([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_KEYWORDS = frozenset(
    ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time", "coproc", "function"]
)


@dataclass
class SimpleCommand:
    """One program with its words, as it gets them."""

    words: list[str] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    """The values of assignments before the command."""
    inputs: list[str] = field(default_factory=list)
    """The texts of its here-documents and here-strings."""


class LenientReader:
    """A reader of one text.

    Args:
        text: The commands.
        variables: Known values of variables.
        depth: The number of texts around this one.
    """

    def __init__(self, text: str, variables: dict[str, str] | None = None, depth: int = 0) -> None:
        self.pipelines: list[list[SimpleCommand]] = []
        """The commands, also those of substitutions: in each list, the output of one is the next one's input."""
        self.doubtful = False
        """Whether bash may read the text in another way."""
        self._text = text
        self._at = 0
        self._depth = depth
        self._variables = {} if variables is None else variables
        self._count = 0
        self._separator = ""
        self._documents: list[tuple[SimpleCommand, str, bool]] = []

    def read(self, *, inner: bool = False, arithmetic: bool = False) -> None:
        """Read commands to the end, or to a closing parenthesis."""
        self._depth += 1
        pipeline = [SimpleCommand()]
        while self._at < len(self._text):
            space, operator = _SPACE.match(self._text, self._at), _OPERATOR.match(self._text, self._at)
            if space is not None:
                self._at = space.end()
            elif operator is None:
                self._add(pipeline[-1])
            else:
                self._at = operator.end()
                sign = operator[0].lstrip("0123456789")
                words = pipeline[0].words
                pattern = "case" in words or (self._separator in _CASE_ENDS and words[-1:] != ["esac"])
                if sign == ")" and inner and not pattern:
                    break
                pipeline = self._operator(sign, pipeline, arithmetic=arithmetic)
        self._finish(pipeline)
        self._depth -= 1

    def _operator(self, sign: str, pipeline: list[SimpleCommand], *, arithmetic: bool) -> list[SimpleCommand]:
        """Read the parts of an operator; return the next pipeline."""
        command = pipeline[-1]
        if sign == "(":
            self._read_inside(arithmetic=arithmetic or self._text.startswith("(", self._at))
        elif sign == ")":  # the pattern of a case
            self._separator = sign
            return [SimpleCommand()]
        elif sign in {"|", "|&"}:
            pipeline.append(SimpleCommand())
        elif sign[0] in "<>" or sign[:2] == "&>":
            if command.words[-1:] and re.fullmatch(r"\{\w+\}", command.words[-1]):  # the name of a descriptor
                command.words.pop()
            self._redirect(sign, command, arithmetic=arithmetic)
        else:
            self._finish(pipeline)
            self._separator = sign if sign != "\n" else self._separator
            if sign == "\n":
                self._read_documents()
            return [SimpleCommand()]
        return pipeline

    def _read_inside(self, *, arithmetic: bool) -> None:
        """Read commands to the closing parenthesis."""
        if self._depth < _MOST_DEPTH:
            self.read(inner=True, arithmetic=arithmetic)
        else:
            self.doubtful = True

    def _take(self, reader: LenientReader) -> None:
        """Keep the commands of a text within this one."""
        self.pipelines += reader.pipelines
        self.doubtful = self.doubtful or reader.doubtful

    def _redirect(self, sign: str, command: SimpleCommand, *, arithmetic: bool) -> None:
        while (space := _SPACE.match(self._text, self._at)) is not None and not space[0].startswith("#"):
            self._at = space.end()
        start = self._at
        value = self._word()
        if sign == "<<<" or (sign == "<" and UNKNOWN_PART in value):
            command.inputs.append(value)
        elif sign.startswith("<<") and arithmetic:
            self.doubtful = True
        elif sign.startswith("<<"):
            self.doubtful = self.doubtful or "[" in "".join(command.words[-1:])  # an index, such as x[1<<2]
            expands = not re.search(r"['\"\\]", self._text[start : self._at])
            self._documents.append((command, value, expands))

    def _read_documents(self) -> None:
        """Read the here-documents after a line; an endless one holds commands."""
        documents, self._documents = self._documents[:_MOST_DOCUMENTS], self._documents[_MOST_DOCUMENTS:]
        self.doubtful = self.doubtful or bool(self._documents)
        for command, end, expands in documents:
            closing = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(self._text, self._at)
            if closing is None:
                self.doubtful = True
                return
            body = self._text[self._at : closing.start()]
            command.inputs.append(body)
            self._at = min(closing.end() + 1, len(self._text))
            if expands and self._depth < _MOST_DEPTH:
                reader = LenientReader(body, self._variables, self._depth + 1)
                while reader._at < len(body):
                    reader._piece(quoted=True)
                self._take(reader)

    def _finish(self, pipeline: list[SimpleCommand]) -> None:
        """Keep a pipeline, without its keywords, and keep its assignments."""
        for command in pipeline:
            words = command.words
            while words:
                assignment = _ASSIGNMENT.fullmatch(words[0])
                if assignment is not None:
                    command.assigned.append(assignment[2])
                    self._variables[assignment[1]] = assignment[2]
                elif words[0] not in _KEYWORDS:
                    break
                del words[0]
            if words[:1] in (["for"], ["select"]):
                self._variables.update(dict.fromkeys(words[1:2], words[3] if len(words) == 4 else UNKNOWN_PART))
                words.clear()
        self.pipelines.append(pipeline)

    def _add(self, command: SimpleCommand) -> None:
        """Read a word, or several in braces."""
        start = self._at
        value = self._word()
        if self._at == start:
            self._at += 1
            return
        raw = self._text[start : self._at]
        words = [value]
        if "{" in raw and self._count < _MOST_WORDS:
            try:
                raws = expand_braces(raw.encode(errors="replace"))
            except UnclearError:
                raws = []
            if len(raws) > 1:
                readers = [
                    LenientReader(expansion.decode(errors="replace"), self._variables, self._depth)
                    for expansion in raws
                ]
                words = [reader._word() for reader in readers]  # noqa: SLF001 - of the same class
        self._count += len(words)
        command.words += words

    def _word(self) -> str:
        value = ""
        while self._at < len(self._text) and not _WORD_END.match(self._text, self._at):
            value += self._piece()
        return value

    def _piece(self, *, quoted: bool = False) -> str:
        """Read a quoted text, an expansion, or other characters."""
        text, at = self._text, self._at
        plain, name = _PLAIN.match(text, at), _NAME.match(text, at)
        if plain is not None:
            self._at = plain.end()
            return plain[0]
        if text[at] == "\\":
            self._at += 2
            following = text[at + 1 : at + 2]
            return "" if following == "\n" else f"\\{following}" if quoted and following not in '$`"\\' else following
        if text.startswith(("$(", "<(", ">("), at) and (not quoted or text[at] == "$"):
            self._at += 2
            self._read_inside(arithmetic=text.startswith("$((", at))
            return UNKNOWN_PART
        if text.startswith("$[", at):  # arithmetic of old
            self._at += 2
            self._until("]", quoted=quoted)
            return UNKNOWN_PART
        if text[at] == "`":
            return self._backquoted()
        if text.startswith("${", at):
            return self._parameter(quoted=quoted)
        if name is not None:
            self._at = name.end()
            return self._variables.get(name[1], UNKNOWN_PART)
        return self._character(quoted=quoted)

    def _character(self, *, quoted: bool) -> str:
        text, at = self._text, self._at
        ansi = _ANSI.match(text, at)
        if not quoted and ansi is not None:
            self._at = ansi.end()
            return decode_escapes(ansi[1])
        if not quoted and text[at] == "'":
            end = text.find("'", at + 1)
            self._at = len(text) if end < 0 else end + 1
            return text[at + 1 : end if end >= 0 else None]
        if not quoted and (text[at] == '"' or text.startswith('$"', at)):
            self._at = text.index('"', at) + 1
            return self._until('"', quoted=True)
        self._at += 1
        return text[at]

    def _until(self, end: str, *, quoted: bool) -> str:
        """Read a text up to a quotation mark or a closing bracket."""
        value = ""
        while self._at < len(self._text) and self._text[self._at] != end:
            value += self._piece(quoted=quoted)
        self._at += 1
        return value

    def _parameter(self, *, quoted: bool) -> str:
        """Read an expansion in braces, with its default value."""
        start = self._at
        self._at += 2
        self._depth += 1
        inside = self._until("}", quoted=quoted) if self._depth < _MOST_DEPTH else UNKNOWN_PART
        self._depth -= 1
        self.doubtful = self.doubtful or inside == UNKNOWN_PART or (quoted and "'" in self._text[start : self._at])
        match = _DEFAULT.fullmatch(inside)
        default = UNKNOWN_PART if match is None or match[2] is None else match[2]
        return default if match is None else self._variables.get(match[1]) or default

    def _backquoted(self) -> str:
        text, start = self._text, self._at + 1
        closing = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL).match(text, start)
        end = start if closing is None else closing.end()
        self._at = end + 1
        if self._depth < _MOST_DEPTH:
            reader = LenientReader(re.sub(r"\\([`\\$])", r"\1", text[start:end]), self._variables, self._depth + 1)
            reader.read()
            self._take(reader)
        return UNKNOWN_PART


def decode_escapes(text: str) -> str:
    """Replace the escapes of ``$'…'`` and of printf."""

    def replaced(match: re.Match[str]) -> str:
        code = next((int(match[group], 16) for group in (1, 2, 3) if match[group]), None)
        if match[4]:
            code = int(match[4], 8)
        if code is None:
            return _LETTERS.get(match[5], match[5])
        return chr(code) if code <= 0x10FFFF else UNKNOWN_PART

    return _ESCAPE.sub(replaced, text)
