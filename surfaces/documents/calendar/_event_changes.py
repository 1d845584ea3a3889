"""Changes of an event: its times, texts and revision."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import TYPE_CHECKING, Any

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.calendar import _event_series as series

if TYPE_CHECKING:
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.calendar._event_series import Events

_COPIES = {
    "DESCRIPTION": ("X-ALT-DESC", "STYLED-DESCRIPTION"),
    "LOCATION": ("GEO", "X-APPLE-STRUCTURED-LOCATION", "X-MICROSOFT-LOCATIONS"),
}
"""Properties that say the same in another form; calendar programs show them in its place."""
_LONGEST_NAME = 100


def parse_moment(text: str, timezone: str) -> dt.date:
    """Parse a day, or a time, which becomes UTC in a zone.

    Raises:
        ToolError: If it is none, or the zone is unknown.
    """
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return dt.date.fromisoformat(text)
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        msg = f"{text!r} is no time; write 2026-05-31T09:00, or 2026-05-31 for a whole day"
        raise ToolError(msg) from None
    if moment.tzinfo is None and timezone:
        try:
            moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(timezone))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            msg = f"there is no time zone {timezone!r}; write one such as Europe/Berlin"
            raise ToolError(msg) from None
    try:
        return moment.astimezone(dt.UTC) if moment.tzinfo else moment
    except OverflowError:
        msg = f"{text!r} lies outside of the years 1 to 9999 in UTC"
        raise ToolError(msg) from None


def change(events: Events, number: int, moments: dict[str, dt.date], texts: dict[str, str]) -> tuple[set[int], Answer]:
    """Change an event, or a series with its exceptions.

    An empty text deletes a field.

    Returns:
        The numbers of the changed events, and the answer's notes.

    Raises:
        ToolError: If the times don't fit each other, or the series can't follow.
    """
    event, changed = events[number], {number}
    old = dates_of(event)[0]
    if old and _kind(old) == (True, True) and (True, False) in map(_kind, moments.values()):
        msg = "the event's times are those of a zone; give the timezone of the new ones, such as Europe/Berlin"
        raise ToolError(msg)
    notes: Answer = {}
    if moments and series.is_series(event) and old:
        changed.update(_move_series(events, number, moments))
    elif moments:
        _set_times(event, moments)
    if removed := _set_texts(event, texts):
        notes["removed"] = [*removed]
    _check_times(event, moments)
    if old is None:
        event.add("DTSTAMP", dt.datetime.now(dt.UTC))
        return changed, notes
    if "DTSTART" in moments and (alarms := _move_alarms(event, old)):
        notes["alarms_not_moved"] = alarms
    waiting = [name for n in sorted(changed) for name in revise(events[n], rescheduled=bool(moments), texts=texts)]
    if waiting:
        notes["must_accept_again"] = [*dict.fromkeys(waiting)]
    exceptions = [f"event-{n + 1}" for n in series.overrides_of(events, number)]
    if exceptions:
        notes["keep_their_own_values"] = [*exceptions]
    return changed, notes


def revise(event: Any, *, rescheduled: bool, texts: dict[str, str] | None = None) -> list[str]:
    """Mark an event as changed, as RFC 5545 and 5546 ask.

    Returns:
        The attendees whose answers no longer count.
    """
    for name in ("DTSTAMP", "LAST-MODIFIED"):
        event.pop(name, None)
        event.add(name, dt.datetime.now(dt.UTC))
    if rescheduled or "LOCATION" in (texts or {}):
        count = event.pop("SEQUENCE", 0)
        event.add("SEQUENCE", (count if isinstance(count, int) else 0) + 1)
    if not rescheduled:
        return []
    organizer = str(event.get("ORGANIZER", "")).casefold()
    waiting = [
        attendee
        for attendee in attendees_of(event)
        if str(attendee).casefold() != organizer
        and attendee.params.get("PARTSTAT", "NEEDS-ACTION").upper() != "NEEDS-ACTION"
    ]
    for attendee in waiting:
        attendee.params["PARTSTAT"] = "NEEDS-ACTION"
    return [address_of(attendee) for attendee in waiting]


def attendees_of(event: Any) -> list[Any]:
    """Return the attendees, who may stand on one line or several."""
    lines = event.get("ATTENDEE", [])
    return lines if isinstance(lines, list) else [lines]


def address_of(person: Any) -> str:
    """Return the address of an attendee or organizer, without ``mailto:``."""
    return re.sub("^mailto:", "", str(person), flags=re.IGNORECASE)[:_LONGEST_NAME]


def _move_series(events: Events, number: int, moments: dict[str, dt.date]) -> list[int]:
    try:
        return series.move(events, number, moments.get("DTSTART"), moments.get("DTEND"))
    except OverflowError:
        msg = "the series would lie outside of the years 1 to 9999"
        raise ToolError(msg) from None


def _set_times(event: Any, moments: dict[str, dt.date]) -> None:
    if "DTSTART" in moments and "DTEND" not in moments:
        moments = {**moments, **_moved_end(event, moments["DTSTART"])}
    for name, value in moments.items():
        event.pop(name, None)
        event.add(name, value)
    if "DTEND" in moments:
        event.pop("DURATION", None)


def _set_texts(event: Any, texts: dict[str, str]) -> list[str]:
    """Set texts, and remove their copies in other forms.

    Returns:
        The removed properties.
    """
    removed: list[str] = []
    for name, text in texts.items():
        if str(event.get(name, "")) == text:
            continue
        removed += [f"{name};ALTREP"] if "ALTREP" in getattr(event.pop(name, None), "params", {}) else []
        removed += [copy for copy in _COPIES.get(name, ()) if event.pop(copy, None) is not None]
        if text:
            event.add(name, text)
    return removed


def _check_times(event: Any, moments: dict[str, dt.date]) -> None:
    start, end = dates_of(event)
    if not moments or start is None or end is None:
        return
    if _kind(start) != _kind(end):
        msg = f"the start {start} and the end {end} must both be days, or both times of a zone or without one"
        raise ToolError(msg)
    if end <= start:
        msg = f"the end {end} is not after the start {start}; the end of whole days is the day after the last one"
        raise ToolError(msg)


def _move_alarms(event: Any, old: dt.date) -> int:
    """Move the alarms with a fixed time; the others follow by themselves.

    Returns:
        The number of those that can't be moved, because the event's times have another form than before.
    """
    triggers = [alarm.get("TRIGGER") for alarm in event.walk("VALARM")]
    fixed = [trigger for trigger in triggers if isinstance(getattr(trigger, "dt", None), dt.datetime)]
    start, new = (_in_utc(moment) for moment in (old, event["DTSTART"].dt))
    if _kind(start) != _kind(new):
        return len(fixed)
    for trigger in fixed:
        trigger.dt += new - start
    return 0


def _moved_end(event: Any, moved: dt.date) -> dict[str, dt.date]:
    """Return the end that keeps an event's duration, if it has one."""
    start, end = dates_of(event)
    if start is None or end is None or not _kind(start) == _kind(end) == _kind(moved):
        return {}
    try:
        return {"DTEND": moved + (_in_utc(end) - _in_utc(start))}
    except OverflowError:
        msg = f"an event that starts on {moved} would end outside of the years 1 to 9999; give an end, too"
        raise ToolError(msg) from None


def dates_of(event: Any) -> tuple[dt.date | None, dt.date | None]:
    """Return an event's start and end."""
    start, end = (getattr(event.get(name), "dt", None) for name in ("DTSTART", "DTEND"))
    return start, end


def _kind(moment: dt.date) -> tuple[bool, bool]:
    """Return whether a moment has a time, and a zone."""
    return isinstance(moment, dt.datetime), bool(getattr(moment, "tzinfo", None))


def _in_utc(moment: dt.date) -> dt.date:
    """Convert a time of a zone, for differences across summer time."""
    return moment.astimezone(dt.UTC) if isinstance(moment, dt.datetime) and moment.tzinfo else moment
