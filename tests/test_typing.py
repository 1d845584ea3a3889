"""A type checker reads the program of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

import callboard

PROGRAM = """
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


@pytest.mark.slow
def test_mypy_knows_the_type_of_an_output(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", str(Path(callboard.__file__).parents[1]))
    told, problems, status = api.run(
        ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(program)]
    )
    assert (status, problems) == (0, ""), told
