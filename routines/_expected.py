"""Expected form of an action's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import ExpectedResult, ResultStatus

if TYPE_CHECKING:
    from callboard.messages import CommandResult


def expected_of(result: CommandResult) -> ExpectedResult:
    """Describe the form of a result, without its values."""
    members = tuple(sorted(result.value)) if isinstance(result.value, dict) else None
    return ExpectedResult(changes=result.changed, members=members, leaves=result.left)


def check_result(expected: ExpectedResult, result: CommandResult) -> str:
    """Return how a result differs from the expected form.

    The text is empty if it does not. More members than expected count only in the answer of an action that changes
    something: there they may be a warning. A dry run changes nothing and has no answer.
    """
    if result.status is ResultStatus.DRY_RUN:
        return ""
    if result.status is not ResultStatus.SUCCESS:
        return f"{result.tool} failed: {result.error}" if result.error else f"{result.tool} was not done"
    if result.changed != expected.changes:
        return f"{result.tool} changed {'nothing' if expected.changes else 'something'}, unlike the recorded call"
    members = set(result.value) if isinstance(result.value, dict) else None
    if members is None or expected.members is None:
        same = members is None and expected.members is None
        return "" if same else f"{result.tool} answered {_form(members)} instead of {_form(expected.members)}"
    missing, added = set(expected.members) - members, members - set(expected.members)
    if missing:
        return f"{result.tool} answered without {', '.join(sorted(missing))}"
    if added and expected.changes:
        return f"{result.tool} answered with {', '.join(sorted(added))}, unlike the recorded call"
    return ""


def _form(members: object) -> str:
    return "no object" if members is None else "an object"
