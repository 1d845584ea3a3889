"""The form of an action's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import ExpectedResult

if TYPE_CHECKING:
    from callboard.messages import CommandResult


def expected_of(result: CommandResult) -> ExpectedResult:
    """Describe the form of a result."""
    members = tuple(sorted(result.value)) if isinstance(result.value, dict) else None
    return ExpectedResult(changes=result.changed, members=members)
