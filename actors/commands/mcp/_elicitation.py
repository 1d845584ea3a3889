"""Forms of MCP servers for a person, during a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import ElicitRequestFormParams, ElicitResult

from callboard.actors.commands._bound_tools import schema_problem
from callboard.config import like_a_key
from callboard.messages import AskedQuestion, encodable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_types import ElicitRequestParams
    from pydantic import JsonValue

    Ask = Callable[[tuple[AskedQuestion, ...]], Awaitable[tuple[str, ...] | None]]

ANSWER, DECLINE, CANCEL = "answer", "decline", "cancel"
YES, NO = "yes", "no"
LEAVE_OUT = "leave out"
"""The choice that skips an optional field; a free text is left empty instead."""
TRIES = 3
"""The most times that a form's fields are shown, if the answers do not fit; then the form is cancelled."""
MOST_FIELDS = 20
MOST_CHOICES = 50
_LONGEST = 1_000


class DeclinedError(Exception):
    """The form is not shown, or its answer not sent.

    The message gives the reason.
    """


@dataclass(frozen=True)
class _Field:
    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def choices(self) -> tuple[str, ...]:
        if self.schema.get("type") == "boolean":
            offered = [YES, NO]
        else:
            titled = self.schema.get("oneOf") or ()
            offered = [str(value) for value in self.schema.get("enum") or [option.get("const") for option in titled]]
        return (*offered, LEAVE_OUT) if offered and not self.required else tuple(offered)

    def question(self, problem: str) -> AskedQuestion:
        title = str(self.schema.get("title") or self.name)
        about = self.schema.get("description")
        text = f"{title}: {about}" if about else title
        if self.schema.get("type") == "array":
            text = f"{text} (several are separated by commas)"
        hint = "" if self.required or self.choices else " (may be left empty)"
        return AskedQuestion(text=_short(f"{problem}{text}{hint}"), choices=self.choices)

    def value(self, text: str) -> JsonValue:
        """Convert an answer to the field's type.

        Raises:
            ValueError: If the field is a number and the answer is not.
        """
        match self.schema.get("type"):
            case "boolean":
                return text == YES
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "array":
                return [part.strip() for part in text.split(",") if part.strip()]
            case _:
                return text


async def fill_in(server: str, tool: str, params: ElicitRequestParams, ask: Ask) -> ElicitResult:
    """Ask a person whether to fill in a form.

    If the person agrees, ask for its fields. The fields are asked for at most `TRIES` times in all; if the answers
    still do not fit, the form is cancelled.

    Raises:
        DeclinedError: If the form must not or can't be shown.
        ValueError: If an answer contains a secret, which must not reach the server.
    """
    if not isinstance(params, ElicitRequestFormParams):
        msg = "it asks a person to open an address, and agents do not pass addresses on"
        raise DeclinedError(msg)
    fields = _fields(params.requested_schema)
    first = (
        f"The MCP server {server!r} asks during the call of {tool}: {_short(params.message)!r}. "
        "Your answer goes to that server: enter no password and no key."
    )
    answers = await ask((AskedQuestion(text=encodable(first), choices=(ANSWER, DECLINE, CANCEL)),))
    if answers is None or answers[0] != ANSWER:
        return ElicitResult(action="decline" if answers is not None and answers[0] == DECLINE else "cancel")
    if not fields:
        return ElicitResult(action="accept", content={})
    problem: str | None = ""
    for _ in range(TRIES):
        hint = f"This did not fit: {problem}. " if problem else ""
        answers = await ask(tuple(field.question(hint if not index else "") for index, field in enumerate(fields)))
        if answers is None:
            return ElicitResult(action="cancel")
        try:
            answered_fields = zip(fields, answers, strict=True)
            content: dict[str, Any] = {
                field.name: field.value(text)
                for field, text in answered_fields
                if field.required or text not in {"", LEAVE_OUT}
            }
        except ValueError as error:
            problem = str(error)
            continue
        problem = schema_problem(params.requested_schema, content)
        if problem is None:
            return ElicitResult(action="accept", content=content)
    return ElicitResult(action="cancel")


def _fields(schema: Mapping[str, Any]) -> list[_Field]:
    """Read the fields of a form.

    Raises:
        DeclinedError: If it asks for a secret, is too large, or is malformed.
    """
    try:
        required = set(schema.get("required") or ())
        fields = [_Field(str(name), part, name in required) for name, part in schema.get("properties", {}).items()]
        if any(len(field.choices) > MOST_CHOICES for field in fields) or len(fields) > MOST_FIELDS:
            msg = f"its form has more than {MOST_FIELDS} fields, or {MOST_CHOICES} choices in one"
            raise DeclinedError(msg)
        for field in fields:
            field.question("")
    except (AttributeError, TypeError, ValueError) as error:
        msg = "its form does not follow the protocol"
        raise DeclinedError(msg) from error
    for field in fields:
        names = (field.name, str(field.schema.get("title", "")))
        folded = ["_".join(label.replace("-", " ").split()) for label in names]
        if field.schema.get("format") == "password" or any(map(like_a_key, folded)):
            msg = f"it asks for what looks like a secret: {_short(field.name)!r}"
            raise DeclinedError(msg)
    return fields


def _short(text: str) -> str:
    return encodable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
