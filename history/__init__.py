"""A task's history for people, read from a journal.

It has the requests, decisions, actions and answers, in order, in the words of all displays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.history._amounts import cut, used
    from callboard.history._check_words import (
        described,
        described_event,
        expectation,
        failed_checks,
        judged_event,
        proposals,
        verdict,
    )
    from callboard.history._member_times import MemberTimes, member_times
    from callboard.history._message_lines import (
        Line,
        Tone,
        asked,
        called,
        calls_of,
        control_of,
        lines_of,
        lines_of_reply,
        lines_of_result,
        probe_words,
        status_words,
        step_checks,
        step_words,
    )
    from callboard.history._phrases import agent_label, numbered, on_machine, plain, ranges
    from callboard.history._task_history import Entry, Reply, TaskHistory, history_of

__all__ = [
    "Entry",
    "Line",
    "MemberTimes",
    "Reply",
    "TaskHistory",
    "Tone",
    "agent_label",
    "asked",
    "called",
    "calls_of",
    "control_of",
    "cut",
    "described",
    "described_event",
    "expectation",
    "failed_checks",
    "history_of",
    "judged_event",
    "lines_of",
    "lines_of_reply",
    "lines_of_result",
    "member_times",
    "numbered",
    "on_machine",
    "plain",
    "probe_words",
    "proposals",
    "ranges",
    "status_words",
    "step_checks",
    "step_words",
    "used",
    "verdict",
]

_HOMES = {
    "callboard.history._amounts": (
        "cut",
        "used",
    ),
    "callboard.history._check_words": (
        "described",
        "described_event",
        "expectation",
        "failed_checks",
        "judged_event",
        "proposals",
        "verdict",
    ),
    "callboard.history._member_times": (
        "MemberTimes",
        "member_times",
    ),
    "callboard.history._message_lines": (
        "Line",
        "Tone",
        "asked",
        "called",
        "calls_of",
        "control_of",
        "control_of",
        "lines_of",
        "lines_of_reply",
        "lines_of_result",
        "probe_words",
        "status_words",
        "step_checks",
        "step_words",
    ),
    "callboard.history._phrases": (
        "agent_label",
        "numbered",
        "on_machine",
        "plain",
        "ranges",
    ),
    "callboard.history._task_history": (
        "Entry",
        "Reply",
        "TaskHistory",
        "history_of",
    ),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
