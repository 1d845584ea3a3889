"""Build answers of models as dictionaries.

They are for scripts and for functions in place of models. Each function returns an answer with the specification's
keys (docs/models.md): `assign` is a HostAgent's, `act` and `several` are those of the agents that work on a target,
the others are for all agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from callboard.messages import AgentStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

__all__ = ["Answer", "act", "ask", "assign", "fail", "finish", "several"]

Answer = dict[str, "JsonValue"]
"""An answer in the response schema of agents."""


def act(
    tool: str,
    arguments: Mapping[str, JsonValue] | None = None,
    /,
    *,
    control: str = "",
    comment: str = "",
    thought: str = "",
    status: str = AgentStatus.CONTINUE,
    **more: JsonValue,
) -> Answer:
    """Call a tool.

    Args:
        tool: The tool's name.
        arguments: Arguments whose names are those of parameters of this function, such as ``comment``.
        control: The id, the label or the unique name of the control to act on.
        comment: A remark for people.
        thought: The reason for the action.
        status: The status after the action: ``FINISH`` if the work is then done, ``CONFIRM`` to ask a person first.
        more: The tool's other arguments.

    Raises:
        TypeError: If an argument is given twice.
        ValueError: If the tool has no name.

    Example:
        >>> act("write_cell", cell="B2", value=412.5)["Args"]
        {'cell': 'B2', 'value': 412.5}
    """
    if not tool.strip():
        msg = "act() needs the name of a tool"
        raise ValueError(msg)
    if not isinstance(arguments, Mapping | None):
        msg = f"act({tool!r}): pass arguments by name, or as a mapping, not as {type(arguments).__name__}"
        raise TypeError(msg)
    twice = sorted({*(arguments or {})} & {*more})
    if twice:
        msg = f"act({tool!r}) got {', '.join(twice)} twice"
        raise TypeError(msg)
    call: Answer = {"Function": tool, "Args": {**(arguments or {}), **more}}
    if control:
        call["ControlLabel"] = control
    return _answer(status, comment, thought) | call


def several(*calls: Answer, comment: str = "", thought: str = "", status: str = AgentStatus.CONTINUE) -> Answer:
    """Call several tools in order, without observing in between.

    Args:
        calls: The calls, made by `act`.
        comment: A remark for people.
        thought: The reason for the actions.
        status: The status after the last call.

    Raises:
        ValueError: If there are no calls, or one of them calls no tool.

    Example:
        >>> several(act("add_sheet", name="Sales"), act("write_cell", cell="A1", value="Region"))["Status"]
        'CONTINUE'
    """
    if not calls or any("Function" not in call for call in calls):
        msg = "several() needs calls that act() made"
        raise ValueError(msg)
    keys = ("Function", "Args", "ControlLabel")
    actions: list[JsonValue] = [{key: call[key] for key in keys if key in call} for call in calls]
    return _answer(status, comment, thought) | {"ActionList": actions}


def assign(subtask: str, target: str, *, plan: Sequence[str] = (), comment: str = "", thought: str = "") -> Answer:
    """Assign a subtask to the agent of a target; a HostAgent's answer.

    Args:
        subtask: The work, in words.
        target: The id, the label or the unique name of the target.
        plan: The subtasks after this one, in words.
        comment: A remark for people.
        thought: The reason for the choice.

    Raises:
        ValueError: If the subtask or the target is empty.

    Example:
        >>> assign("Read the table", "sales.docx")["Current Sub-Task"]
        'Read the table'
    """
    if not subtask.strip() or not target.strip():
        msg = "assign() needs a subtask and a target"
        raise ValueError(msg)
    answer = _answer(AgentStatus.ASSIGN, comment, thought) | {"Current Sub-Task": subtask, "ControlLabel": target}
    return answer | ({"Plan": list(plan)} if plan else {})


def finish(comment: str = "", *, result: JsonValue = None, thought: str = "") -> Answer:
    """End the work as done.

    Args:
        comment: A remark for people.
        result: The value that the subtask or task returns; None for the value of the last action.
        thought: The reason.

    Example:
        >>> finish("There are 4.", result=4)["Result"]
        4
    """
    answer = _answer(AgentStatus.FINISH, comment, thought)
    return answer if result is None else answer | {"Result": result}


def fail(comment: str, *, thought: str = "") -> Answer:
    """End the work as impossible, with the reason for people.

    Example:
        >>> fail("The file is locked")["Status"]
        'FAIL'
    """
    return _answer(AgentStatus.FAIL, comment, thought)


def ask(question: str, *choices: str, comment: str = "", thought: str = "") -> Answer:
    """Ask a person a question, with choices or free text.

    Raises:
        ValueError: If the question is empty.

    Example:
        >>> ask("Which sheet?", "Sales", "Costs")["Status"]
        'PENDING'
    """
    if not question.strip():
        msg = "ask() needs a question"
        raise ValueError(msg)
    entry: JsonValue = {"text": question, "choices": list(choices)}
    return _answer(AgentStatus.PENDING, comment, thought) | {"Questions": [entry]}


def _answer(status: str, comment: str, thought: str) -> Answer:
    words = {"Thought": thought, "Comment": comment}
    return {"Status": str(status), **{key: text for key, text in words.items() if text}}
