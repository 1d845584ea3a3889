"""The results of checks in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from callboard.history._phrases import cut
from callboard.messages import CheckResult, EventName, JudgeResult

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.messages import Event, TaskResult

_WORDS = {
    ("exists", True): "something",
    ("exists", False): "nothing",
    ("is_empty", True): "nothing in it",
    ("is_empty", False): "something in it",
    ("changed", True): "a changed file",
    ("changed", False): "an unchanged file",
}
_BEFORE = {"equals": "", "returns": "", "approx": "about ", "contains": "a part that is ", "count": "a number of "}
"""The words for expectations: those without a value, and those before one."""
_SHOWN = 300
"""The most characters of a value in a line."""


def verdict(result: TaskResult) -> str:
    """Describe whether the checks of a task held, in one line.

    Empty where there is nothing to tell: a dry run, or a task without checks that did not finish.
    """
    counted = [check for check in result.checks if check.source == "task"]
    held = sum(check.held for check in counted)
    number = f"{held} of {len(counted)} checks" if len(counted) != 1 else f"{held} of 1 check"
    if result.dry_run:
        return ""
    if result.verified is None:
        return f"{result.outcome.value}, not verified: the task has no checks" if result.ok else ""
    if result.verified:
        return f"verified: {number}"
    if not counted:
        return "not verified: its checks were not reached"
    return f"not verified: {number} held"


def proposals(result: TaskResult) -> str:
    """Describe the checks that the model proposed, in a few words.

    Empty without any.
    """
    proposed = [check for check in result.checks if check.source == "model"]
    held = sum(check.held for check in proposed)
    return f"{held} of {len(proposed)} checks that the model proposed hold" if proposed else ""


def failed_checks(result: TaskResult) -> list[str]:
    """Describe the checks that do not hold, also proposed ones."""
    return [described(check) for check in result.checks if not check.held]


def judged_event(event: Event) -> str:
    """Describe a `judge.answered` event."""
    answers: Any = event.data["answers"]
    return f"the judge of {'; '.join(JudgeResult.model_validate(judge_answer).told() for judge_answer in answers)}"


def described(check: CheckResult) -> str:
    """Describe the result of a check; if it failed, with both values."""
    proposed = "" if check.source == "task" else " (proposed by the model)"
    if check.held:
        return f"{check.name}{proposed}"
    finding = check.problem or f"found {_described_value(check.found)}"
    return f"{check.name}{proposed}: expected {expectation(check.expected)}; {finding}"


def _described_value(value: JsonValue) -> str:
    """Describe the value that was read, or its first difference."""
    if isinstance(value, dict) and value.keys() == {"at", "value"}:
        return f"{_shown(value['value'])} at {value['at']}"
    return _shown(value)


def described_event(event: Event) -> str:
    """Describe a `check.passed` or `check.failed` event."""
    held = event.name is EventName.CHECK_PASSED
    facts: Any = event.data["check"]
    check = CheckResult(held=held, **facts)
    return f"check {'holds' if held else 'does not hold'}: {described(check)}"


def expectation(expected: JsonValue) -> str:
    """Put an expectation into words."""
    if not isinstance(expected, dict) or len(expected) not in {1, 2}:
        return _shown(expected)
    name, value = next(iter(expected.items()))
    match name, value:
        case "same_as", _:
            expected_value = f": {_shown(expected['value'])}" if "value" in expected else ""
            return f"the same as {value}{expected_value}"
        case "between", [least, largest]:
            return f"between {_shown(least)} and {_shown(largest)}"
        case "one_of", list():
            return f"one of {', '.join(map(_shown, value))}"
        case "changed", list():
            return f"no changes but of {', '.join(map(str, value))}" if value else "no changes"
        case _, bool() if (name, value) in _WORDS:
            return _WORDS[name, value]
        case _:
            return f"{_BEFORE.get(name, f'{name} ')}{_shown(value)}"


def _shown(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _SHOWN)
