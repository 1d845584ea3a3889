"""mypy checks programs as their authors write them: `.ci/run` has mypy, and runs this file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api")
pytestmark = pytest.mark.timeout(1200)  # mypy reads the whole package, without a cache

ROOT = Path(__file__).resolve().parents[2]

EVENTS = """\
from typing import Literal, assert_type

from callboard import Supervisor, Task
from callboard.events import ApprovalRequested, Event, StepEnded, TaskEnded, ThreadFreed
from callboard.messages import Action, Outcome, ResultStatus


def see(event: Event) -> None:
    match event:
        case StepEnded(duration=duration, status=status, results=results):
            assert_type(duration, float | None)
            assert_type(status, str)
            assert_type(results, tuple[ResultStatus, ...])
        case ApprovalRequested(request=request, picture=picture):
            assert_type(request.id, str)
            assert_type(request.actions, tuple[Action, ...])
            assert_type(picture, str)
        case TaskEnded() as ended:
            assert_type(ended.outcome, Outcome | Literal["refused"])
            assert_type(ended.data["outcome"], object)  # wrong: the data of every event is JSON
        case _:
            event.outcome  # wrong: only some events have one


with Supervisor.start() as supervisor:
    supervisor.subscribe(see)
    for each in supervisor.submit(Task(request="look around")).events():
        see(each)

see(ThreadFreed(seq=1, at=0.0, thread="callboard-loop"))
"""

OUTPUT = """\
from typing import assert_type

from pydantic import BaseModel, JsonValue

from callboard import Supervisor, Task, TaskHandle, TaskResult


class Invoice(BaseModel):
    number: int


def blocking(supervisor: Supervisor, task: Task) -> int:
    handle = supervisor.submit(task, output_type=Invoice)
    assert_type(handle, TaskHandle[Invoice])
    assert_type(handle.result(), TaskResult[Invoice])
    assert_type(handle.follow_up("x", output_type=list[Invoice]), TaskHandle[list[Invoice]])
    assert_type(handle.follow_up("x"), TaskHandle)
    assert_type(supervisor.submit_all([task], output_type=Invoice), tuple[TaskHandle[Invoice], ...])
    assert_type(supervisor.handle(task.id, output_type=Invoice).result().output, Invoice)
    assert_type(supervisor.submit(task).result().output, JsonValue)
    return handle.result().output.number


async def awaiting(supervisor: Supervisor, task: Task) -> TaskResult[Invoice]:
    return await (await supervisor.submit_async(task, output_type=Invoice))


def plain(supervisor: Supervisor, task: Task) -> TaskHandle:
    return supervisor.submit(task)
"""
"""A program with a type of its output."""


def programs():
    """Give the name and source of each example, and of each example of the documents."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path.name in {"recipes.md", "tutorial.md"}:  # cells of a notebook, and code for beginners
            continue
        for number, source in enumerate(re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL), 1):
            yield f"{path.stem.replace('-', '_')}_{number}", source
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield "_".join(("example", *path.relative_to(ROOT / "examples").with_suffix("").parts)), path.read_text("utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Check all programs at once, and give the lines of mypy's report."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "typed_events.py").write_text(EVENTS, encoding="utf-8")
    (folder / "typed_output.py").write_text(OUTPUT, encoding="utf-8")
    for name, source in programs():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    (folder / "path").mkdir()
    (folder / "path" / "callboard").symlink_to(ROOT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(folder / "path"))
        patch.chdir(folder)
        files = sorted(path.name for path in folder.glob("*.py"))
        cache = os.environ.get("MYPY_CACHE_DIR", str(folder / "cache"))
        options = ["--strict", "--no-error-summary", "--cache-dir", cache]
        output, errors, _ = mypy.run([*options, *files])
    assert errors == ""
    return output.splitlines()


def test_a_match_over_classes_of_events_narrows_their_types(report):
    wrong = [number for number, line in enumerate(EVENTS.splitlines(), 1) if "# wrong" in line]
    found = [int(line.split(":")[1]) for line in report if re.match(r"typed_events\.py:\d+: error", line)]
    assert found == wrong


def test_the_type_of_an_output_is_that_of_the_call(report):
    assert [line for line in report if line.startswith("typed_output.py")] == []


def test_examples_have_no_errors_of_types(report):
    assert len(list(programs())) > 20
    errors = [line for line in report if ": error: " in line and not line.startswith(("typed_events.py", "path/", "/"))]
    assert errors == []
