"""The texts of pages are in one file."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest
from jinja2 import Environment

from callboard.config import ENGLISH

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "console"
SHOWN = [
    *sorted((ROOT / "history").glob("*.py")),
    *sorted(CONSOLE.glob("*.py")),
    ROOT / "actors" / "replay" / "_compare.py",
    ROOT / "actors" / "replay" / "_scene.py",
    ROOT / "actors" / "commands" / "_content_changes.py",
]
"""The modules whose words pages show."""
REPLAY = sorted((ROOT / "actors" / "replay").glob("_*.py"))
WRITE = {"text", "write"}
"""The functions that write a text by its name."""
NOT_WORDS = {
    "callboard-",
    "\nevent: ready\ndata: {}\n\n",
    "\ndata: ",
    "https://",
    "data:image/png;base64,",
    "http://",
    "id: ",
    "link",
    "text",
    ".console-key",
    "content-security-policy",
}
"""Parts of f-strings that no person reads as words."""
GROUPS = re.compile(r"(?:outcome|status|verdict|phase|probe|deadline|judge|server|hazard|fact|budget)_")


def values_of(pattern: str) -> set[str]:
    """List the names of the values in a text."""
    return {name for _, name, _, _ in string.Formatter().parse(pattern) if name}


def forms_of(name: str) -> tuple[str, ...]:
    """List the forms of a text."""
    english = ENGLISH[name]
    return (english,) if isinstance(english, str) else english


def calls(tree: ast.AST) -> list[ast.Call]:
    """Find the calls that write a text."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if isinstance(call.func, ast.Name) and call.func.id in WRITE and call.args]


def names_in(argument: ast.expr) -> list[str]:
    """List the names of texts that an argument can be; empty if it is computed."""
    match argument:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.IfExp(body=body, orelse=orelse):
            return names_in(body) + names_in(orelse)
        case _:
            return []


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_module_has_no_words_of_its_own(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    errors = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "msg"
    ]
    errors += [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "_log." in ast.unparse(node.func)]
    errors += [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__str__"]
    for_developers = {id(part) for error in errors for part in ast.walk(error)}
    words = [
        f"{part.lineno}: {part.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) and id(node) not in for_developers
        for part in node.values
        if isinstance(part, ast.Constant)
        and re.search(r"[A-Za-z]{2}", str(part.value))
        and str(part.value) not in NOT_WORDS
        and not re.fullmatch(r"[a-z]+_|_[a-z]+", str(part.value))
    ]
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    words += [
        f"{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and id(node) not in docstrings | for_developers
        and re.search(r"[A-Za-z]{2} [A-Za-z]", str(node.value))
        and not re.match(r"default-src|form-action|UPDATE|SELECT", str(node.value))
    ]
    assert words == []


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_texts_of_a_module_exist_and_get_their_values(path):
    for call in calls(ast.parse(path.read_text(encoding="utf-8"))):
        for name in names_in(call.args[0]):
            assert name in ENGLISH, f"{path.name}:{call.lineno}"
            if all(keyword.arg for keyword in call.keywords):
                assert {keyword.arg for keyword in call.keywords} == values_of(forms_of(name)[0]), (
                    f"{path.name}:{call.lineno}"
                )


TEMPLATES = sorted((CONSOLE / "templates").iterdir())


def literals_of(template: Path) -> str:
    """Give the text of a template that people read."""
    source = "".join(
        value if kind == "data" else "\0"
        for _, kind, value in Environment().lex(template.read_text(encoding="utf-8"))  # noqa: S701 - it is not rendered
    )
    read = re.findall(r'(?:alt|aria-label|title|placeholder|data-sure)="([^"]*)"', source)
    return " ".join([re.sub(r"<[^>]*>", " ", source), *read])


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_template_has_no_words_of_its_own(template):
    assert re.findall(r"[^\W\d_]{2,}", literals_of(template)) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_texts_of_a_template_exist_and_get_their_values(template):
    source = template.read_text(encoding="utf-8")
    for name in re.findall(r"\bt\.(\w+)", source):
        assert [values_of(form) for form in forms_of(name)] == [set()], name
    for arguments in re.findall(r"\btext\(('.*?)\)(?:\)| ?[}~%])", source):
        names = re.findall(r"'(\w+)'(?=,| if| else)", arguments)
        given = set(re.findall(r"(\w+)=", arguments))
        assert names
        assert all(values_of(forms_of(name)[0]) == given for name in names), arguments


NOT_SHOWN = {"h1", "message", "said_", "short"}
"""Literals beside those that the script shows: a tag, an id, the name of a text, an option of the browser's clock."""


def test_script_has_no_words_of_its_own():
    script = (CONSOLE / "static" / "console.js").read_text(encoding="utf-8")
    shown = re.findall(r"(?:textContent\s*=|\bsay\(|Error\(|confirm\(|\btitle\s*=)\s*([^;]*);", script)
    literals = [literal for code in shown for literal in re.findall(r'"([^"]*)"|`([^`]*)`', code)]
    words = [re.sub(r"\$\{[^}]*\}", "", "".join(literal)) for literal in literals]
    assert len(shown) > 10
    assert [word for word in words if re.search(r"[A-Za-z]{2}", word) and word not in NOT_SHOWN] == []


def test_every_text_is_used():
    sources = [path.read_text(encoding="utf-8") for path in (*SHOWN, *REPLAY, *TEMPLATES)]
    source = "\n".join((*sources, (CONSOLE / "static" / "console.js").read_text(encoding="utf-8")))
    computed = r"count_|new_|removed_|changed_|differs_|said_|answered|approved|rejected"
    unused = [
        name
        for name in ENGLISH
        if not re.search(rf"\bt\.{name}\b|['\"]{name}['\"]", source)
        and not GROUPS.match(name)
        and not re.match(computed, name)
    ]
    assert unused == ["plural"]


def test_forms_of_a_text_have_the_same_values():
    for name in ENGLISH:
        assert len({frozenset(values_of(form)) for form in forms_of(name)}) == 1, name
