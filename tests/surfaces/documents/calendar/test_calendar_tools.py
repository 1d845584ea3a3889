"""Repeating events, and what else a calendar says about an event."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

icalendar = pytest.importorskip("icalendar")
recurring = pytest.importorskip("recurring_ical_events")
BERLIN = ZoneInfo("Europe/Berlin")
ZONE = "TZID=Europe/Berlin:2026"
SERIES = [
    (
        f"UID:s\nDTSTART;{ZONE}0302T090000\nDTEND;{ZONE}0302T100000\nRRULE:FREQ=WEEKLY;COUNT=6\n"
        f"EXDATE;{ZONE}0309T090000\nRDATE;{ZONE}0401T090000\nSUMMARY:Weekly"
    ),
    f"UID:s\nRECURRENCE-ID;{ZONE}0316T090000\nDTSTART;{ZONE}0316T140000\nDTEND;{ZONE}0316T150000\nSUMMARY:Moved",
    f"UID:s\nRECURRENCE-ID;{ZONE}0323T090000\nDTSTART;{ZONE}0323T090000\nDTEND;{ZONE}0323T100000\nSUMMARY:Renamed",
]
ALARM = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER;VALUE=DATE-TIME:20260705T065500Z\nEND:VALARM"
MEETING = (
    f"UID:m\nDTSTAMP:20240101T000000Z\nLAST-MODIFIED:20240101T000000Z\nSEQUENCE:2\nDTSTART;{ZONE}0705T090000\n"
    f"DTEND;{ZONE}0705T100000\nSUMMARY:Review\nDESCRIPTION:Old agenda\nORGANIZER:mailto:ada@example.org\n"
    "ATTENDEE;PARTSTAT=ACCEPTED:MAILTO:ada@example.org\nATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@example.org\n"
    f"ATTENDEE:mailto:eve@example.org\n{ALARM}"
)


def put(workspace: Path, *events: str, entries: str = "", head: str = "") -> Path:
    blocks = "".join(f"BEGIN:VEVENT\n{event}\nEND:VEVENT\n" for event in events)
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\n{head}{blocks}{entries}END:VCALENDAR\n"
    path = workspace / "a.ics"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def events_in(path: Path) -> list[Any]:
    return icalendar.Calendar.from_ical(path.read_bytes()).walk("VEVENT")


def starts_in(path: Path, days: int = 400) -> list[str]:
    """Expand a calendar with another program's rules."""
    first = dt.date(2026, 1, 1)
    query = recurring.of(icalendar.Calendar.from_ical(path.read_bytes()))
    return sorted(f"{event['DTSTART'].dt:%m-%d %H:%M}" for event in query.between(first, first + dt.timedelta(days)))


def test_table_shows_exceptions_and_replaced_occurrences(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    put(workspace, *SERIES, "UID:x\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260501T090000Z\nSTATUS:CANCELLED")
    table = call("read_table", "a.ics")
    rows = [dict(zip(table["header"], row, strict=True)) for row in table["rows"]]
    assert rows[0]["except"] == "2026-03-09T09:00:00+01:00 Europe/Berlin"
    assert rows[0]["also"] == "2026-04-01T09:00:00+02:00 Europe/Berlin"
    assert rows[1]["replaces"] == "2026-03-16T09:00:00+01:00 Europe/Berlin of event-1"
    assert rows[3]["replaces"] == "2026-05-01T09:00:00+00:00 and all later ones of a series that is not in the file"
    assert rows[3]["status"] == "cancelled"
    window = next(target for target in surface.targets() if target.id == "a.ics")
    assert surface.observe(window).controls[1].detail["replaces"] == rows[1]["replaces"]


def test_occurrences_between_two_days_are_read(workspace: Path, call: Call) -> None:
    days = "UID:d\nDTSTART;VALUE=DATE:20260316\nDTEND;VALUE=DATE:20260317\nSUMMARY:Fair"
    gone = f"UID:s\nRECURRENCE-ID;{ZONE}0330T090000\nDTSTART;{ZONE}0330T090000\nSTATUS:CANCELLED"
    path = put(workspace, *SERIES, days, gone)
    answer = call("read_table", "a.ics", first_day="2026-03-01", last_day="2026-04-30")
    assert [(row[0], row[2][5:16]) for row in answer["rows"]] == [
        ("event-1", "03-02T09:00"), ("event-4", "03-16"), ("event-2", "03-16T14:00"), ("event-3", "03-23T09:00"),
        ("event-1", "04-01T09:00"), ("event-1", "04-06T09:00"),
    ]  # fmt: skip
    assert (answer["row_count"], answer["cancelled_left_out"]) == (6, 1)
    assert len(starts_in(path)) == 7
    assert call("read_table", "a.ics", first_day="2026-03-16")["row_count"] == 2
    with pytest.raises(ToolError, match="before the first one"):
        call("read_table", "a.ics", first_day="2026-03-16", last_day="2026-03-15")


def test_a_rule_with_too_many_occurrences_is_refused(workspace: Path, call: Call) -> None:
    put(workspace, "UID:1\nDTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY")
    with pytest.raises(ToolError, match="more than 5000 events; name fewer days"):
        call("read_table", "a.ics", first_day="2026-01-01", last_day="2026-01-05")


def test_a_deleted_series_leaves_no_occurrence(workspace: Path, call: Call) -> None:
    path = put(workspace, *SERIES, MEETING)
    answer = call("delete_control", "a.ics", control_id="event-1")
    assert answer["also_deleted"] == ["event-2", "event-3"]
    assert [str(event["UID"]) for event in events_in(path)] == ["m"]


@pytest.mark.parametrize("exception", ["", f"EXDATE;{ZONE}0309T090000\n"])
def test_a_deleted_occurrence_does_not_return_at_its_old_time(workspace: Path, call: Call, exception: str) -> None:
    path = put(workspace, SERIES[0].replace(f"EXDATE;{ZONE}0309T090000\n", exception), *SERIES[1:])
    before = starts_in(path)
    answer = call("delete_control", "a.ics", control_id="event-2")
    assert answer["occurrence_excluded"] == "2026-03-16T09:00:00+01:00 Europe/Berlin of event-1"
    before.remove("03-16 14:00")
    assert starts_in(path) == before
    assert events_in(path)[0]["SEQUENCE"] == 1


def test_a_deleted_occurrence_of_whole_days_is_excluded(workspace: Path, call: Call) -> None:
    series = "UID:s\nDTSTART;VALUE=DATE:20260301\nRRULE:FREQ=DAILY;COUNT=3"
    path = put(workspace, series, "UID:s\nRECURRENCE-ID;VALUE=DATE:20260302\nDTSTART;VALUE=DATE:20260310")
    call("delete_control", "a.ics", control_id="event-2")
    assert b"EXDATE;VALUE=DATE:20260302" in path.read_bytes()
    assert starts_in(path) == ["03-01 00:00", "03-03 00:00"]


def test_an_event_that_replaces_later_occurrences_stays(workspace: Path, call: Call) -> None:
    override = SERIES[1].replace("RECURRENCE-ID;", "RECURRENCE-ID;RANGE=THISANDFUTURE;")
    before = put(workspace, SERIES[0], override).read_bytes()
    for name, arguments in (
        ("delete_control", {"control_id": "event-2"}),
        ("write_event", {"control_id": "event-1", "start": "2026-03-02T11:00", "timezone": "Europe/Berlin"}),
    ):
        with pytest.raises(ToolError, match="all later occurrences"):
            call(name, "a.ics", **arguments)
    assert (workspace / "a.ics").read_bytes() == before


def test_a_moved_series_takes_its_exceptions_along(workspace: Path, call: Call) -> None:
    path = put(workspace, *SERIES)
    answer = call("write_event", "a.ics", control_id="event-1", start="2026-03-03T11:30", timezone="Europe/Berlin")
    assert answer["keep_their_own_values"] == ["event-2", "event-3"]
    assert starts_in(path) == ["03-03 11:30", "03-16 14:00", "03-24 11:30", "03-31 11:30", "04-02 11:30", "04-07 11:30"]
    assert f"DTEND;{ZONE}0303T123000\r\n".encode() in path.read_bytes()


RULES = ["FREQ=DAILY;INTERVAL=2", "FREQ=WEEKLY", "FREQ=WEEKLY;BYDAY=MO,WE,SU", "FREQ=WEEKLY;INTERVAL=2",
         "FREQ=MONTHLY;BYDAY=1MO", "FREQ=DAILY;BYDAY=MO,TU", "FREQ=MONTHLY", "FREQ=DAILY;BYHOUR=9,15"]  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(RULES),
    st.sampled_from(["COUNT=9", "UNTIL=20260501T070000Z"]),
    st.integers(-3000, 6000),
    st.sets(st.integers(1, 6), max_size=3),
    st.sampled_from(["zone", "utc", "floating"]),
)
def test_a_moved_series_moves_each_occurrence(
    workspace: Path, call: Call, rule: str, end: str, minutes: int, exceptions: set[int], kind: str
) -> None:
    first = dt.datetime(2026, 3, 16, 9)  # noqa: DTZ001 - a Monday before summer time begins
    name, mark, zone = {"zone": (";TZID=Europe/Berlin", "", BERLIN), "utc": ("", "Z", dt.UTC)}.get(kind, ("", "", None))
    end = end.removesuffix("Z") if kind == "floating" else end
    text = f"UID:s\nDTSTART{name}:{first:%Y%m%dT%H%M%S}{mark}\nDURATION:PT1H\nRRULE:{rule};{end}"
    path = put(workspace, text)
    wall = [dt.datetime.strptime(f"2026-{start}", "%Y-%m-%d %H:%M") for start in starts_in(path)]  # noqa: DTZ007
    gone = [moment for n, moment in enumerate(wall) if n in exceptions]
    text += "".join(f"\nEXDATE{name}:{moment:%Y%m%dT%H%M%S}{mark}" for moment in gone)
    path = put(workspace, text)
    call("read_table", "a.ics")
    call("get_controls", "a.ics")
    new = first + dt.timedelta(minutes=minutes)
    given = {"start": new.replace(tzinfo=zone).isoformat(), "control_id": "event-1"}
    same_day = new.date() == first.date()
    follows = same_day or rule in RULES[:4]
    if minutes and (not follows or "BYHOUR" in rule):
        with pytest.raises(ToolError, match="can't follow"):
            call("write_event", "a.ics", **given)
        return
    call("write_event", "a.ics", **given)
    expected = [moment + dt.timedelta(minutes=minutes) for moment in wall if moment not in gone]
    assert starts_in(path) == [f"{moment:%m-%d %H:%M}" for moment in expected]


@pytest.mark.parametrize(
    ("rule", "start"),
    [
        ("FREQ=MONTHLY;BYDAY=1MO", "2026-03-03T09:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "2026-03-03T09:00"),
        ("FREQ=DAILY;BYHOUR=9,15", "2026-03-02T10:00"),
    ],
)
def test_a_series_whose_rule_can_not_follow_is_refused(workspace: Path, call: Call, rule: str, start: str) -> None:
    before = put(workspace, SERIES[0].replace("FREQ=WEEKLY;COUNT=6", rule)).read_bytes()
    with pytest.raises(ToolError, match=rf"repeats by {rule}.*, which can't follow"):
        call("write_event", "a.ics", control_id="event-1", start=start, timezone="Europe/Berlin")
    assert (workspace / "a.ics").read_bytes() == before


def test_a_moved_meeting_has_a_new_revision(workspace: Path, call: Call) -> None:
    path = put(workspace, MEETING)
    answer = call("write_event", "a.ics", control_id="event-1", start="2026-07-05T11:00", timezone="Europe/Berlin")
    (event,) = events_in(path)
    assert event["SEQUENCE"] == 3
    assert event["LAST-MODIFIED"].dt.year > 2024
    assert f"{event.walk('VALARM')[0]['TRIGGER'].dt:%H:%M}" == "08:55"
    assert [person.params.get("PARTSTAT") for person in event["ATTENDEE"]] == ["ACCEPTED", "NEEDS-ACTION", None]
    assert answer["must_accept_again"] == ["bob@example.org"]


def test_a_change_of_words_is_no_new_revision(workspace: Path, call: Call) -> None:
    path = put(workspace, MEETING)
    call("write_event", "a.ics", control_id="event-1", summary="Retro")
    (event,) = events_in(path)
    assert event["SEQUENCE"] == 2
    assert event["LAST-MODIFIED"].dt.year > 2024
    assert event["ATTENDEE"][1].params["PARTSTAT"] == "ACCEPTED"
    call("write_event", "a.ics", control_id="event-1", location="Room 2")
    assert events_in(path)[0]["SEQUENCE"] == 3


@pytest.mark.parametrize(
    ("extra", "fields", "name"),
    [
        ("X-ALT-DESC;FMTTYPE=text/html:<p>Old agenda</p>", {"description": "New"}, "X-ALT-DESC"),
        ("STYLED-DESCRIPTION;VALUE=TEXT:<b>Old agenda</b>", {"description": "New"}, "STYLED-DESCRIPTION"),
        ("LOCATION:Old hall\nGEO:52.5;13.4", {"location": "New hall"}, "GEO"),
        ("X-APPLE-STRUCTURED-LOCATION;VALUE=URI:geo:52.5,13.4", {"location": "New"}, "X-APPLE-STRUCTURED-LOCATION"),
        ('LOCATION;ALTREP="http://example.org/old":Old', {"location": "New"}, "LOCATION;ALTREP"),
    ],
)
def test_other_forms_of_a_changed_text_are_removed(
    workspace: Path, call: Call, extra: str, fields: dict, name: str
) -> None:
    path = put(workspace, f"{MEETING}\n{extra}")
    assert call("write_event", "a.ics", control_id="event-1", **fields)["removed"] == [name]
    assert name.partition(";")[2 if ";" in name else 0].encode() not in path.read_bytes()


def test_a_formatted_description_is_read_where_it_is_the_only_one(workspace: Path, call: Call) -> None:
    put(workspace, "UID:1\nSUMMARY:x\nX-ALT-DESC;FMTTYPE=text/html:<p>Bring <b>250 EUR</b></p>")
    assert call("read_table", "a.ics")["rows"][0][5] == "Bring 250 EUR"


def test_the_observation_names_people_alarms_and_other_entries(workspace: Path, surface: DocumentSurface) -> None:
    todo = "BEGIN:VTODO\nUID:t\nSUMMARY:Pay\nEND:VTODO\n"
    put(workspace, MEETING, entries=todo, head="METHOD:REQUEST\n")
    seen = surface.observe(next(target for target in surface.targets() if target.id == "a.ics"))
    detail = seen.controls[0].detail
    assert detail["organizer"] == "ada@example.org"
    assert detail["attendees"].split(", ")[1:] == ["bob@example.org (accepted)", "eve@example.org (needs-action)"]
    assert detail["alarms"] == "2026-07-05T06:55:00+00:00"
    assert (seen.window["method"], seen.window["not_shown"]) == ("REQUEST", "1 tasks")


def test_a_zone_of_the_file_stays_that_of_a_moved_series(workspace: Path, call: Call) -> None:
    zone = (
        "BEGIN:VTIMEZONE\nTZID:Office\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0300\n"
        "TZOFFSETTO:+0300\nEND:STANDARD\nEND:VTIMEZONE\n"
    )
    path = put(workspace, "UID:1\nDTSTART;TZID=Office:20260105T090000\nRRULE:FREQ=DAILY;COUNT=2", head=zone)
    call("write_event", "a.ics", control_id="event-1", start="2026-01-05T08:00Z")
    assert b"DTSTART;TZID=Office:20260105T110000" in path.read_bytes()


def test_cancelled_calendars_and_rules_of_exceptions(workspace: Path, call: Call) -> None:
    event = "UID:1\nDTSTART:20260105T090000Z\nSUMMARY:x"
    put(workspace, event, head="METHOD:CANCEL\n")
    answer = call("read_table", "a.ics", first_day="2026-01-01", last_day="2026-01-31")
    assert (answer["rows"], answer["cancelled_left_out"], answer["method"]) == ([], 1, "CANCEL")
    put(workspace, f"{event}\nRRULE:FREQ=DAILY;COUNT=4\nEXRULE:FREQ=DAILY;INTERVAL=2;COUNT=2")
    assert "COUNT=2" in call("read_table", "a.ics")["rows"][0][7]
    with pytest.raises(ToolError, match="a rule of exceptions"):
        call("read_table", "a.ics", first_day="2026-01-01")
    call("get_controls", "a.ics")
    with pytest.raises(ToolError, match="a rule of exceptions"):
        call("write_event", "a.ics", control_id="event-1", start="2026-01-05T10:00Z")


def test_links_and_attached_files_are_shown(workspace: Path, call: Call) -> None:
    attached = "ATTACH;ENCODING=BASE64;VALUE=BINARY:eA=="
    put(workspace, f"UID:1\nSUMMARY:x\nURL:https://a.example/m\nATTACH:https://a.example/agenda.pdf\n{attached}")
    links = call("read_table", "a.ics")["rows"][0][-1]
    assert links == "https://a.example/m, https://a.example/agenda.pdf, (attached file)"


@pytest.mark.parametrize(
    ("encoding", "summary"), [("cp1252", "Grüße"), ("cp1250", "Zażółć gęślą jaźń, święta Łódź i późna noc")]
)
def test_a_calendar_in_another_encoding_is_read_only(workspace: Path, call: Call, encoding: str, summary: str) -> None:
    path = put(workspace, f"UID:1\nDTSTART:20260105T090000Z\nSUMMARY:{summary}")
    path.write_bytes(path.read_bytes().decode().encode(encoding))
    assert call("read_table", "a.ics")["rows"][0][1] == summary
    assert call("read_table", "a.ics", first_day="2026-01-05")["rows"][0][1] == summary
    with pytest.raises(ToolError, match="not in UTF-8"):
        call("write_event", "a.ics", control_id="event-1", summary="x")
