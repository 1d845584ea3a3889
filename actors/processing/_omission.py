"""The part of a request that a FINISH omits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._literal_trace import literal_trace
from callboard.actors.processing._request_literals import LiteralKind, request_literals
from callboard.actors.processing._requested_answer import AnswerNeed, answer_need, reports_only_the_end
from callboard.messages import Outcome

if TYPE_CHECKING:
    from callboard.actors.processing._request_literals import RequestLiteral
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation

NO_ANSWER = "the request asks for something, and Result does not answer it: put what was read into Result"
UNNAMED = "these parts of the request are in no successful call, in nothing that is seen, and not in Result: {literals}"
_LONGEST_ANSWER = 200
"""The size of a tool's value that may be an answer in itself."""


def omission(run: Run, observation: Observation, decision: Decision, *, is_operator: bool) -> str:
    """Return the part of the request that a FINISH omits.

    It is in words for the model, and empty if there is none. A request that asks needs a Result that answers. A literal
    of the request must be in the arguments or values of a successful call, in an observation, or in the Result. An
    operator sees pictures, which are not searched.
    """
    if not any(record.acted for record in run.records):
        return ""
    request = run.assign.request
    if run.assign.output_schema is None and not _is_answered(run, decision):
        return NO_ANSWER
    literals = () if is_operator else request_literals(request)
    missing = literal_trace(run, observation, decision).missing(literals) if literals else ()
    return UNNAMED.format(literals=", ".join(map(_quoted, missing))) if missing else ""


def _quoted(literal: RequestLiteral) -> str:
    return f'"{literal.text}"' if literal.kind is LiteralKind.TEXT else literal.text


def _is_answered(run: Run, decision: Decision) -> bool:
    """Return whether the output answers a request that asks."""
    need = answer_need(run.assign.request)
    if need is AnswerNeed.NOTHING:
        return True
    result, is_own = decision.result, decision.result is not None
    if not is_own:
        finished = () if run.assign.number else run.own_subtasks
        outputs = [subtask.output for subtask in finished if subtask.outcome is Outcome.FINISHED]
        result = outputs[-1] if outputs else run.output
    if result is None or isinstance(result, str):
        return not (result is None or (is_own and not result.strip()) or reports_only_the_end(result))
    return is_own or need is AnswerNeed.DATA or len(str(result)) <= _LONGEST_ANSWER
