"""Example answers for prompts, for each kind of agent."""

from __future__ import annotations

from typing import Any, NamedTuple


class Example(NamedTuple):
    """An answer and the situation in which it is right."""

    when: str
    answer: dict[str, Any]


_ASSIGN = Example(
    'The request is "Put the opening hours of the library into my calendar", nothing was done so far, the window '
    '"City library" and the application Calendar are listed:',
    {
        "Observation": "Nothing was done yet. The page City library is open.",
        "Thought": "The request asks for the opening hours, and for entries in the calendar. The hours come first: "
        "they have to be read.",
        "Decision": {
            "Plan": ["Read the opening hours", "Enter them into the calendar"],
            "Status": "ASSIGN",
            "ControlText": "City library",
            "Current Sub-Task": "Read the list of the opening hours",
        },
        "Comment": "The opening hours are being read.",
    },
)
_NEXT = Example(
    "Later: subtask 1 is finished, and left the opening hours:",
    {
        "Observation": "Subtask 1 is finished: it read the opening hours of 6 days.",
        "Thought": "The request asks for the opening hours, and for entries in the calendar. Subtask 1 read the hours. "
        "What is missing is the entries.",
        "Decision": {
            "Plan": ["Enter them into the calendar"],
            "Status": "ASSIGN",
            "ControlText": "Calendar",
            "Current Sub-Task": "Enter the opening hours that subtask 1 left, one entry for each day",
        },
        "Comment": "The opening hours are being entered.",
    },
)
_HOST_DONE = Example(
    "At the end: subtask 2 is finished too, and says that the entries were made:",
    {
        "Observation": "Subtasks 1 and 2 are finished: the hours were read, and 6 entries made.",
        "Thought": "The request asks for the opening hours, and for entries in the calendar. Subtask 1 read the hours, "
        "subtask 2 made the entries. Nothing is missing.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": "The opening hours of 6 days are in the calendar."},
        "Comment": "The opening hours are in the calendar.",
    },
)
_READ = Example(
    'The subtask is "Read the list of the opening hours", nothing was done so far, a list Hours is listed:',
    {
        "Observation": "Nothing was done so far. There is a list, Hours.",
        "Thought": "The subtask asks for the list. read_list reads it.",
        "Decision": {
            "Plan": ["Read the list"],
            "Status": "CONTINUE",
            "Actions": [{"Function": "read_list", "ControlText": "Hours", "Args": {}}],
        },
        "Comment": "I read the list.",
    },
)
_READ_DONE = Example(
    "Your step 1 returned the list; it is all that the subtask asks for:",
    {
        "Observation": "Done so far: read_list.",
        "Thought": "The subtask asks for the list. read_list was called, and succeeded. Nothing is missing.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": "${steps.1.results.0.value}"},
        "Comment": "The library's hours of 6 days.",
    },
)
_WRITE = Example(
    'The subtask is "Draw a frame around the opening hours", nothing was done so far, the window is empty, draw_frame '
    "can't be called yet, and ${subtasks.1.output.days} can be passed on:",
    {
        "Observation": "Nothing was done so far. The window is empty; subtask 1 left the days.",
        "Thought": "The subtask asks for a frame, around entries. First, insert_entries makes them of the days that "
        "subtask 1 left.",
        "Decision": {
            "Plan": ["Enter the days", "Draw the frame"],
            "Status": "CONTINUE",
            "Actions": [
                {
                    "Function": "insert_entries",
                    "ControlText": "This week",
                    "Args": {"days": "${subtasks.1.output.days}"},
                }
            ],
        },
        "Comment": "I enter the days.",
    },
)
_MORE = Example(
    "Then, your step 1 was insert_entries:",
    {
        "Observation": "Done so far: insert_entries.",
        "Thought": "The subtask asks for a frame. Next is draw_frame.",
        "Decision": {
            "Plan": ["Draw the frame"],
            "Status": "CONTINUE",
            "Actions": [{"Function": "draw_frame", "ControlText": "Entries", "Args": {}}],
        },
        "Comment": "I draw the frame.",
    },
)
_WRITE_DONE = Example(
    "And then, your step 2 was draw_frame:",
    {
        "Observation": "Done so far: insert_entries, draw_frame.",
        "Thought": "The subtask asks for a frame. draw_frame was called, and succeeded. Nothing is missing.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": None},
        "Comment": "6 entries were made, with a frame.",
    },
)
_TOUCH = Example(
    'The subtask is "Switch Wi-Fi off", a switch Wi-Fi is listed:',
    {
        "Observation": "The settings are open; the switch Wi-Fi is on.",
        "Thought": "One touch switches it off.",
        "Decision": {
            "Plan": ["Touch the switch"],
            "Status": "CONTINUE",
            "Actions": [{"Function": "tap", "ControlText": "Wi-Fi", "Args": {}}],
        },
        "Comment": "I touch the switch.",
    },
)
_TOUCH_DONE = Example(
    "The switch is off now:",
    {
        "Observation": "The switch Wi-Fi is off.",
        "Thought": "Nothing is left to do.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": None},
        "Comment": "Wi-Fi is off.",
    },
)
_RUN = Example(
    'The subtask is "How much room is left on the disk?", nothing was run so far:',
    {
        "Observation": "The shell is ready.",
        "Thought": "df tells how full the disks are.",
        "Decision": {
            "Plan": ["Ask df"],
            "Status": "CONTINUE",
            "Actions": [{"Function": "run", "Args": {"command": "df -h /"}}],
        },
        "Comment": "I look how full the disk is.",
    },
)
_RUN_DONE = Example(
    "It printed that 12G are available:",
    {
        "Observation": "12G of / are available.",
        "Thought": "That is the answer.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": "12G"},
        "Comment": "12G are left on /.",
    },
)

_CLICK = Example(
    'The subtask is "Switch the grid off", the picture shows an open menu View, with a tick beside its line Grid:',
    {
        "Observation": "The menu View is open; its line Grid, around x 64 and y 118, has a tick.",
        "Thought": "The grid is on. A click on that line switches it off.",
        "Decision": {
            "Plan": ["Click on Grid"],
            "Status": "CONTINUE",
            "Actions": [{"action": "click_at", "x": 64, "y": 118}],
        },
        "Comment": "I click on Grid.",
    },
)
_CLICKED = Example(
    "The menu is closed, and the picture shows no grid any more:",
    {
        "Observation": "There is no grid any more.",
        "Thought": "The subtask asks for no grid. Nothing is left to do.",
        "Decision": {"Plan": [], "Status": "FINISH", "Result": None},
        "Comment": "The grid is off.",
    },
)

HOST = (_ASSIGN, _NEXT, _HOST_DONE)
APP = (_READ, _READ_DONE, _WRITE, _MORE, _WRITE_DONE)
MOBILE = (_TOUCH, _TOUCH_DONE)
LINUX = (_RUN, _RUN_DONE)
OPERATOR = (_CLICK, _CLICKED)
