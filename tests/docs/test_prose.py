"""The plain language of docstrings, comments, names and pages."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
OPENINGS = ("What", "How", "Whether", "Who", "That", "Which", "Where")
"""Words that do not open a first line; a field's description may open with Whether."""
LONGEST = 12
"""Words in a first line."""
MOST_WHAT = 2
"""Most uses of "what" in 1,000 words."""
FORBIDDEN = ("nobody", "somebody", "whoever", "anew", "all the same", "of which", "deed", "veil")
WORD = re.compile(r"[A-Za-z']+")

PACKAGES = tuple(f"{path.parent.name}/**/*.py" for path in sorted(ROOT.glob("*/__init__.py")))
"""All modules of each package at the root."""
SHORT = ("*.py", *PACKAGES, "docs/*.py", "examples/**/*.py", "tests/*/conftest.py", "tests/[!t]*.py")
"""Files whose docstrings and comments are checked."""

TESTS = ("tests/**/test_*.py", "tests/*/[!t]*.py")
"""Files whose first lines may be longer: the sentence of a file says its promise."""

NAMED = ("*.py", *(part for part in PACKAGES if not part.startswith("benchmarks")))
"""Files whose names of variables and parameters are checked."""

NO_NOUNS = frozenset(
    re.findall(
        r"\w+",
        """each found made left given wanted known seen told kept own taken asked meant lost shown late over ahead begun
        alike odd then place whole after before again other others rest both one only""",
    )
)
"""Words that do not name a variable: they say neither its type nor its role."""
MOST_NO_NOUNS = 12
"""Most of these in 1,000 names: a few are public, and pairs such as `before` and `after` are plain."""
NO_SUBJECT = re.compile(
    r"^test_(what|who|nothing|nobody|how|whether)_|_(told|anew|nobody|said|says|word)(_|$)|_go(es)?_on(_|$)"
)
"""Names of tests that do not begin with their subject, or use words of no user."""

PAGES = ("*.md", "docs/*.md")
"""Pages with plain prose."""


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Give the bodies of a node and of the statements in it; no expression has one."""
    body = getattr(node, "body", None)
    if isinstance(body, list):
        yield body
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from blocks(child)


@functools.cache
def docstrings(path: Path) -> list[tuple[int, str, bool]]:
    """Give the docstrings of a file as (line, text, describes a field)."""
    found = []
    for body in blocks(ast.parse(path.read_text(encoding="utf-8"))):
        for place, statement in enumerate(body):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    found.append((line, text, place > 0))
    return found


@functools.cache
def comments(path: Path) -> list[tuple[int, str]]:
    """Give a file's comments with their lines, except marks of tools."""
    text = path.read_text(encoding="utf-8")
    if "#" not in text:
        return []
    return [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not re.search(r"noqa|type: ignore", token.string)
    ]


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Give a Markdown page's numbered lines, except those of code."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


def files(part: str) -> list[Path]:
    found = sorted(ROOT.glob(part))
    assert found
    return found


@pytest.mark.parametrize("part", [*SHORT, *TESTS])
def test_a_first_line_names_the_thing(part):
    against = []
    for path in files(part):
        for line, text, field in docstrings(path):
            opening = text.split()[0].strip("`.,:;")
            if opening in OPENINGS and not (field and opening == "Whether"):
                against.append(f"{path.relative_to(ROOT)}:{line}: opens with {opening}")
    assert against == []


@pytest.mark.parametrize("part", SHORT)
def test_a_first_line_has_at_most_twelve_words(part):
    against = []
    for path in files(part):
        for line, text, field in docstrings(path):
            first = text.strip().partition("\n")[0].split()
            if len(first) > LONGEST and not field:
                against.append(f"{path.relative_to(ROOT)}:{line}: {len(first)} words")
    assert against == []


@pytest.mark.parametrize("part", [*SHORT, *TESTS])
def test_prose_has_no_private_language(part):
    words, what, against = 0, 0, []
    for path in files(part):
        for line, text in [*((line, text) for line, text, _ in docstrings(path)), *comments(path)]:
            lower = " ".join(text.lower().split())
            words += len(WORD.findall(lower))
            what += len(re.findall(r"\bwhat\b", lower))
            against += [
                f"{path.relative_to(ROOT)}:{line}: {word!r}" for word in FORBIDDEN if re.search(rf"\b{word}s?\b", lower)
            ]
    assert against == []
    assert 1000 * what <= MOST_WHAT * words


@pytest.mark.parametrize("page", [path for part in PAGES for path in files(part)], ids=lambda path: path.name)
def test_a_page_has_no_private_language(page):
    words, what, against = 0, 0, []
    for number, line in prose(page):
        lower = line.lower()
        words += len(WORD.findall(lower))
        what += len(re.findall(r"\bwhat\b", lower))
        against += [f"{number}: {word!r}" for word in FORBIDDEN if re.search(rf"\b{word}s?\b", lower)]
    assert against == []
    assert 1000 * what <= MOST_WHAT * words


def bound_names(path: Path) -> Iterator[str]:
    """Give the names that a file binds to values: variables and parameters."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in {"self", "cls"}:
            yield node.arg


def test_variables_are_named_by_nouns():
    names = [name for part in NAMED for path in files(part) for name in bound_names(path)]
    assert len(names) > 20_000
    assert 1000 * sum(name in NO_NOUNS for name in names) <= MOST_NO_NOUNS * len(names)


def test_names_of_tests_begin_with_their_subject():
    names = [
        node.name
        for path in files("tests/**/test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) > 4_000
    assert 100 * sum(bool(NO_SUBJECT.search(name)) for name in names) <= len(names)
