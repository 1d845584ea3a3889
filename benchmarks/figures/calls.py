"""Python calls of a task, on all threads.

They can be compared where times are noisy and instructions are not counted. The functions and files of callboard that a
task calls are counted too: a measure of the code to read to follow a task.

``python -m benchmarks.figures.calls process`` answers to ``{"tasks": n}``.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import callboard
from benchmarks.board import POOL, VARIANTS, board, finish, tasks
from benchmarks.protocol import BEHIND, serve

if TYPE_CHECKING:
    from types import CodeType, FrameType


PACKAGE = Path(callboard.__file__).parent


class Calls:
    """A counter of Python calls on all threads that begin after it.

    It counts while it is `on`.
    """

    def __init__(self) -> None:
        self.on = False
        self.count = 0
        self.codes: set[CodeType] = set()
        """The code of each function that was called."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, _argument: object) -> None:
        if self.on and event == "call":
            self.count += 1
            self.codes.add(frame.f_code)

    def close(self) -> None:
        """Stop counting."""
        threading.setprofile(None)
        sys.setprofile(None)


def measure(parameters: dict[str, Any], variant: str) -> dict[str, float]:
    """Run a batch twice, and count in the second."""
    size = int(parameters["tasks"])
    calls = Calls()
    try:
        with tempfile.TemporaryDirectory() as folder, board(VARIANTS[variant], size, Path(folder)) as supervisor:
            finish(supervisor.submit_all(tasks(size, min(size, POOL))))
            calls.on = True
            finish(supervisor.submit_all(tasks(size, min(size, POOL))))
            time.sleep(BEHIND)
            calls.on = False
    finally:
        calls.close()
    files = [Path(code.co_filename) for code in calls.codes]
    ours = [file for file in files if file.is_relative_to(PACKAGE) and not file.is_relative_to(PACKAGE / "benchmarks")]
    return {"calls": calls.count / size, "functions": len(ours), "files": len(set(ours))}


if __name__ == "__main__":
    serve(lambda parameters: measure(parameters, sys.argv[1]))
