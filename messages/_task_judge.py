"""The judge of a task's end, who sees the evidence alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from callboard.messages._base import AnySequence, Value, as_texts
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._texts import one_line

_LONGEST = 300

JudgeQuestion = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"\S")]
JudgeAnswer = Literal["yes", "no", "unsure"]
"""The answers of a judge."""


class Judge(DocumentedFields, Value):
    """Questions to a model that sees the evidence alone."""

    question: Annotated[
        tuple[JudgeQuestion, ...],
        AnySequence,
        BeforeValidator(as_texts, json_schema_input_type=str | tuple[JudgeQuestion, ...]),
        Field(min_length=1, max_length=10),
    ]
    """One question, or up to ten. Yes means that it is as it should be; a no refuses the FINISH."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=400)] | None = None
    """The model, as in `Task.model`; by default the task's, or that of HostAgents."""


class JudgeResult(DocumentedFields, Value):
    """A judge's answer to one question."""

    question: str
    """The question."""
    answer: JudgeAnswer
    """`no` refuses the FINISH. `yes` and `unsure` are shown, and change nothing."""
    reason: str = ""
    """The reason, in the judge's words."""
    problem: str = ""
    """The reason why there is no valid answer, which counts as `unsure`."""

    def told(self) -> str:
        """Describe the answer with its reason."""
        why = self.problem or self.reason
        return f"{self.question!r}: {self.answer}{f', {one_line(why, _LONGEST)}' if why else ''}"
