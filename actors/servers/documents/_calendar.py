"""Calendar tools: read, add, change and delete events of ``.ics`` files."""

from __future__ import annotations

import datetime as dt
import re
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents._formats import FormatTools, Replaced, Rows, Start
from callboard.actors.servers.documents._tables import Answer, ControlId, ControlName, Document, clean, short
from callboard.messages import Control, Effect, Hazard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.actors.servers.documents._workspace import Snapshot

CALENDAR = ("calendar",)
EVENT = ("event",)
_MOST_BYTES = 5_000_000
_BLOCK = re.compile(
    rb"^BEGIN:VEVENT[ \t]*\r?\n.*?^END:VEVENT[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_END = re.compile(rb"^END:VCALENDAR[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.IGNORECASE)
_COLUMNS = ("control_id", "summary", "start", "end", "location", "description", "repeats")

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
                detail={name: row[name] for name in ("start", "end", "location", "repeats") if row[name]},
            )
            for row in snapshot.once(_rows)
        ]

    @tool(effect=Effect.READ, roots=CALENDAR)
    def read_table(self, document: Document, *, start: Start = 0, limit: Rows = 1000) -> Answer:
        """Read the events: one row each, in the order of the file."""
        rows = _rows(self._workspace.read(document))
        shown: list[JsonValue] = [[row[name] for name in _COLUMNS] for row in rows[start : start + limit]]
        left = max(0, len(rows) - start - len(shown))
        return {"header": list(_COLUMNS), "rows": shown, "row_count": len(rows), "left_out": left}

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

        A new event needs a summary and a start. A new start without an end keeps the duration. No invitation is sent.
        """
        moments = {name: _moment(text, timezone) for name, text in (("DTSTART", start), ("DTEND", end)) if text}
        texts = {"SUMMARY": summary, "LOCATION": location, "DESCRIPTION": description}
        given = {name: clean(text) for name, text in texts.items() if text is not None}
        if not control_id and (not summary or not start):
            msg = "a new event needs a summary and a start; to change an event, give its control_id"
            raise ToolError(msg)
        with self._replacing(document) as file:
            block = _block(file, control_id, control_name) if control_id else None
            event = _icalendar().Event.from_ical(block[0]) if block else _icalendar().Event()
            if block is None:
                event.add("UID", str(uuid.uuid4()))
            elif moments and "RRULE" in event:
                msg = f"{control_id!r} repeats; its times can't be changed"
                raise ToolError(msg)
            _change(event, moments, given)
            made = event.to_ical(sorted=False)
            data = file.snapshot.data
            span = block[1] if block else (_closing(file.snapshot),) * 2
            file.data = data[: span[0]] + made + data[span[1] :]
            number = len(_BLOCK.findall(data[: span[0]])) + 1
            return file.answers({"control_id": f"event-{number}", "summary": str(event.get("SUMMARY", ""))})

    @tool(effect=Effect.ONCE, roots=CALENDAR, controls=EVENT, hazards=[Hazard.DELETES])
    def delete_control(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Delete an event."""
        with self._replacing(document) as file:
            _, (first, after) = _block(file, control_id, control_name)
            file.data = file.snapshot.data[:first] + file.snapshot.data[after:]
            return file.answers({"deleted": control_id, "kind": "event"})

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of events."""
        return {"events": len(snapshot.once(_rows))}

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
        msg = "calendars need icalendar: pip install 'callboard[calendar]'"
        raise ToolError(msg) from None
    return icalendar


def _rows(snapshot: Snapshot) -> list[dict[str, JsonValue]]:
    """Read the events."""
    icalendar, name = _icalendar(), snapshot.document
    if len(snapshot.data) > _MOST_BYTES:
        msg = f"{name!r} is too large: {len(snapshot.data)} bytes; {_MOST_BYTES} are read"
        raise ToolError(msg)
    try:
        events = [
            event for calendar in icalendar.Calendar.from_ical(snapshot.data, multiple=True)
            for event in calendar.walk("VEVENT")
        ]  # fmt: skip
        rows = [_row(number, event) for number, event in enumerate(events, 1)]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        msg = f"{name!r} is damaged and can't be read as a calendar ({short(str(error), 200)}); it is unchanged"
        raise ToolError(msg) from error
    if len(rows) != len(_BLOCK.findall(snapshot.data)):
        msg = f"{name!r} is damaged: its events are not on lines of their own; it is unchanged"
        raise ToolError(msg)
    return rows


def _row(number: int, event: Any) -> dict[str, JsonValue]:
    rule = event.get("RRULE")
    return {
        "control_id": f"event-{number}",
        "summary": short(str(event.get("SUMMARY", "")), 200),
        "start": _time(_dates(event)[0]),
        "end": _time(_end(event)),
        "location": short(str(event.get("LOCATION", "")), 200),
        "description": str(event.get("DESCRIPTION", ""))[:2000],
        "repeats": rule.to_ical().decode() if hasattr(rule, "to_ical") else "",
    }


def _end(event: Any) -> dt.date | None:
    """Return an event's end, or its start plus its duration."""
    start, end = _dates(event)
    length = getattr(event.get("DURATION"), "dt", None)
    if end is not None or not isinstance(start, dt.date) or not isinstance(length, dt.timedelta):
        return end
    if isinstance(start, dt.datetime) and start.tzinfo:  # Python ignores a change of summer time in a zone
        return (start.astimezone(dt.UTC) + length).astimezone(start.tzinfo)
    return start + length


def _time(value: dt.date | None) -> str:
    if not isinstance(value, dt.date):
        return ""
    zone = getattr(getattr(value, "tzinfo", None), "key", "")
    return value.isoformat() + (f" {zone}" if zone and zone != "UTC" else "")


def _block(file: Replaced, control_id: str, control_name: str) -> tuple[bytes, tuple[int, int]]:
    """Find an event's lines, and where they are."""
    rows = _rows(file.snapshot)
    number = next((n for n, row in enumerate(rows) if row["control_id"] == control_id), None)
    if number is None or (control_name and rows[number]["summary"] != control_name):
        msg = (
            f"there is no event {control_id!r} {control_name!r}; observe the calendar again: it has {len(rows)} events"
        )
        raise ToolError(msg)
    found = list(_BLOCK.finditer(file.snapshot.data))[number]
    return found.group(), found.span()


def _closing(snapshot: Snapshot) -> int:
    """Return the place where a calendar ends."""
    _rows(snapshot)
    ends = list(_END.finditer(snapshot.data))
    if not ends:
        msg = f"{snapshot.document!r} is damaged: it has no END:VCALENDAR; it is unchanged"
        raise ToolError(msg)
    return ends[-1].start()


def _moment(text: str, timezone: str) -> dt.date:
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


def _change(event: Any, moments: dict[str, dt.date], texts: dict[str, str]) -> None:
    """Set an event's fields; an empty text deletes one.

    Raises:
        ToolError: If its start and end don't fit each other.
    """
    if (start := _dates(event)[0]) and _kind(start) == (True, True) and (True, False) in map(_kind, moments.values()):
        msg = "the event's times are those of a zone; give the timezone of the new ones, such as Europe/Berlin"
        raise ToolError(msg)
    if "DTSTART" in moments and "DTEND" not in moments:
        moments = {**moments, **_moved_end(event, moments["DTSTART"])}
    for name, value in {**moments, **texts, "DTSTAMP": dt.datetime.now(dt.UTC)}.items():
        event.pop(name, None)
        if value:
            event.add(name, value)
    if "DTEND" in moments:
        event.pop("DURATION", None)
    start, end = _dates(event)
    if not moments or start is None or end is None:
        return
    if _kind(start) != _kind(end):
        msg = f"the start {start} and the end {end} must both be days, or both times of a zone or without one"
        raise ToolError(msg)
    if end <= start:
        msg = f"the end {end} is not after the start {start}; the end of whole days is the day after the last one"
        raise ToolError(msg)


def _moved_end(event: Any, moved: dt.date) -> dict[str, dt.date]:
    """Return the end that keeps an event's duration, if it has one."""
    start, end = _dates(event)
    if start is None or end is None or not _kind(start) == _kind(end) == _kind(moved):
        return {}
    if isinstance(start, dt.datetime) and isinstance(end, dt.datetime) and start.tzinfo:
        start, end = (
            start.astimezone(dt.UTC),
            end.astimezone(dt.UTC),
        )  # Python ignores a change of summer time in a zone
    try:
        return {"DTEND": moved + (end - start)}
    except OverflowError:
        msg = f"an event that starts on {moved} would end outside of the years 1 to 9999; give an end, too"
        raise ToolError(msg) from None


def _dates(event: Any) -> tuple[dt.date | None, dt.date | None]:
    """Return an event's start and end."""
    start, end = (getattr(event.get(name), "dt", None) for name in ("DTSTART", "DTEND"))
    return start, end


def _kind(moment: dt.date) -> tuple[bool, bool]:
    """Return whether a moment has a time, and a zone."""
    return isinstance(moment, dt.datetime), bool(getattr(moment, "tzinfo", None))
