"""Series of events: exceptions, moved occurrences, and moves of a whole series."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

Events: TypeAlias = list[Any]
"""The events of a file, in its order."""

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_TIMES_OF_DAY = frozenset({"BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS"})


def is_series(event: Any) -> bool:
    """Return whether an event repeats."""
    return "RRULE" in event or "RDATE" in event


def moments(event: Any, name: str) -> Iterator[Any]:
    """Yield the times of all lines of EXDATE or RDATE."""
    lines = event.get(name, [])
    for line in lines if isinstance(lines, list) else [lines]:
        yield from line.dts


def master_of(events: Events, number: int) -> int | None:
    """Return the series whose occurrence an event replaces."""
    if "RECURRENCE-ID" not in events[number]:
        return None
    same = (n for n in _with_same_uid(events, number) if "RECURRENCE-ID" not in events[n])
    return next(same, None)


def overrides_of(events: Events, number: int) -> list[int]:
    """Return the events that replace occurrences of a series."""
    if "RECURRENCE-ID" in events[number]:
        return []
    return [n for n in _with_same_uid(events, number) if "RECURRENCE-ID" in events[n]]


def _with_same_uid(events: Events, number: int) -> list[int]:
    uid = str(events[number].get("UID", ""))
    return [n for n, event in enumerate(events) if uid and n != number and str(event.get("UID", "")) == uid]


def exclude(series: Any, occurrence: Any) -> None:
    """Add an exception for the occurrence of a RECURRENCE-ID.

    Raises:
        ToolError: If it stands for all later occurrences, too.
    """
    if occurrence.params.get("RANGE"):
        msg = (
            "the event replaces all later occurrences of its series, too; delete the series, or let a person change it"
        )
        raise ToolError(msg)
    if all(moment.dt != occurrence.dt for moment in moments(series, "EXDATE")):
        series.add("EXDATE", [occurrence.dt], parameters=dict(occurrence.params))


def move(events: Events, number: int, start: dt.date | None, end: dt.date | None) -> list[int]:
    """Move a series; its exceptions follow.

    So do replaced occurrences without a time of their own.

    Args:
        events: The events of the file; those of the series are changed.
        number: The series.
        start: The new start of the first occurrence.
        end: Its new end.

    Returns:
        The events of the file that were changed besides the series.

    Raises:
        ToolError: If the rule can't follow.
    """
    series, old = events[number], events[number]["DTSTART"].dt
    overrides = overrides_of(events, number) if start is not None else []
    if "EXRULE" in series or any(events[n]["RECURRENCE-ID"].params.get("RANGE") for n in overrides):
        reason = "has a rule of exceptions (EXRULE)" if "EXRULE" in series else "has an event for all later occurrences"
        msg = f"the series {reason}, so that it can't be moved; let a person change it"
        raise ToolError(msg)
    shift = _Shift(old, old if start is None else _local(start, old))
    if end is not None:
        if "DTEND" not in series:
            series.pop("DURATION", None)
            series.add("DTEND", old, parameters=dict(series["DTSTART"].params))
        series["DTEND"].dt = _local(end, old)
    elif "DTEND" in series:
        shift.apply(series["DTEND"])
    shift.apply(series["DTSTART"])
    for rule in rules_of(series):
        shift.apply_to_rule(rule)
    for moment in (*moments(series, "EXDATE"), *moments(series, "RDATE")):
        shift.apply(moment)
    for event in (events[n] for n in overrides):
        has_own_time = event["DTSTART"].dt != event["RECURRENCE-ID"].dt
        names = ("RECURRENCE-ID",) if has_own_time else ("RECURRENCE-ID", "DTSTART", "DTEND")
        for name in names:
            if name in event:
                shift.apply(event[name])
    return overrides


def rules_of(series: Any, name: str = "RRULE") -> list[Any]:
    """Return the rules by which an event repeats, or of its exceptions."""
    rules = series.get(name, [])
    return rules if isinstance(rules, list) else [rules]


def _local(moment: dt.date, like: dt.date) -> dt.date:
    """Convert a time to the zone of another one."""
    if isinstance(moment, dt.datetime) and moment.tzinfo and isinstance(like, dt.datetime) and like.tzinfo:
        return moment.astimezone(like.tzinfo)
    if isinstance(moment, dt.datetime) != isinstance(like, dt.datetime) or getattr(moment, "tzinfo", None):
        msg = f"the series begins at {like.isoformat()}; write its new times in the same form"
        raise ToolError(msg)
    return moment


def _wall(moment: dt.date) -> dt.datetime:
    if isinstance(moment, dt.datetime):
        return moment.replace(tzinfo=None)
    return dt.datetime.combine(moment, dt.time.min)


class _Shift:
    """The move of a series by a wall time, across summer time."""

    def __init__(self, old: dt.date, new: dt.date) -> None:
        self._zone = getattr(old, "tzinfo", None)
        self._time = _wall(old).time()
        self._by = _wall(new) - _wall(old)
        self._days = (_wall(new).date() - _wall(old).date()).days

    def apply(self, moment: Any) -> None:
        """Move a time, or the start and end of a period."""
        if isinstance(moment.dt, tuple):
            moment.dt = tuple(self._move_time(part) if isinstance(part, dt.date) else part for part in moment.dt)
        else:
            moment.dt = self._move_time(moment.dt)

    def apply_to_rule(self, rule: Any) -> None:
        """Move a rule's end, and the days of a weekly one.

        Raises:
            ToolError: If the rule names days or times that do not follow.
        """
        parts = {name for name in rule if name.startswith("BY")}
        weekly = rule.get("FREQ") == ["WEEKLY"]
        follows = not self._days or (not parts and (weekly or rule.get("FREQ") == ["DAILY"]))
        rotates = weekly and parts == {"BYDAY"} and rule.get("INTERVAL", [1]) == [1]
        if self._by and (parts & _TIMES_OF_DAY or not (follows or rotates)):
            text = rule.to_ical().decode()
            msg = (
                f"the series repeats by {text}, which can't follow to this time; delete it and add new events, or let "
            )
            raise ToolError(msg + "a person change it")
        if self._days and not follows:
            rule["BYDAY"] = [_DAYS[(_DAYS.index(str(day)) + self._days) % 7] for day in rule["BYDAY"]]
        if "UNTIL" in rule:
            rule["UNTIL"] = [self._move_time(moment) for moment in rule["UNTIL"]]

    def _move_time(self, moment: dt.date) -> dt.date:
        if not isinstance(moment, dt.datetime):
            return (dt.datetime.combine(moment, self._time) + self._by).date()
        if moment.tzinfo is None or self._zone is None:
            return moment + self._by
        wall = moment.astimezone(self._zone).replace(tzinfo=None) + self._by
        return wall.replace(tzinfo=self._zone).astimezone(moment.tzinfo)
