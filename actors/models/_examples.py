"""Short examples of whole answers, for each kind of agent: what a model is shown, in the form that it has to give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.messages import AgentKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class Example(NamedTuple):
    """An answer, and when it was right."""

    when: str
    answer: dict[str, Any]


_ASSIGN = Example(
    'The request is "Put the prices of list.docx into a chart", nothing was done so far, list.docx is listed:',
    {
        "Observation": "list.docx is there; no workbook is.",
        "Thought": "The prices have to be read before they can be drawn.",
        "Plan": ["Read the prices in list.docx", "Create a workbook", "Write them there and draw a chart"],
        "Status": "ASSIGN",
        "ControlText": "list.docx",
        "Current Sub-Task": "Read the table of prices",
        "Comment": "The prices are being read.",
    },
)
_OPEN = Example(
    "The prices were read, and there is no workbook yet:",
    {
        "Observation": "Subtask 1 left a table of 3 prices. No workbook is listed.",
        "Thought": "A workbook is needed before the prices can be written into it.",
        "Plan": ["Create a workbook", "Write the prices there and draw a chart"],
        "Actions": [{"Function": "create_document", "Args": {"path": "prices.xlsx"}}],
        "Status": "CONTINUE",
        "Comment": "A workbook is being created.",
    },
)
_HOST_DONE = Example(
    "All subtasks are finished, and their results show what was asked for:",
    {
        "Observation": "Subtask 2 wrote the 3 prices into prices.xlsx and drew chart-1.",
        "Thought": "All that was asked for is done.",
        "Status": "FINISH",
        "Result": "prices.xlsx holds the 3 prices and a chart of them.",
        "Comment": "The chart of the prices is in prices.xlsx.",
    },
)
_READ = Example(
    'The subtask is "Read the table of prices", nothing was done so far, a table Prices is listed:',
    {
        "Observation": "There is one table, Prices.",
        "Thought": "Its rows have to be read.",
        "Plan": ["Read the table"],
        "Actions": [{"Function": "read_table", "ControlText": "Prices", "Args": {}}],
        "Status": "CONTINUE",
        "Comment": "I read the table.",
    },
)
_READ_DONE = Example(
    "Your last step returned the table; it is all that the subtask asks for:",
    {
        "Observation": "read_table returned 3 rows.",
        "Thought": "The table was read, nothing is left to do.",
        "Status": "FINISH",
        "Comment": "The table Prices has 3 rows.",
    },
)
_TOUCH = Example(
    'The subtask is "Switch Wi-Fi off", a switch Wi-Fi is listed:',
    {
        "Observation": "The settings are open; the switch Wi-Fi is on.",
        "Thought": "One touch switches it off.",
        "Actions": [{"Function": "tap", "ControlText": "Wi-Fi", "Args": {}}],
        "Status": "CONTINUE",
        "Comment": "I touch the switch.",
    },
)
_TOUCH_DONE = Example(
    "The switch is off now:",
    {
        "Observation": "The switch Wi-Fi is off.",
        "Thought": "Nothing is left to do.",
        "Status": "FINISH",
        "Comment": "Wi-Fi is off.",
    },
)
_RUN = Example(
    'The subtask is "How much room is left on the disk?", nothing was run so far:',
    {
        "Observation": "The shell is ready.",
        "Thought": "df tells how full the disks are.",
        "Actions": [{"Function": "run", "Args": {"command": "df -h /"}}],
        "Status": "CONTINUE",
        "Comment": "I look how full the disk is.",
    },
)
_RUN_DONE = Example(
    "It printed that 12G are available:",
    {
        "Observation": "12G of / are available.",
        "Thought": "That is the answer.",
        "Status": "FINISH",
        "Result": "12G",
        "Comment": "12G are left on /.",
    },
)

EXAMPLES: dict[AgentKind, tuple[Example, ...]] = {
    AgentKind.HOST: (_ASSIGN, _OPEN, _HOST_DONE),
    AgentKind.APP: (_READ, _READ_DONE),
    AgentKind.MOBILE: (_TOUCH, _TOUCH_DONE),
    AgentKind.LINUX: (_RUN, _RUN_DONE),
}
"""Two or three for each kind."""

_LISTS = frozenset({"Plan", "Actions", "ControlReannotate", "Questions"})
_TEXTS = frozenset({"Observation", "Thought", "Comment"})


def examples(kind: AgentKind, keys: Collection[str], statuses: Collection[str]) -> Iterator[Example]:
    """Give those whose status may be answered now, with exactly these keys, in this order."""
    for when, answer in EXAMPLES[kind]:
        if answer["Status"] in statuses and answer.keys() <= {*keys, "Result", "ControlText", "Current Sub-Task"}:
            yield Example(when, {key: answer.get(key, _nothing(key)) for key in keys})


def _nothing(key: str) -> Any:  # noqa: ANN401 - any JSON
    return [] if key in _LISTS else "" if key in _TEXTS else None
