"""Models that are built at their first use."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from callboard.messages import Task, Usage
from callboard.messages._base import Value

if TYPE_CHECKING:
    from callboard.messages._deferred_model import DeferredModel


def test_an_import_builds_no_model_of_a_task() -> None:
    program = "import callboard.messages as m; print(m.Task.__pydantic_complete__, m.Usage.__pydantic_complete__)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == (
        "False False\n"
    )


def made(base: type[DeferredModel]) -> type[DeferredModel]:
    class Part(base):  # type: ignore[valid-type, misc]
        size: int

    class Wider(Part):
        width: int = 3

    assert not Part.__pydantic_complete__
    assert not Wider.__pydantic_complete__
    Part(size=1)  # a model is built without those that inherit from it
    assert not Wider.__pydantic_complete__
    return Wider


def test_a_signature_names_the_fields_before_the_first_use() -> None:
    assert str(inspect.signature(made(Value))) == "(*, size: int, width: int = 3) -> None"
    assert list(inspect.signature(Usage).parameters) == list(Usage.model_fields)
    assert "request" in inspect.signature(Task).parameters


def test_a_wrong_value_is_refused_at_the_first_use() -> None:
    model = made(Value)
    with pytest.raises(ValidationError, match="valid integer"):
        model(size="1")


def test_threads_build_a_model_once() -> None:
    for _ in range(20):
        model, start = made(Value), threading.Barrier(4)
        sizes: list[int] = []

        def first_use(model: type[DeferredModel] = model, start: threading.Barrier = start) -> None:
            start.wait()
            value = model.model_validate_json('{"size": 2}')
            sizes.append(len(value.model_dump_json()))  # noqa: B023 - the threads end within the turn

        threads = [threading.Thread(target=first_use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sizes == [len('{"size":2,"width":3}')] * 4
