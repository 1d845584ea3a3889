"""What a journal tells people of a task: its requests, decisions, actions and answers, in order."""

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
    lines_of,
    lines_of_reply,
    lines_of_result,
    probe_words,
    step_checks,
    step_words,
)
from callboard.history._phrases import agent_label, cut, numbered, on_machine, plain, ranges, used
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
    "step_checks",
    "step_words",
    "used",
    "verdict",
]
