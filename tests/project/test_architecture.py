"""The rules of imports, and of calls that no module may make; read from the source."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import forks
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"tests", "docs", "examples", "benchmarks", "build"}

LAYERS = [
    {"_lazy_names"},
    {"messages", "network"},
    {"config"},
    {"models", "surfaces", "journal", "pictures", "observe", "states"},
    {"runtime", "history", "routines"},
    {"commands"},
    {"processing"},
    {"agents"},
    {"root"},
    {"client", "replay"},
    {"fleet"},
    {"assembly"},
    {"supervisor"},
    {"agui", "console", "mcp_server"},
    {"public"},
    {"terminal"},
    {"command line"},
]
"""From the bottom to the top: a part may import those of lower layers."""

TESTING_MAY_IMPORT = {
    *(
        "_lazy_names",
        "config",
        "fleet",
        "journal",
        "messages",
        "models",
        "processing",
        "replay",
        "root",
        "client",
        "runtime",
        "surfaces",
        "commands",
    ),
    "supervisor",
}
"""`callboard.testing` stands beside the layers; nothing of ours imports it."""

FACADES = {
    "answers": {"messages"},
    "errors": {"messages", "surfaces"},
    "events": {"messages"},
    "kinds": {"messages", "models", "processing", "states"},
    "observe": {"observe"},
    "surface": {"messages", "surfaces"},
}
"""Modules for programs that embed or extend the library, and their allowed imports; nothing of ours imports them."""

AGENTS = {"agent", "late_results", "host", "app", "mobile", "linux", "operator", "remote", "blackboard"}


@dataclass(frozen=True)
class Import:
    """One module that another one imports."""

    importer: str
    imported: str
    line: int
    for_types: bool
    in_function: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def source_files() -> dict[str, Path]:
    """Give all modules that are shipped, by name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in NOT_SHIPPED or any(part.startswith(".") for part in parts):
            continue
        names = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(("callboard", *names))] = path
    return found


MODULES = source_files()


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Parse all modules that are shipped."""
    return {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in MODULES.items()}


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    """List all nodes of the modules that are shipped, with the module's name."""
    return [(name, node) for name, tree in trees().items() for node in ast.walk(tree)]


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """Forget the trees at the end: so many objects slow down later tests."""
    yield
    nodes.cache_clear()
    trees.cache_clear()


def part_of(module: str) -> str:
    """Name the part of the house that a module belongs to."""
    names = module.split(".")[1:]
    if len(names) == 1 and names[0] in FACADES:
        return f"{names[0]}.py"
    match names:
        case []:
            return "public"
        case ["__main__"]:
            return "command line"
        case ["actors"]:
            return "actors"
        case ["actors", name] if name in AGENTS:
            return "agents"
        case ["actors", name, *_]:
            return name
        case [name, *_]:
            return name
    raise AssertionError(module)


def layer_of(part: str) -> int:
    """Give the number of a part's layer, 0 for the lowest."""
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def imports_of(module: str) -> Iterator[Import]:
    """Find a module's imports of ours and of others, anywhere in it."""

    def walk(node: ast.AST, *, for_types: bool, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                continue  # no expression has an import
            types = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            function = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            match child:
                case ast.Import(names=names):
                    imported = [alias.name for alias in names]
                case ast.ImportFrom(module=str(source), names=names):
                    whole = [f"{source}.{alias.name}" for alias in names]
                    imported = sorted({name if name in MODULES else source for name in whole})
                case _:
                    imported = []
            for name in imported:
                yield Import(module, name, child.lineno, types, function)
            yield from walk(child, for_types=types, in_function=function)

    return walk(trees()[module], for_types=False, in_function=False)


@functools.cache
def all_imports() -> list[Import]:
    """Find the imports of all modules."""
    return [found for module in MODULES for found in imports_of(module)]


@functools.cache
def our_imports() -> list[Import]:
    """Find all modules' imports of ours."""
    return [found for found in all_imports() if found.imported.split(".")[0] == "callboard"]


def may_import(importer: str, imported: str) -> bool:
    """Say whether one part may import another."""
    if importer == imported:
        return True
    if importer == "testing":
        return imported in TESTING_MAY_IMPORT
    if importer.endswith(".py"):
        return imported in FACADES[importer.removesuffix(".py")]
    if imported == "testing" or imported.endswith(".py"):
        return False
    return layer_of(imported) < layer_of(importer)


def test_every_part_of_the_house_has_its_layer():
    parts = {part_of(module) for module in MODULES} - {"actors", "testing"}
    assert {part for part in parts if not part.endswith(".py")} <= set.union(*LAYERS)


@pytest.mark.parametrize("for_types", [False, True], ids=["at run time", "for types"])
def test_a_part_imports_only_what_is_below_it(for_types):
    against = [
        str(found)
        for found in our_imports()
        if found.for_types is for_types and not may_import(part_of(found.importer), part_of(found.imported))
    ]
    assert against == []


def test_the_rule_refuses_what_it_is_there_to_refuse():
    refused = [("messages", "config"), ("states", "runtime"), ("surfaces", "runtime"), ("models", "runtime"),
               ("surfaces", "commands"), ("models", "surfaces"), ("processing", "agents"), ("agents", "root"),
               ("config", "testing"), ("surface.py", "commands"), ("config", "errors.py"), ("testing", "terminal"),
               ("supervisor", "public"), ("journal", "runtime")]  # fmt: skip
    assert [pair for pair in refused if may_import(*pair)] == []


def test_the_imports_are_really_seen():
    seen = {(found.importer, found.imported, found.for_types) for found in our_imports()}
    assert ("callboard.actors.agent", "callboard.actors.processing", False) in seen
    assert ("callboard.actors.root._agents", "callboard.actors.agent", True) in seen


def test_no_module_takes_part_in_a_circle_of_imports():
    ahead = {
        module: {f.imported for f in our_imports() if f.importer == module and not f.for_types} for module in MODULES
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join((*path, module))
        if module not in done:
            for imported in ahead.get(module, ()):
                visit(imported, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def test_a_private_module_is_imported_only_within_its_package():
    against = []
    for found in our_imports():
        package, _, name = found.imported.rpartition(".")
        private = name.startswith("_") and not name.startswith("__")
        if private and found.importer != package and not found.importer.startswith(f"{package}."):
            against.append(str(found))
    assert against == []


NO_PACKAGES = {"benchmarks", "docs", "examples", "faults", "helpers", "local_llm", "mcp_servers", "project", "public"}
"""The folders of the test tree that mirror no package."""


def test_the_test_tree_mirrors_the_source():
    tests = ROOT / "tests"
    packages = {module.removeprefix("callboard.").removeprefix("actors.") for module in MODULES}
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    assert sorted(path.name for path in tests.glob("*.py")) == ["conftest.py"]
    assert [name for name in folders if name not in NO_PACKAGES and name.replace("/", ".") not in packages] == []
    assert "helpers" not in folders


def private_names(node: ast.AST) -> Iterator[str]:
    """Find the private modules that a node of a test imports, or patches by name."""
    match node:
        case ast.ImportFrom(module=str(source), names=names):
            named = [f"{source}.{alias.name}" for alias in names]
        case ast.Import(names=names):
            named = [alias.name for alias in names]
        case ast.Constant(value=str(text)) if re.fullmatch(r"callboard(\.\w+)+", text):
            named = [text]
        case _:
            named = []
    for name in named:
        private = re.match(r"(callboard\.(?:\w+\.)*?_[a-z]\w*)(\.|$)", name)
        if private:
            yield private[1]


@pytest.fixture(scope="module")
def tests() -> list[tuple[Path, list[str], list[str]]]:
    """Read all tests: for each, the private modules that it names, and the names of its functions."""
    read = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        private, functions = [], []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom | ast.Constant):
                private += private_names(node)
        read.append((path, private, functions))
    return read


def test_a_test_names_private_modules_only_of_its_own_package(tests):
    against = []
    for path, private, _ in tests:
        folder = path.parent.relative_to(ROOT / "tests")
        for name in private if path != Path(__file__) else ():
            package = name.rpartition(".")[0].removeprefix("callboard.").removeprefix("actors.")
            place = Path(*package.split("."))
            if not folder.is_relative_to(place) and not place.is_relative_to(folder):
                against.append(f"{path.relative_to(ROOT)} names {name}")
    assert against == []


def test_broad_except_that_does_not_raise_has_a_comment():
    """The check of ruff's BLE001, without a mark on each line."""
    found, against = 0, []
    names = {path: name for name, path in MODULES.items()}
    for path in sorted(ROOT.rglob("*.py")):
        if NOT_SHIPPED & set(path.relative_to(ROOT).parts) or ".venv" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(trees()[names[path]] if path in names else ast.parse(text)):
            match node:
                case ast.ExceptHandler(type=ast.Name(id="Exception" | "BaseException"), body=body):
                    within = [each for statement in body for each in ast.walk(statement)]
                    if any(isinstance(each, ast.Raise) for each in within):
                        continue
                    found += 1
                    against += [] if "  # " in lines[node.lineno - 1] else [f"{path.relative_to(ROOT)}:{node.lineno}"]
    assert found > 40
    assert against == []


def test_a_tests_name_has_at_most_seventy_characters(tests):
    names = [name for path, _, functions in tests if path.name.startswith("test_") for name in functions]
    assert [name for name in names if name.startswith("test_") and len(name) > 70] == []


def test_no_agent_imports_another_agent():
    kinds = {"host", "app", "mobile", "linux", "operator"}
    agents = {f"callboard.actors.{kind}" for kind in kinds}
    against = [str(found) for found in our_imports() if {found.importer, found.imported} <= agents]
    assert against == []
    shared = [
        str(found) for found in our_imports() if found.importer == "callboard.actors.agent" and found.imported in agents
    ]
    assert shared == []


def test_bare_names_do_not_import_modules_of_the_root():
    names = {module.split(".")[1] for module in MODULES if "." in module} - {"__main__"}
    assert {"actors", "errors", "events"} <= names
    origins = {name: spec.origin for name in sorted(names) if (spec := importlib.util.find_spec(name))}
    assert [name for name, file in origins.items() if file and Path(file).parent in {ROOT, ROOT / name}] == []


def test_python_m_pytest_does_not_import_modules_of_the_root():
    quiet = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *quiet, __file__, "-k", "test_bare_names"]
    ran = forks.run(command, timeout=PATIENCE, cwd=ROOT)
    assert (ran.returncode, "1 passed," in ran.stdout) == (0, True), ran.stdout + ran.stderr


def test_no_module_uses_relative_imports():
    against = [f"{module}:{node.lineno}" for module, node in nodes() if isinstance(node, ast.ImportFrom) and node.level]
    assert against == []


IMPORTS_WHAT_IT_RUNS = {"callboard.__main__", "callboard.terminal._command_line"}
"""A command imports its parts when it is called, so that help and completion come at once."""


def test_imports_inside_functions_are_extras_or_named_as_heavy():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    wanted = [
        re.match(r"[\w-]+", requirement)[0].replace("_", "-")
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in {"test", "dev"}
        for requirement in requirements
    ]
    extras = {
        name
        for name, projects in importlib.metadata.packages_distributions().items()
        if any(project.replace("_", "-") in wanted for project in projects)
    }
    extras |= {"pdfminer", "resource"}  # the first comes with pdfplumber, the second with Unix alone
    heavy = {"lxml", *pyproject["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]}
    against = [
        str(found)
        for found in all_imports()
        if found.in_function
        and found.importer not in IMPORTS_WHAT_IT_RUNS
        and found.imported.split(".")[0] not in extras | heavy
        and not any(found.imported == name or found.imported.startswith(f"{name}.") for name in heavy)
    ]
    assert against == []


NUMBERED = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|WHERE)\b.*\?\d", re.DOTALL)
"""SQL with `?1`, about which Python 3.12 and newer warn when a sequence holds the values."""


def test_no_sql_statement_has_numbered_placeholders():
    assert NUMBERED.search("SELECT id FROM tasks WHERE id = ?1")
    against = [
        f"{module}:{node.lineno}"
        for module, node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NUMBERED.search(node.value)
    ]
    assert against == []


PRINTS = {"callboard.__main__", "callboard.testing._suite"}
"""The second is a test, whose reader sees its output."""


def test_only_the_command_line_prints():
    against = [
        f"{module}:{node.lineno}"
        for module, node in nodes()
        if module not in PRINTS and isinstance(node, ast.Name) and node.id == "print"
    ]
    assert against == []


def test_all_failures_are_logged_by_the_logger_that_never_raises():
    against = [
        f"{module}:{node.lineno}"
        for module, node in nodes()
        if module != "callboard.config._logging" and isinstance(node, ast.Attribute) and node.attr == "getLogger"
    ]
    assert against == []


WRITES = {"chmod", "copyfile", "copytree", "fchmod", "lchmod", "makedirs", "mkdir", "mkfifo", "mknod", "touch",
          "write_bytes", "write_text"}  # fmt: skip
"""The calls that create a file or a folder, or change its mode."""
WRITERS = {
    "callboard.config._private": "checks each path first",
    "callboard.fleet._shared_folder": "makes folders and copies in a folder that machines share",
    "callboard.journal._reader": "copies a journal into a temporary folder",
    "callboard.surfaces.desktop._private_display": "a program of its own, in a temporary folder and in the surface's",
    "callboard.surfaces.documents.excel._ironcalc_process": "a program of its own, in a temporary folder",
    "callboard.surfaces.documents.excel._engines": "fills a temporary folder",
    "callboard.surfaces.documents.excel._workbook_package": "writes into an archive in memory",
    "callboard.surfaces.documents._folder_tools": "makes the folders of a workspace that a task asks for",
    "callboard.surfaces.documents._libre_office": "fills a temporary folder",
    "callboard.surfaces.documents._office_holder": "writes to files of its own process in /proc",
    "callboard.surfaces.documents._workspace": "makes the folders of a workspace that new files go to",
    "callboard.surfaces.documents._save": "fills a temporary folder",
    "callboard.surfaces.shell._runner": "a program of its own, in a folder that was made for its command",
    "callboard.terminal._eval_cells": "copies documents into a new folder",
    "callboard.terminal._own_documents": "copies documents into a new folder",
    "callboard.terminal._place": "copies a folder into a new one",
    "callboard.terminal._project": "makes the folders of a new project",
}
"""The modules that may make them, each with the reason; parts for tests are left out."""


def _is_write(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "open":  # `os.fdopen` gets an open file
        texts = [str(part.value) for part in ast.walk(call) if isinstance(part, ast.Constant)]
        return "O_CREAT" in ast.unparse(call) or any(re.fullmatch(r"[rbt+]*[wax+][bt+]*", text) for text in texts)
    return name in WRITES


def test_one_module_creates_files_and_changes_their_modes():
    writers = {
        module
        for module, node in nodes()
        if not module.startswith("callboard.testing") and isinstance(node, ast.Call) and _is_write(node)
    }
    assert writers == WRITERS.keys()


OWN_END = "pykka.ActorRegistry.unregister(self.actor_ref)"
"""The only use of Pykka's registry that actors may make: removing themselves."""


def test_actors_of_the_host_program_are_left_alone():
    own = {
        part
        for _, node in nodes()
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "unregister"
        and ast.unparse(node) == OWN_END
        for part in ast.walk(node)
    }
    against = [
        f"{module}:{node.lineno}"
        for module, node in nodes()
        if node not in own
        and (
            (isinstance(node, ast.Name) and node.id == "ActorRegistry")
            or (isinstance(node, ast.Attribute) and node.attr == "ActorRegistry")
            or (isinstance(node, ast.alias) and node.name == "ActorRegistry")
        )
    ]
    assert against == []


PROGRAMS = {
    "callboard.actors.commands.mcp._reaper",
    "callboard.fleet._server_holder",
    "callboard.surfaces.browser._browser_holder",
    "callboard.surfaces.desktop._private_display",
    "callboard.surfaces.documents._file_reader",
    "callboard.surfaces.documents._office_holder",
    "callboard.surfaces.shell._runner",
}
"""Modules that run as processes of their own, so that signals are theirs."""
IMPORTED_BY_COMMAND = "callboard"
"""The package itself handles a signal while the command line imports it, and not when a program does:
`tests/terminal/test_interrupted_import.py`."""


def in_terminal(module: str) -> bool:
    return part_of(module) in {"terminal", "command line"}


def test_only_the_command_line_handles_signals_or_reads_standard_input():
    against = [
        f"{module}:{node.lineno}"
        for module, node in nodes()
        if not in_terminal(module)
        and module not in {*PROGRAMS, IMPORTED_BY_COMMAND}
        and (
            (isinstance(node, ast.Name) and node.id == "input" and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.Attribute) and node.attr == "signal" and ast.unparse(node) == "signal.signal")
            or (isinstance(node, ast.Attribute) and node.attr == "stdin" and ast.unparse(node) == "sys.stdin")
        )
    ]
    assert against == []


def executed_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk over the code run by an import: all but the bodies of functions, and code for types alone."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield part
                yield from executed_at_import(part)
            continue
        if isinstance(child, ast.Lambda):
            continue
        yield child
        yield from executed_at_import(child)


READS = {"Settings", "Settings.load", "open", "os.getenv", "os.environ.get", "load_prompts", "Path.cwd"}


def test_no_module_reads_settings_or_the_environment_at_import():
    against = []
    for module, tree in trees().items():
        if module == "callboard.__main__":
            continue
        for node in executed_at_import(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            named = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if called in READS or called.endswith((".read_text", ".read_bytes")) or named == "os.environ":
                against.append(f"{module}:{node.lineno}: {called or named}")
    assert against == []


IMPORT_ALL = """
import logging, sys, threading
import structlog
root = logging.getLogger()
before = (root.handlers[:], root.level, structlog.is_configured(), logging.raiseExceptions)
for name in sys.argv[1:]:
    __import__(name)
assert (root.handlers[:], root.level, structlog.is_configured(), logging.raiseExceptions) == before
assert threading.enumerate() == [threading.main_thread()]
"""


def test_imports_read_no_settings_start_no_thread_and_print_nothing(tmp_path):
    names = [
        name for name in MODULES if name != "callboard.__main__" and "-" not in name
    ]  # a hook is run, not imported
    broken = {**os.environ, "CALLBOARD_LIMITS__STEPS": "not a number", "CALLBOARD_NO_SUCH_THING": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=tmp_path,
        env=broken,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def public_names(tree: ast.Module) -> list[str]:
    """Read a package's `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def test_a_host_program_learns_at_most_twenty_names():
    names = public_names(trees()["callboard"])
    assert 0 < len(names) <= 20
    assert names == sorted(names)


def test_packages_declare_their_public_names():
    packages = [name for name, path in MODULES.items() if path.name == "__init__.py" and name != "callboard.actors"]
    assert [name for name in packages if not public_names(trees()[name])] == []


def test_a_class_and_a_file_are_named_once():
    files = Counter(path.name for path in MODULES.values() if path.stem not in {"__init__", "__main__"})
    classes = Counter(node.name for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, times in (files + classes).items() if times > 1] == []
