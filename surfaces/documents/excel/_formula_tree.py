"""Formulas as trees of calls; an operator is a call, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Callable

_STRENGTHS = {"^": 5, "*": 4, "/": 4, "+": 3, "-": 3, "&": 2} | dict.fromkeys(("=", "<>", "<", ">", "<=", ">="), 1)
"""The precedences of binary operators; prefixes and ``%`` bind more strongly."""
_PREFIXES = {"-": "NEGATIVE", "+": "POSITIVE"}
_MOST_DEPTH = 60


class NotParsedError(Exception):
    """A formula that is malformed or uses a rare form of reference."""


@dataclass(frozen=True)
class Literal:
    """A value that stands in a formula; None for a missing argument."""

    value: float | str | bool | None


@dataclass(frozen=True)
class Reference:
    """A reference, as it stands in the formula."""

    text: str


@dataclass(frozen=True)
class FormulaCall:
    """A function, or an operator, with its arguments."""

    name: str
    """In capitals, without prefixes; for an operator its sign, ``NEGATIVE``, ``POSITIVE`` or ``%``."""
    arguments: tuple[Node, ...]


Node: TypeAlias = "Literal | Reference | FormulaCall"


def parsed(formula: str) -> Node:
    """Parse a formula, given without ``=``.

    Raises:
        NotParsedError: If it is malformed, or has a constant array, an error or a union.
    """
    try:
        tokens: Any = [token for token in Tokenizer(f"={formula}").items if token.type != Token.WSPACE]
    except (TokenizerError, IndexError) as error:
        raise NotParsedError from error
    parser = _Parser(tokens)
    node = parser.expression(1)
    if parser.token is not None:
        raise NotParsedError
    return node


class _Parser:
    def __init__(self, tokens: list[Any]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def token(self) -> Any:
        """The next token; None at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def expression(self, strength: int) -> Node:
        """Parse operands that are joined by operators of a strength."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise NotParsedError
        node = self._prefixed()
        while (token := self.token) is not None and token.type == Token.OP_IN:
            operator_strength = _STRENGTHS.get(token.value, 0)
            if operator_strength == 0:  # an intersection
                raise NotParsedError
            if operator_strength < strength:
                break
            self._next += 1
            node = FormulaCall(token.value, (node, self.expression(operator_strength + 1)))
        self._depth -= 1
        return node

    def _prefixed(self) -> Node:
        token = self._take()
        if token.type == Token.OP_PRE and token.value in _PREFIXES:
            return self._with_percent(FormulaCall(_PREFIXES[token.value], (self._prefixed(),)))
        return self._with_percent(self._operand(token))

    def _with_percent(self, node: Node) -> Node:
        while self.token is not None and self.token.type == Token.OP_POST:
            self._next += 1
            node = FormulaCall("%", (node,))
        return node

    def _operand(self, token: Any) -> Node:
        if token.type == Token.PAREN and token.subtype == Token.OPEN:
            node = self.expression(1)
            self._close(Token.PAREN)
            return node
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            return FormulaCall(
                token.value[:-1].upper().removeprefix("_XLFN.").removeprefix("_XLWS."), self._arguments()
            )
        if token.type != Token.OPERAND:
            raise NotParsedError
        make = _OPERANDS.get(token.subtype)
        if make is None:
            raise NotParsedError
        return make(token.value)

    def _arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        while True:
            token = self.token
            ends = token is not None and token.type == Token.FUNC and token.subtype == Token.CLOSE
            separates = token is not None and token.type == Token.SEP and token.subtype == Token.ARG
            if ends and not arguments:
                self._next += 1
                return ()
            arguments.append(Literal(None) if ends or separates else self.expression(1))
            token = self._take()
            if token.type == Token.FUNC and token.subtype == Token.CLOSE:
                return tuple(arguments)
            if token.type != Token.SEP or token.subtype != Token.ARG:
                raise NotParsedError

    def _close(self, kind: str) -> None:
        token = self._take()
        if token.type != kind or token.subtype != Token.CLOSE:
            raise NotParsedError

    def _take(self) -> Any:
        token = self.token
        if token is None:
            raise NotParsedError
        self._next += 1
        return token


_OPERANDS: dict[str, Callable[[str], Node]] = {
    Token.NUMBER: lambda text: Literal(float(text)),
    Token.TEXT: lambda text: Literal(text[1:-1].replace('""', '"')),
    Token.LOGICAL: lambda text: Literal(text.upper() == "TRUE"),
    Token.RANGE: Reference,
}
