"""A HostAgent's answer that may propose checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, ValidationError

from callboard.messages import PROPOSED, Check, InvalidAnswerError
from callboard.models._responses import HostResponse, list_of, names

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_PROPOSED = 10
"""The most checks that a model may propose."""
LONGEST_WAIT = 30.0
"""The longest wait for a late effect in a proposed check, in seconds."""
_KEPT_FROM_MODELS = ("program", "downloaded", "only", "unchanged", "changed")
"""The fields of a check that compare with the files at submission, or call a function of the host program."""
_OBJECTS = ("same_as", "control", "page")


class ProposingHostResponse(HostResponse):
    """A HostAgent's answer with `system.propose_checks`."""

    checks: Annotated[list[dict[str, JsonValue]], BeforeValidator(list_of)] = Field(
        default_factory=list, validation_alias=names("Checks", "checks")
    )

    def proposed(self) -> tuple[Check, ...]:
        """Return the proposed checks.

        Raises:
            InvalidAnswerError: If one is invalid, of a form that a model may not propose, or there are too many.
        """
        if len(self.checks) > MOST_PROPOSED:
            msg = f"Checks: {len(self.checks)} are too many; at most {MOST_PROPOSED}"
            raise InvalidAnswerError(msg)
        return tuple(_proposed(index, proposal) for index, proposal in enumerate(self.checks))


def _proposed(index: int, proposal: Mapping[str, JsonValue]) -> Check:
    fields = _without_nulls(proposal)
    refused = [name for name in _KEPT_FROM_MODELS if name in fields]
    if refused:
        msg = f"Checks.{index}: {refused[0]!r} can't be proposed; name a reading and what you expect of it"
        raise InvalidAnswerError(msg)
    try:
        check = Check.model_validate({**fields, "source": "model", "show": "found"}, context=PROPOSED)
    except ValidationError as error:
        reasons = "; ".join(_problem(index, problem) for problem in error.errors())
        raise InvalidAnswerError(reasons) from error
    if check.within > LONGEST_WAIT:
        msg = f"Checks.{index}.within: {check.within:g} s is too long; at most {LONGEST_WAIT:g}"
        raise InvalidAnswerError(msg)
    return check


def _without_nulls(proposal: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the keys that a strict mode required."""
    fields = {name: value for name, value in proposal.items() if value is not None}
    return fields | {name: _without_nulls(fields[name]) for name in _OBJECTS if isinstance(fields.get(name), dict)}


def _problem(index: int, problem: Any) -> str:
    where = ".".join(map(str, ("Checks", index, *problem["loc"])))
    what = "unknown key" if problem["type"] == "extra_forbidden" else problem["msg"].removeprefix("Value error, ")
    return f"{where}: {what}"
