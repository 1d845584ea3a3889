"""The evidence that a judge sees, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from callboard.messages import InvalidAnswerError, JudgeAnswer
from callboard.models._responses import names, parsed, problem_of


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence of a task's end, without an agent's words."""

    request: str
    """The task's request."""
    questions: tuple[str, ...]
    changes: str
    """The difference of all files before and after, in words."""
    unseen: tuple[str, ...] = ()
    """Remarks on what is missing in the evidence."""
    before: tuple[bytes, ...] = ()
    """Pictures of the surfaces at the beginning, as PNG."""
    after: tuple[bytes, ...] = ()
    """Pictures of the surfaces at the end, as PNG."""


def _small(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: Annotated[str, Field(max_length=10_000)] = Field(default="", validation_alias=names("Reason", "reason"))
    answer: Annotated[JudgeAnswer, BeforeValidator(_small)] = Field(validation_alias=names("Answer", "answer"))


class _Judgement(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: list[_Answer] = Field(validation_alias=names("Answers", "answers"))


def read_judgement(content: object, count: int) -> list[tuple[JudgeAnswer, str]]:
    """Parse a judge's answer: for each question the verdict and the reason.

    Raises:
        InvalidAnswerError: If it is not a JSON object of the schema; the message is written for the model.
    """
    try:
        answers = _Judgement.model_validate(parsed(content)).answers
    except ValidationError as error:
        raise InvalidAnswerError("; ".join(problem_of(problem) for problem in error.errors())) from error
    if len(answers) != count:
        msg = f"Answers: there are {len(answers)}, and {count} question{'s' * (count > 1)}: answer each, in their order"
        raise InvalidAnswerError(msg)
    return [(answer.answer, answer.reason) for answer in answers]
