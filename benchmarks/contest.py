"""A contest between contenders in separate processes.

They are asked in turns, so that all contenders of a round see the same machine.
"""

from __future__ import annotations

import contextlib
import json
import select
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 900.0


@dataclass
class Contender:
    """A process that answers lines of JSON; the first one starts it."""

    key: str
    module: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    fresh: bool = False
    """Whether each question needs a new process."""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def ask(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Ask; a failure is described in the answer's ``error``."""
        if self._process is None:
            command = [self.python, "-m", self.module, *self.arguments]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)  # our own
        process = self._process
        if process.stdin is None or process.stdout is None:
            return {"error": "the process has no pipes"}
        try:
            print(json.dumps(parameters), file=process.stdin, flush=True)
        except BrokenPipeError:
            return self._ended("the process is gone")
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            return self._ended(f"no answer within {PATIENCE:g} s")
        line = process.stdout.readline()
        if not line:
            return self._ended("the process ended without an answer")
        if self.fresh:
            self.close()
        said: dict[str, Any] = json.loads(line)
        return said

    def _ended(self, why: str) -> dict[str, Any]:
        if self._process is not None:
            self._process.kill()
        self.close()
        return {"error": why}

    def close(self) -> None:
        """End the process by closing its input."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            process.communicate(timeout=30)
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Question:
    """A question and its contender."""

    contender: Contender
    parameters: dict[str, Any]
    sized: bool = False
    """Whether the contender is asked for several numbers of tasks."""
    least: int = 1
    """Rounds in which it is always asked, however long it takes."""
    row: str = ""
    """One of several rows of a contender, all measured in its process."""

    @property
    def cell(self) -> str:
        """The key of its answers: contender, and row or number of tasks."""
        if self.row:
            return f"{self.contender.key}/{self.row}"
        return f"{self.contender.key}@{self.parameters['tasks']}" if self.sized else self.contender.key


Answers = dict[str, list[dict[str, Any]]]
"""Answers by cell; each has the number of its ``round``."""


def hold(questions: Sequence[Question], rounds: int, seconds: float, say: Callable[[str], None]) -> Answers:
    """Ask all questions in turns, in alternating order.

    Args:
        questions: Questions of one `Question.cell` are asked one after the other.
        rounds: The number of times that each is asked.
        seconds: A question that took this long in all is not repeated after its `Question.least` rounds.
        say: Receives reports of progress.
    """
    answers: Answers = {}
    spent: dict[str, float] = {}
    try:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for question in questions if number % 2 == 0 else reversed(questions):
                cell = question.cell
                out_of_time = spent.get(cell, 0.0) > seconds and len(answers.get(cell, ())) >= question.least
                if out_of_time or any("error" in answer for answer in answers.get(cell, ())):
                    continue
                begin = time.monotonic()
                said = question.contender.ask(question.parameters)
                spent[cell] = spent.get(cell, 0.0) + time.monotonic() - begin
                answers.setdefault(cell, []).append({**said, "round": number})
                if "error" in said:
                    say(f"{cell}: {said['error']}")
    finally:
        for question in questions:
            question.contender.close()
    return answers


@dataclass(frozen=True)
class Spread:
    """A median, and the quartiles around it."""

    low: float
    median: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """Summarize values; None if there are none."""
        numbers = sorted(values)
        if not numbers:
            return None
        low, middle, high = statistics.quantiles(numbers, n=4, method="inclusive") if len(numbers) > 1 else numbers * 3
        return cls(low, middle, high, len(numbers))


Number = tuple[str, str]
"""One number of the answers: the cell, and the key."""


def spread(answers: Answers, number: Number, scale: float = 1.0) -> Spread | None:
    """Summarize one number; None if it was not measured."""
    cell, key = number
    return Spread.of(answer[key] * scale for answer in answers.get(cell, ()) if key in answer)


def ratio(answers: Answers, above: Number, below: Number, scale: float = 1.0) -> Spread | None:
    """Summarize the ratio of two numbers; None without a round with both."""
    measures = {answer["round"]: answer[below[1]] for answer in answers.get(below[0], ()) if below[1] in answer}
    return Spread.of(
        answer[above[1]] / measures[answer["round"]] * scale
        for answer in answers.get(above[0], ())
        if above[1] in answer and answer["round"] in measures
    )
