"""Calendar tools: read, add, change and delete events of ``.ics`` files."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import Control, Effect, Hazard
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._encodings import decode_guessing, detect_encoding
from callboard.surfaces.documents._formats import FormatTools, Replaced, Rows, Start, read_in_process
from callboard.surfaces.documents._html_text import html_to_text
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, clean, short
from callboard.surfaces.documents.calendar import _event_series as series
from callboard.surfaces.documents.calendar._event_changes import (
    address_of,
    attendees_of,
    change,
    dates_of,
    parse_moment,
    revise,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.calendar._event_series import Events

CALENDAR = ("calendar",)
EVENT = ("event",)
_MOST_BYTES = 5_000_000
_BLOCK = re.compile(
    rb"^BEGIN:VEVENT[ \t]*\r?\n.*?^END:VEVENT[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_DAMAGES = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError)
"""The errors of the parser."""
_END = re.compile(rb"^END:VCALENDAR[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.IGNORECASE)
_LONGEST_TEXT = 2000
_MOST_ATTENDEES = 30
_SERIES = ("repeats", "except", "also", "replaces")
_DETAILS = ("start", "end", "location", *_SERIES, "status", "organizer", "attendees", "alarms", "links")
_COLUMNS = ("control_id", "summary", "start", "end", "location", "description", *_DETAILS[3:])
_LINKS = ("URL", "CONFERENCE", "X-GOOGLE-CONFERENCE", "X-MICROSOFT-SKYPETEAMSMEETINGURL", "ATTACH")
_OCCURRENCES = ("control_id", "summary", "start", "end", "location")
_OTHER_ENTRIES = {"VTODO": "tasks", "VJOURNAL": "journal entries", "VFREEBUSY": "free and busy times"}

When = Annotated[
    str | None,
    Field(description="Such as 2026-05-31T09:00, or 2026-05-31 for a whole day; null to leave it."),
]
End = Annotated[
    str | None,
    Field(description="As start, and after it; of whole days the day after the last one. Null to leave it."),
]


class CalendarTools(FormatTools):
    """The tools of ``.ics`` files."""

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List the events, in the order of the file."""
        return [
            Control(
                id=str(row["control_id"]),
                name=str(row["summary"]),
                kind="event",
                detail={name: row[name] for name in _DETAILS if row[name]},
            )
            for row in snapshot.once(_rows)
        ]

    @tool(effect=Effect.READ, roots=CALENDAR)
    def read_table(
        self,
        document: Document,
        *,
        first_day: Annotated[
            dt.date | None, Field(description="With it, each occurrence of repeating events from this day on is a row.")
        ] = None,
        last_day: Annotated[dt.date | None, Field(description="The last day; null for the first one alone.")] = None,
        start: Start = 0,
        limit: Rows = 1000,
    ) -> Answer:
        """Read the events: one row each, in the order of the file.

        With ``first_day``, read the occurrences between two days, in the order of time: exceptions are left out,
        cancelled ones are counted. The days are those of each event's zone.
        """
        snapshot = self._workspace.read(document)
        rows = snapshot.once(_rows)
        names: tuple[str, ...] = _COLUMNS
        answer: Answer = {name: value for name, value in self.facts(snapshot).items() if name != "events"}
        if first_day is not None:
            names = _OCCURRENCES
            rows, answer["cancelled_left_out"] = _occurrences(snapshot, first_day, last_day or first_day)
        elif last_day is not None:
            msg = "last_day needs first_day"
            raise ToolError(msg)
        page_rows: list[JsonValue] = [[row[name] for name in names] for row in rows[start : start + limit]]
        left_out = max(0, len(rows) - start - len(page_rows))
        return {"header": [*names], "rows": page_rows, "row_count": len(rows), "left_out": left_out, **answer}

    @tool(effect=Effect.ONCE, roots=CALENDAR)
    def write_event(
        self,
        document: Document,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        summary: Annotated[str | None, Field(description="The event's title; null to leave it.")] = None,
        start: When = None,
        end: End = None,
        timezone: Annotated[
            str, Field(description="The zone of the times, such as Europe/Berlin; empty for the time at any place.")
        ] = "",
        location: Annotated[str | None, Field(description="Null to leave it.")] = None,
        description: Annotated[str | None, Field(description="Null to leave it.")] = None,
    ) -> Answer:
        """Add an event, or change the event of a control.

        A new event needs a summary and a start. A new start without an end keeps the duration. A series moves as a
        whole. No invitation is sent.
        """
        moments = {name: parse_moment(text, timezone) for name, text in (("DTSTART", start), ("DTEND", end)) if text}
        fields = {"SUMMARY": summary, "LOCATION": location, "DESCRIPTION": description}
        texts = {name: clean(text) for name, text in fields.items() if text is not None}
        if not control_id and (not summary or not start):
            msg = "a new event needs a summary and a start; to change an event, give its control_id"
            raise ToolError(msg)
        with self._replacing(document) as file:
            events = _events(file.snapshot)
            if control_id:
                number = _number(file, control_id, control_name)
            else:
                number = len(_BLOCK.findall(file.snapshot.data[: _closing(file.snapshot)]))
                event = _icalendar().Event()
                event.add("UID", str(uuid.uuid4()))
                events.insert(number, event)
            changed, notes = change(events, number, moments, texts)
            event = events[number]
            if control_id:
                _write(file, {n: events[n] for n in changed})
            else:
                end_of_calendar, data = _closing(file.snapshot), file.snapshot.data
                file.data = data[:end_of_calendar] + event.to_ical(sorted=False) + data[end_of_calendar:]
            answer: Answer = {"control_id": f"event-{number + 1}", "summary": str(event.get("SUMMARY", ""))}
            return file.answers({**answer, **notes})

    @tool(effect=Effect.ONCE, roots=CALENDAR, controls=EVENT, hazards=[Hazard.DELETES])
    def delete_control(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Delete an event, or a series with its exceptions.

        An event that replaces an occurrence of a series is deleted with that occurrence.
        """
        with self._replacing(document) as file:
            events, number = _events(file.snapshot), _number(file, control_id, control_name)
            answer: Answer = {"deleted": control_id, "kind": "event"}
            overrides, master = series.overrides_of(events, number), series.master_of(events, number)
            changes: dict[int, Any] = dict.fromkeys((number, *overrides))
            if overrides:
                answer["also_deleted"] = [f"event-{n + 1}" for n in overrides]
            if master is not None:
                occurrence = events[number]["RECURRENCE-ID"]
                series.exclude(events[master], occurrence)
                answer["occurrence_excluded"] = f"{_time(occurrence.dt)} of event-{master + 1}"
                revise(events[master], rescheduled=True)
                changes[master] = events[master]
            _write(file, changes)
            return file.answers(answer)

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Count the events and the entries that are not shown."""
        calendars = snapshot.once(_calendars)
        answer: dict[str, JsonValue] = {"events": len(snapshot.once(_rows))}
        if methods := [str(calendar["METHOD"]) for calendar in calendars if "METHOD" in calendar]:
            answer["method"] = ", ".join(dict.fromkeys(methods))
        counts = Counter(entry.name for calendar in calendars for entry in calendar.walk())
        if hidden_entries := [f"{counts[name]} {words}" for name, words in _OTHER_ENTRIES.items() if counts[name]]:
            answer["not_shown"] = ", ".join(hidden_entries)
        return answer

    def not_writable(self, snapshot: Snapshot) -> str:
        """Refuse calendars in another encoding, since only changed events are written."""
        return "" if _in_utf8(snapshot.data) == snapshot.data else "its letters are not in UTF-8, as in each calendar"

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether an existing event is changed."""
        return bool(arguments.get("control_id"))

    def empty(self) -> bytes:
        """Return a calendar without events."""
        return b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//callboard//documents//EN\r\nEND:VCALENDAR\r\n"


def _icalendar() -> Any:
    try:
        import icalendar
    except ImportError:
        msg = "calendars need icalendar, which comes with callboard[calendar]"
        raise ToolError(msg) from None
    return icalendar


def _calendars(snapshot: Snapshot) -> list[Any]:
    icalendar, name = _icalendar(), snapshot.document
    if len(snapshot.data) > _MOST_BYTES:
        msg = f"{name!r} is too large: {len(snapshot.data)} bytes; {_MOST_BYTES} are read"
        raise ToolError(msg)
    try:
        return list(icalendar.Calendar.from_ical(_in_utf8(snapshot.data), multiple=True))
    except _DAMAGES as error:
        raise _damaged_error(name, error) from error


def _in_utf8(data: bytes) -> bytes:
    """Return a calendar in UTF-8, which it should be in."""
    return data if detect_encoding(data)[0] == "utf-8" else decode_guessing(data).encode()


def _events(snapshot: Snapshot) -> Events:
    """Parse the events, which the caller may change."""
    events = [event for calendar in _calendars(snapshot) for event in calendar.walk("VEVENT")]
    if len(events) != len(_BLOCK.findall(snapshot.data)):
        msg = f"{snapshot.document!r} is damaged: its events are not on lines of their own; it is unchanged"
        raise ToolError(msg)
    return events


def _rows(snapshot: Snapshot) -> list[dict[str, JsonValue]]:
    """Read the events."""
    events = _events(snapshot)
    try:
        return [_row(events, number) for number in range(len(events))]
    except _DAMAGES as error:
        raise _damaged_error(snapshot.document, error) from error


def _damaged_error(name: str, error: Exception) -> ToolError:
    return ToolError(f"{name!r} is damaged and can't be read as a calendar ({short(str(error), 200)}); it is unchanged")


def _row(events: Events, number: int) -> dict[str, JsonValue]:
    event = events[number]
    people = [
        f"{address_of(person)} ({person.params.get('PARTSTAT', 'needs-action').lower()})"
        for person in attendees_of(event)
    ]
    more = [f"{len(people) - _MOST_ATTENDEES} more"] if len(people) > _MOST_ATTENDEES else []
    return {
        "control_id": f"event-{number + 1}",
        "summary": short(str(event.get("SUMMARY", "")), 200),
        "start": _time(dates_of(event)[0]),
        "end": _time(_end(event)),
        "location": short(str(event.get("LOCATION", "")), 200),
        "description": _description(event),
        "repeats": "; ".join(rule.to_ical().decode() for rule in series.rules_of(event)),
        "except": ", ".join(
            [
                *(_time(moment.dt) for moment in series.moments(event, "EXDATE")),
                *(rule.to_ical().decode() for rule in series.rules_of(event, "EXRULE")),
            ]
        ),
        "also": ", ".join(_time(moment.dt) for moment in series.moments(event, "RDATE")),
        "replaces": _replaced_occurrence(events, number),
        "status": str(event.get("STATUS", "")).lower(),
        "organizer": address_of(event.get("ORGANIZER", "")),
        "attendees": ", ".join(people[:_MOST_ATTENDEES] + more),
        "alarms": ", ".join(filter(None, (_alarm(alarm) for alarm in event.walk("VALARM")))),
        "links": ", ".join(_links_of(event)),
    }


def _links_of(event: Any) -> list[str]:
    """Return an event's links, and say where a file is attached."""
    lines = [line for name in _LINKS for line in _list_of(event.get(name, []))]
    return ["(attached file)" if "ENCODING" in line.params else short(str(line), 200) for line in lines]


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _description(event: Any) -> str:
    """Return the description, from the formatted one where there is no other."""
    text = str(event.get("DESCRIPTION", ""))
    text = text or html_to_text(str(event.get("X-ALT-DESC") or event.get("STYLED-DESCRIPTION") or ""))
    excess = len(text) - _LONGEST_TEXT
    return text if excess <= 0 else f"{text[:_LONGEST_TEXT]}… ({excess} more characters)"


def _replaced_occurrence(events: Events, number: int) -> str:
    occurrence = events[number].get("RECURRENCE-ID")
    if occurrence is None:
        return ""
    master = series.master_of(events, number)
    later = " and all later ones" if occurrence.params.get("RANGE") else ""
    of = "a series that is not in the file" if master is None else f"event-{master + 1}"
    return f"{_time(occurrence.dt)}{later} of {of}"


def _alarm(alarm: Any) -> str:
    trigger = getattr(alarm.get("TRIGGER"), "dt", None)
    return _time(trigger) if isinstance(trigger, dt.date) else str(trigger or "")


def _occurrences(snapshot: Snapshot, first: dt.date, last: dt.date) -> tuple[list[dict[str, JsonValue]], int]:
    """Read the occurrences between two days, and count the cancelled ones.

    A rule may have endlessly many of them, and never match: the reader has limits.
    """
    if last < first:
        msg = f"the last day {last} is before the first one {first}"
        raise ToolError(msg)
    request: dict[str, JsonValue] = {"what": "calendar", "first": first.isoformat(), "last": last.isoformat()}
    answer, _ = read_in_process(request, replace(snapshot, source=_in_utf8(snapshot.data)), "calendar")
    return answer["rows"], answer["cancelled"]


def _end(event: Any) -> dt.date | None:
    """Return an event's end, or its start plus its duration."""
    start, end = dates_of(event)
    length = getattr(event.get("DURATION"), "dt", None)
    if end is not None or not isinstance(start, dt.date) or not isinstance(length, dt.timedelta):
        return end
    if isinstance(start, dt.datetime) and start.tzinfo:  # Python ignores a change of summer time in a zone
        return (start.astimezone(dt.UTC) + length).astimezone(start.tzinfo)
    return start + length


def _time(value: dt.date | tuple[dt.date, object] | None) -> str:
    """Write a time, or the start of a period."""
    value = value[0] if isinstance(value, tuple) else value
    if not isinstance(value, dt.date):
        return ""
    zone = getattr(getattr(value, "tzinfo", None), "key", "")
    return value.isoformat() + (f" {zone}" if zone and zone != "UTC" else "")


def _number(file: Replaced, control_id: str, control_name: str) -> int:
    """Return the number of an event, from 0."""
    rows = file.snapshot.once(_rows)
    number = next((n for n, row in enumerate(rows) if row["control_id"] == control_id), None)
    if number is None or (control_name and rows[number]["summary"] != control_name):
        msg = (
            f"there is no event {control_id!r} {control_name!r}; observe the calendar again: it has {len(rows)} events"
        )
        raise ToolError(msg)
    return number


def _write(file: Replaced, changes: dict[int, Any]) -> None:
    """Replace the lines of events; None deletes them."""
    data = file.snapshot.data
    blocks = list(_BLOCK.finditer(data))
    for number, event in sorted(changes.items(), reverse=True):  # the last one first, so that spans stay valid
        start, end = blocks[number].span()
        data = data[:start] + (b"" if event is None else event.to_ical(sorted=False)) + data[end:]
    file.data = data


def _closing(snapshot: Snapshot) -> int:
    """Return the offset at which a calendar ends."""
    ends = list(_END.finditer(snapshot.data))
    if not ends:
        msg = f"{snapshot.document!r} is damaged: it has no END:VCALENDAR; it is unchanged"
        raise ToolError(msg)
    return ends[-1].start()
