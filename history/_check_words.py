"""The results of checks in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from callboard.config import term, text
from callboard.history._amounts import cut
from callboard.messages import CheckResult, EventName, JudgeResult, one_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.messages import Event, TaskResult

_WORDS = {
    ("exists", True): "expects_something",
    ("exists", False): "expects_nothing",
    ("is_empty", True): "expects_empty",
    ("is_empty", False): "expects_not_empty",
    ("changed", True): "expects_changed",
    ("changed", False): "expects_unchanged",
}
_WITH_VALUE = {"approx": "expects_about", "contains": "expects_part", "count": "expects_count"}
"""The texts of expectations: those without a value, and those with one."""
_SHOWN = 300
"""The most characters of a value in a line."""


def verdict(result: TaskResult) -> str:
    """Describe whether the checks of a task held, in one line.

    Empty where there is nothing to tell: a dry run, or a task without checks that did not finish.
    """
    counted = [check for check in result.checks if check.source == "task"]
    held = sum(check.held for check in counted)
    checks = text("checks_held", held=held, count=len(counted))
    if result.dry_run:
        return ""
    if result.verified is None:
        return text("no_checks", outcome=term("outcome", result.outcome)) if result.ok else ""
    if result.verified:
        return text("checks_verified", checks=checks)
    return text("checks_not_verified", checks=checks) if counted else text("checks_not_reached")


def proposals(result: TaskResult) -> str:
    """Describe the checks that the model proposed, in a few words.

    Empty without any.
    """
    proposed = [check for check in result.checks if check.source == "model"]
    held = sum(check.held for check in proposed)
    return text("proposed_checks_hold", held=held, count=len(proposed)) if proposed else ""


def failed_checks(result: TaskResult) -> list[str]:
    """Describe the checks that do not hold, also proposed ones."""
    return [described(check) for check in result.checks if not check.held]


def judged_event(event: Event) -> str:
    """Describe a `judge.answered` event."""
    answers: Any = event.data["answers"]
    results = map(JudgeResult.model_validate, answers)
    return text("judge_says", answer="; ".join(map(_judge_answer, results)))


def judge_words(result: JudgeResult) -> str:
    """Describe an answer of the judge."""
    return text("judge_says", answer=_judge_answer(result))


def _judge_answer(result: JudgeResult) -> str:
    answer = {"question": result.question, "answer": term("judge", result.answer)}
    reason = one_line(result.problem or result.reason, _SHOWN)
    return text("judge_answer_for", reason=reason, **answer) if reason else text("judge_answer", **answer)


def described(check: CheckResult) -> str:
    """Describe the result of a check; if it failed, with both values."""
    name = check.name if check.source == "task" else text("check_proposed", name=check.name)
    if check.held:
        return name
    finding = check.problem or text("check_found", value=_described_value(check.found))
    return text("check_expected", check=name, expected=expectation(check.expected), finding=finding)


def checked(check: CheckResult) -> str:
    """Describe whether a check holds."""
    return text("check_holds" if check.held else "check_fails", check=described(check))


def _described_value(value: JsonValue) -> str:
    """Describe the value that was read, or its first difference."""
    if isinstance(value, dict) and value.keys() == {"at", "value"}:
        return text("value_at", value=_shown(value["value"]), position=value["at"])
    return _shown(value)


def described_event(event: Event) -> str:
    """Describe a `check.passed` or `check.failed` event."""
    held = event.name is EventName.CHECK_PASSED
    facts: Any = event.data["check"]
    return checked(CheckResult(held=held, **facts))


def expectation(expected: JsonValue) -> str:
    """Put an expectation into words."""
    if not isinstance(expected, dict) or len(expected) not in {1, 2}:
        return _shown(expected)
    name, value = next(iter(expected.items()))
    match name, value:
        case "same_as", _:
            if "value" in expected:
                return text("expects_same_value", name=value, value=_shown(expected["value"]))
            return text("expects_same", name=value)
        case "between", [least, largest]:
            return text("expects_between", least=_shown(least), largest=_shown(largest))
        case "one_of", list():
            return text("expects_one_of", values=", ".join(map(_shown, value)))
        case "changed", list():
            return text("expects_changes_of", names=", ".join(map(str, value))) if value else text("expects_no_changes")
        case "equals" | "returns", _:
            return _shown(value)
        case _, bool() if (name, value) in _WORDS:
            return text(_WORDS[name, value])
        case _ if name in _WITH_VALUE:
            return text(_WITH_VALUE[name], value=_shown(value))
        case _:
            return f"{name} {_shown(value)}"


def _shown(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _SHOWN)
