"""The public API: its exports, and that pages and examples need nothing else."""

from __future__ import annotations

import ast
import asyncio
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError as McpToolError

import callboard
import callboard.errors
import callboard.messages
import callboard.surface
from callboard import FunctionModel, Supervisor, Task, TaskHandle, tool
from callboard.messages import CallboardError, Effect
from callboard.testing import MemoryServer
from generator import GENERATE
from support import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
API = GENERATE.API
PUBLIC = {"callboard" if part == "callboard" else f"callboard.{part}": names for part, names in API.items()}
NAMES = {name for names in API.values() for name in names}
INTERNAL_PAGES = {"architecture.md"}
"""Pages for people who change the library, which name internal classes."""
PLAIN_WORDS = {"Answer", "Field", "Wait", "Word", "Step", "Line"}
"""Names of internal classes that pages use in another sense: keys, classes of other libraries."""


def code_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL) if path.suffix == ".md" else [text]


def imported(path: Path) -> list[tuple[str, str]]:
    """Give each name of ours that a page's code or an example imports, with its module."""
    found = []
    for code in code_of(path):
        for node in ast.walk(ast.parse(code)):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    found += [(module, alias.name) for alias in names]
                case ast.Import(names=names):
                    found += [(alias.name, "") for alias in names]
    return [(module, name) for module, name in found if module.split(".")[0] == "callboard"]


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_pages_and_examples_import_public_names_only(path):
    against = [
        (module, name)
        for module, name in imported(path)
        if name not in PUBLIC.get(module, ()) and f"{module}.{name}".rstrip(".") not in PUBLIC
    ]
    assert against == []


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_no_page_and_no_example_names_an_internal_module(path):
    text = path.read_text(encoding="utf-8").replace("`callboard.actors` above all", "")
    assert re.findall(r"callboard\.(?:actors|terminal|supervisor)\b[\w.]*", text) == []


@functools.cache
def internal_classes() -> set[str]:
    """Give the names of all classes and functions that are not public."""
    found = set()
    for path in (ROOT / "actors").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.add(node.name)
    return found - NAMES - PLAIN_WORDS


@pytest.mark.parametrize("path", [page for page in PAGES if page.name not in INTERNAL_PAGES], ids=lambda p: p.name)
def test_every_class_that_a_page_mentions_is_public(path):
    mentioned = set(re.findall(r"`([A-Z]\w+)(?:[.(][^`]*)?`", path.read_text(encoding="utf-8")))
    known = {name for name in dir(callboard.messages) if re.match(r"[A-Z][a-z]", name)} | internal_classes()
    assert mentioned & known - NAMES - PLAIN_WORDS == set()


def test_the_package_exports_at_most_twenty_names():
    assert len(callboard.__all__) <= 20
    assert callboard.__all__ == sorted(callboard.__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_exists_and_is_described_on_the_page(module):
    names = PUBLIC[module]
    assert len(set(names)) == len(names)
    source = importlib.import_module(module)
    assert set(names) <= set(getattr(source, "__all__", dir(source)))
    assert [name for name in names if not GENERATE.meaning(module, name)] == []


def test_attributes_of_the_main_classes_are_described():
    described = {owner: GENERATE.attributes_of(owner) for owner in (Supervisor, TaskHandle)}
    assert [*described[Supervisor]] == ["settings", "skills", "warnings"]
    assert [*described[TaskHandle]] == ["task", "task_id", "session"]
    assert all(text for found in described.values() for text in found.values())


def classes_in(annotation: str) -> set[str]:
    values = callboard.messages
    words = {word for word in re.findall(r"\w+", annotation) if isinstance(getattr(values, word, None), type)}
    return {word for word in words if getattr(values, word).__module__.startswith("callboard.")}


def test_values_that_calls_take_and_return_are_public():
    signatures = [
        str(inspect.signature(function))
        for owner in (Supervisor, TaskHandle)
        for _, function in GENERATE.methods_of(owner)
    ]
    fields = [
        ast.unparse(node.annotation)
        for name in ("Event", "ModelAnswer", "ModelRequest", "PlanStep", "Task", "TaskResult")
        for node in ast.parse(inspect.getsource(getattr(callboard, name))).body[0].body
        if isinstance(node, ast.AnnAssign)
    ]
    needed = set().union(*map(classes_in, [*signatures, *fields]))
    assert {"Budget", "SupervisorHealth", "StepRecord"} <= needed
    assert needed - NAMES == set()


def test_all_errors_are_public_and_in_the_tree():
    def below(error: type[Exception]) -> set[str]:
        ours = [each for each in error.__subclasses__() if each.__module__.startswith("callboard.")]
        return {error.__name__}.union(*map(below, ours))

    messages = {name for name in below(CallboardError) if hasattr(callboard.messages, name)}
    assert messages | {"ToolError", "InDoubtError"} == set(callboard.errors.__all__)
    drawn = re.findall(r"(\w+): ", GENERATE.errors())
    assert {name for name in drawn if name.endswith("Error")} == set(callboard.errors.__all__)  # twice, with two bases


def test_the_tree_in_the_source_names_every_error():
    text = (ROOT / "messages" / "_errors.py").read_text(encoding="utf-8")
    drawn = re.findall(r"^    [│├└─ ]*(\w+Error)\b", ast.get_docstring(ast.parse(text), clean=False), re.MULTILINE)
    assert sorted(drawn) == sorted(callboard.errors.__all__)


def test_tool_error_is_callboards_own():
    assert issubclass(callboard.ToolError, CallboardError)
    assert callboard.ToolError.__module__.startswith("callboard.")
    assert callboard.surface.ToolError is callboard.errors.ToolError is callboard.ToolError


class Refusing(MemoryServer):
    """A surface whose tool raises the error that it is given."""

    error: Exception

    @tool(effect=Effect.READ)
    def look_up(self, target: str) -> str:
        """Look something up."""
        raise self.error


REASON = "there is no such entry; there are: a, b"


@pytest.mark.parametrize("error", [callboard.ToolError(REASON), McpToolError(REASON)], ids=["ours", "mcp's"])
def test_a_model_is_shown_the_text_of_a_tool_error(error, start):
    window = MemoryServer.window()
    surface = Refusing(window)
    surface.error = error
    results = []

    def work(request):
        results.extend(done for step in request.memory for done in step.results)
        return {"Status": "FAIL"} if results else {"Function": "look_up", "Status": "CONTINUE"}

    supervisor = start(app=FunctionModel(work), servers=[surface])
    supervisor.submit(Task(request="look it up", target=window.id)).result(timeout=PATIENCE)
    assert [(done.error, done.broke) for done in results] == [(REASON, False)]


def test_a_stand_alone_server_sends_the_text_of_our_tool_error():
    surface = Refusing(MemoryServer.window())
    surface.error = callboard.ToolError(REASON)

    async def call() -> str:
        with pytest.raises(McpToolError) as caught:
            await surface.mcp_server().call_tool("look_up", {"target": "one"})
        return str(caught.value)

    assert REASON in asyncio.run(call())


def test_the_page_lists_a_signature_and_no_address_of_an_object():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert "| `Supervisor.submit(task, *, output_type=None)` | Submit a task and start it. |" in page
    assert "agents=(AgentKind.APP,)" in page
    assert " at 0x" not in page
