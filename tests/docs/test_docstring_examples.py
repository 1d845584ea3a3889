"""The calls that docstrings of public names show are run."""

from __future__ import annotations

import doctest
import threading

import pytest

import callboard
from callboard import (
    FunctionModel,
    ModelAnswer,
    Outcome,
    PlanStep,
    ScriptedModel,
    Settings,
    Supervisor,
    Task,
    answers,
    surface,
)
from callboard import testing as support_for_tests
from callboard.messages import Check, ControlQuery
from callboard.surface import Effect, ToolError, tool
from callboard.testing import MemoryServer, VirtualClock

NAMES = [*(getattr(callboard, name) for name in callboard.__all__), Check, ControlQuery]
NAMES += [getattr(module, name) for module in (answers, surface, support_for_tests) for name in module.__all__]
LEAST = 40
"""The least number of names with an example."""


def answered(request):
    """Ask, write or add, as the request says."""
    if request.request == "Ask" and request.step == 1:
        return answers.ask("Which number?")
    if request.request == "Write" and request.step == 1:
        return answers.act("write", control_id="field-1", text="4")
    return answers.finish(result=4)


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    shown = {}
    for named in NAMES:
        if isinstance(named, type) or callable(named):
            for example in finder.find(named, getattr(named, "__name__", ""), globs={}):
                if example.examples:
                    shown[example.name] = example
    return shown


EXAMPLES = examples()


def test_the_names_that_users_call_most_have_an_example():
    assert len(EXAMPLES) >= LEAST


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_a_docstring_gives_what_it_shows(name):
    settings = Settings.load(policy=[{"verdict": "approve", "tool": "write"}])
    with Supervisor.start(
        settings, servers=[MemoryServer(MemoryServer.window())], models={"app": answered, "host": answered}
    ) as supervisor:
        globs = {
            **{part: getattr(answers, part) for part in answers.__all__},
            "Check": Check,
            "Effect": Effect,
            "FunctionModel": FunctionModel,
            "MemoryServer": MemoryServer,
            "ModelAnswer": ModelAnswer,
            "Outcome": Outcome,
            "PlanStep": PlanStep,
            "ScriptedModel": ScriptedModel,
            "Settings": Settings,
            "Supervisor": Supervisor,
            "Task": Task,
            "ToolError": ToolError,
            "VirtualClock": VirtualClock,
            "supervisor": supervisor,
            "threading": threading,
            "tool": tool,
        }
        example = EXAMPLES[name]
        example.globs = globs
        report = []
        runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS)
        runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)
