"""Parsing of commands by tree-sitter, checked against an independent tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.surfaces.shell.judging._word_expansion import ShellToken, UnclearError, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

LONGEST = 20_000
"""The most bytes of a command that is parsed."""
_DEEPEST = 60
WORDS = frozenset(
    {"brace_expression", "word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion"}
)
"""The node types of words."""
_WHOLE = WORDS | {"variable_assignment", "variable_name", "test_operator", "file_descriptor"}
_ONE_COMMAND = frozenset({"command", "declaration_command", "test_command", "variable_assignments"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect"})


def parser() -> Parser | None:
    """Make a parser for bash; None without the extra `shell`.

    Only one thread may use it.
    """
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parsed(source: bytes) -> Node:
    """Parse a command.

    The parser's grammar and bash do not split every text into the same words. So an independent tokenizer splits the
    command too, and a command on which the two differ is refused.

    Raises:
        UnclearError: If the command can't be parsed, or has an unsupported form.
    """
    bash_parser = parser()
    if bash_parser is None:
        msg = "commands are not parsed here: that needs callboard[shell]"
        raise UnclearError(msg)
    if len(source) > LONGEST:
        msg = f"it has more than {LONGEST:,} bytes"
        raise UnclearError(msg)
    root = bash_parser.parse(source).root_node
    if root.has_error:
        msg = "it can't be parsed"
        raise UnclearError(msg)
    _check(list(_leaves(root)), tokens(source))
    return root


def _leaves(root: Node) -> Iterator[tuple[int, int, int]]:
    """Yield the start, end and owner of each word and operator.

    The owner is the position of the command; it is -1 for an operator, a keyword or a redirect.
    """
    stack: list[tuple[Any, int, int]] = [(root, -1, 0)]
    while stack:
        node, owner, depth = stack.pop()
        if node.type == "comment" or (node.type == "program" and not node.children):
            continue
        if depth > _DEEPEST:
            msg = "it is nested too deeply"
            raise UnclearError(msg)
        if node.type in _WHOLE or not node.children:
            yield node.start_byte, node.end_byte, owner
            continue
        inner = node.start_byte if node.type in _ONE_COMMAND else -1 if node.type in _REDIRECTS else owner
        stack += [(child, inner, depth + 1) for child in reversed(node.children)]


def _check(leaves: list[tuple[int, int, int]], shell_tokens: list[ShellToken]) -> None:
    """Compare the words of the tree with the tokens.

    Raises:
        UnclearError: If they differ.
    """
    expected = [(token.start, token.end) for token in shell_tokens if token.kind != "newline"]
    agree = expected == [(start, end) for start, end, _ in leaves]
    index, broken = 0, True
    for token in shell_tokens:
        if token.kind == "newline":
            broken = True
            continue
        if agree and index and -1 not in (leaves[index - 1][2], leaves[index][2]):
            same = leaves[index - 1][2] == leaves[index][2]
            agree = same is not broken
        index, broken = index + 1, False
    if not agree:
        msg = "its words can be split in more than one way"
        raise UnclearError(msg)
