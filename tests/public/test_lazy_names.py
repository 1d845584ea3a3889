"""Public names that are imported at their first use, and the modules that a program then has."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import callboard
import callboard.terminal
import callboard.testing

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))"
HEAVY = {
    "cryptography",
    "docx",
    "jsonschema",
    "lxml",
    "mcp",
    "mcp_types",
    "openpyxl",
    "PIL",
    "starlette",
    "structlog",
    "uvicorn",
}
"""Libraries that a plain task does not need."""
RECORDING = {f"callboard.routines.{name}" for name in ("_recording", "_repair", "_promotion", "_readable_yaml")}
"""Modules that save and repair routines."""
PLAIN_TASK = """
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.testing import MemoryServer

settings = Settings.load(log={"stream": "off"})
models = {"app": FunctionModel(lambda request: {"Status": "FINISH"})}
with Supervisor.start(settings, models=models, servers=[MemoryServer(MemoryServer.window())]) as supervisor:
    assert supervisor.submit(Task(request="x", target="memo:one")).result(60).ok
"""


def modules_of(program):
    """Give the modules that a program has imported at its end."""
    command = [sys.executable, "-c", f"{program}\n{MODULES}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def command_modules(*arguments):
    """Give the modules that a command has imported at its end."""
    return modules_of(
        f"import atexit, sys\nsys.argv = ['callboard', *{arguments!r}]\nfrom callboard.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )


def test_import_of_the_package_imports_no_library():
    modules = modules_of("import callboard")
    assert len(modules) < 150
    assert not {"pydantic", "pykka", "structlog", "callboard.messages"} & modules


def test_plain_task_imports_only_what_it_needs():
    modules = modules_of(PLAIN_TASK)
    assert len(modules) <= 850
    assert not HEAVY & modules
    assert not {"pytest", "typer", "callboard.actors.replay", "callboard.surfaces.documents"} & modules
    assert not RECORDING & modules


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("docs",), ("completion",)], ids=" ".join)
def test_help_imports_no_part_that_runs_tasks(arguments):
    modules = command_modules(*arguments)
    assert len(modules) < 500
    assert not HEAVY & modules
    assert not {"callboard.config", "callboard.supervisor", "callboard.actors.root", "sqlite3"} & modules


def test_version_imports_no_library():
    modules = command_modules("--version")
    assert len(modules) < 200
    assert not {"typer", "pydantic", "callboard.messages"} & modules


def test_list_of_tasks_imports_no_agents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = command_modules("tasks")
    assert len(modules) < 700
    assert not HEAVY & modules
    assert not {"callboard.supervisor", "callboard.actors.root", "callboard.surfaces"} & modules


def test_run_of_a_task_imports_no_recording_of_routines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES / "expenses", tmp_path / "expenses")
    modules = command_modules("run", "expenses")
    assert (tmp_path / "runs" / "expenses-1").is_dir()
    assert not RECORDING & modules


@pytest.mark.parametrize("package", [callboard, callboard.testing, callboard.terminal], ids=lambda part: part.__name__)
def test_lazy_package_has_all_its_names(package):
    assert set(package.__all__) <= set(dir(package))
    homes = {name: module for module, names in vars(package)["_HOMES"].items() for name in names}
    assert homes.keys() == set(package.__all__)
    for name, home in homes.items():
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


def test_lazy_package_refuses_a_name_that_it_lacks():
    with pytest.raises(AttributeError, match="module 'callboard' has no attribute 'Superviser'"):
        callboard.Superviser  # noqa: B018 - the access is the test
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from callboard.testing import Nothing", {})  # noqa: S102 - type checkers refuse it as a statement


def test_modules_of_the_package_are_attributes_without_an_import():
    program = "import callboard\nassert callboard.errors.__name__ == 'callboard.errors'\nassert callboard.messages.Task"
    assert "callboard.errors" in modules_of(program)
