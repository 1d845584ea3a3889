"""The file: it holds exactly the committed rows, unchanged and in order."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sqlite3
import stat
import string
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.config import NotOwnError
from callboard.journal import Artifacts, JournalFile, JournalReader, Row, Versions, _file
from callboard.journal._file import _RESULT, _SESSION, _UNFINISHED
from callboard.journal._pictures import Pictures
from callboard.journal._row_encoding import _READ, _READ_BUT_EVENTS, _READ_EVENTS
from callboard.messages import (
    Action,
    Answer,
    CommandResult,
    Decided,
    Decision,
    EventName,
    Fact,
    JournalDamagedError,
    JournalError,
    JournalInUseError,
    JournalPathError,
    Message,
    Observation,
    Outcome,
    ResultStatus,
    StepDone,
    StepRecord,
    Task,
)
from support import HELD, PATIENCE
from unsafe_paths import UNSAFE, everything, make_unsafe

MESSAGES = Path(__file__).resolve().parents[1] / "messages" / "test_every_message.py"


def load_strategies():
    spec = importlib.util.spec_from_file_location("callboard_every_message", MESSAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EVERY = load_strategies()
ODD_TEXTS = [
    "",
    "\0",
    "a\0b",
    string.printable,
    "".join(map(chr, range(32))),
    "\x7f\x80\x9f\u2028\u202e\ufeff\uffff",
    "'; DROP TABLE rows; --",
    '"); DELETE FROM tasks; --',
    "?1 :a @b $c %s {0} {x!r} %n",
    "!!python/object/apply:os.system [id]",
    "../../../etc/passwd",
    "\U0001f600 äöü ß 漢字",
    "\x1b[31m\r\n",
    "x" * 1_000_000,
]


def written(journal: JournalFile, *rows: Row) -> None:
    journal.write(rows)
    journal.commit()


def events_written(journal: JournalFile, *facts: Fact) -> list[str]:
    """Write events together, and give why some were refused."""
    refused: list[str] = []
    journal.write_events(facts, lambda error: refused.append(str(error)))
    journal.commit()
    return refused


@pytest.fixture
def shared(tmp_path_factory):
    """Give one journal to all examples of a property."""
    journal = JournalFile.open(tmp_path_factory.mktemp("shared") / "journal.db", durability="process")
    yield journal
    journal.close()


@pytest.mark.parametrize("message", EVERY.MESSAGES.values(), ids=EVERY.MESSAGES)
@settings(max_examples=15)
@given(data=st.data())
def test_every_message_comes_back_as_it_was(message, shared, data):
    sent = data.draw(EVERY.instances(message))
    shared.write([Row(1.5, "t", "t~0", sent, 7)])
    assert list(shared.rows("t", events=True)) == [Row(1.5, "t", "t~0", sent, 7)]
    shared.rollback()


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_any_text_comes_back_as_it_was(opened, a_row, text):
    result = CommandResult(call_id=text, tool=text, status=ResultStatus.SUCCESS, value={text: [text]}, error=text)
    journal = opened()
    written(journal, a_row(result, run=text, task=text))
    assert list(journal.rows(text)) == [a_row(result, run=text, task=text)]


def a_step(*, deep: int = 0, **changed) -> list[Message]:
    """Give a step's messages: the decision, the results, and its end, with some parts of the end changed."""
    value = functools.reduce(lambda inner, _: [inner], range(deep), 1)
    seen = Observation(text="a window", picture=b"a picture", fingerprint="1")
    decision = Decision(status="CONTINUE", actions=(Action(tool="write", arguments={"text": value}),), result=value)
    decided = Decided(step=1, observation=seen, decision=decision, actions=decision.actions)
    results = tuple(
        CommandResult(call_id=call, tool="write", status=ResultStatus.SUCCESS, value=value, pictures=(b"a picture",))
        for call in ("one", "two")
    )
    parts = {"observation": seen, "decision": decision, "results": results, **changed}
    return [decided, *results, StepDone(record=StepRecord(step=1, status="CONTINUE", **parts), left="2")]


def written_as(place: Path) -> list[str]:
    """Name the kinds of the messages in the turns of a journal."""
    with closing(sqlite3.connect(place)) as reading:
        return [
            said[2]
            for (body,) in reading.execute("SELECT body FROM rows WHERE kind = 'turn'")
            for said in json.loads(body)
        ]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "step_rest"),
        ({"observation": Observation(text="a window", picture=b"a picture", fingerprint="1")}, "step_done"),
        ({"decision": Decision(status="FINISH")}, "step_done"),
        ({"results": ()}, "step_done"),
        ({"deep": 40}, "step_rest"),
        ({"deep": 170}, "step_done"),
    ],
    ids=["the same", "another look", "another decision", "fewer results", "deep", "deeper"],
)
def test_the_end_of_a_step_does_not_repeat_its_turn_and_comes_back_whole(opened, place, changed, kind):
    journal, said = opened(), a_step(**changed)
    rows = [Row(1.0, "t", "t~1", message, 1) for message in said]
    written(journal, *rows)
    assert written_as(place) == ["decided", "command_result", "command_result", kind]
    assert list(journal.rows("t")) == rows


def test_step_end_stored_apart_from_its_decision_is_read_back_whole(opened, place):
    journal, said = opened(), a_step()
    rows = [Row(1.0, "t", "t~1", message, 1) for message in said]
    written(journal, *rows[:2])
    written(journal, *rows[2:])
    assert written_as(place) == ["decided", "command_result", "command_result", "step_done"]
    assert list(journal.rows("t")) == rows


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_any_text_is_looked_for_as_it_is(opened, a_row, text):
    journal = opened()
    written(journal, a_row(Task(id="t", request="do it", key="known")))
    assert (journal.find("", text), journal.find(text), journal.session_tasks(text)) == (None, None, ())
    assert (list(journal.rows(text)), journal.result(text)) == ([], None)


@pytest.mark.parametrize(
    "message",
    [
        Answer(id="a", task_id="t", by="\ud800"),
        CommandResult(call_id="c", tool="x", status=ResultStatus.SUCCESS, value={"a": ["\udcff"]}),
    ],
    ids=["half a surrogate pair", "one in a value"],
)
def test_a_message_that_can_not_be_written_is_refused_alone(opened, a_row, a_task, message):
    journal = opened()
    journal.write([a_task("t")])
    with pytest.raises(ValueError, match="can't be written down"):
        journal.write([a_row(Answer(id="before", task_id="t")), a_row(message)])
    journal.commit()
    assert [row.message.kind for row in journal.rows("t")] == ["task"]


def test_events_that_are_written_together_come_back_as_they_were(opened):
    journal = opened()
    of_runs = [
        ("t", "t~0", "host/t"),
        ("u", "u~1", "app/a"),
        ("t", "t~0", "host/t"),
        ("t", "t~1", "app/b"),
        ("t", "", ""),
    ]
    facts = [
        Fact(seq, seq / 2, EventName.STEP_ENDED, *run, step=seq, duration=0.5, data={"comment": f"number {seq}"})
        for seq, run in enumerate(of_runs * 3, 1)
    ]
    assert events_written(journal, *facts) == []
    assert journal.events(0, 10) == [fact.event() for fact in facts]
    assert journal.events(7, 10) == [fact.event() for fact in facts[7:]]


def test_row_of_events_stores_shared_fields_once(opened):
    journal = opened()
    shared = ("t", "t~1", "app/word/report.docx")
    events_written(journal, *(Fact(seq, 1.0, EventName.STEP_STARTED, *shared, step=seq) for seq in range(1, 100)))
    [(body,)] = journal._connection.execute("SELECT body FROM rows").fetchall()
    assert (body.count("app/word/report.docx"), body.count("t~1")) == (1, 1)


@pytest.mark.parametrize(("seq", "data"), [(2**63, {}), (2, {"value": object()})], ids=["too large", "no JSON"])
def test_an_event_that_can_not_be_written_is_refused_alone(opened, seq, data):
    journal = opened()
    good = Fact(seq=1, at=1.0, name=EventName.STEP_STARTED)
    [why] = events_written(journal, good, Fact(seq=seq, at=1.0, name=EventName.STEP_STARTED, data=data))
    assert "can't be written down" in why
    assert journal.events(0, 10) == [good.event()]


def test_a_task_is_written_without_the_values_of_its_secrets(opened, a_task):
    journal = opened()
    written(journal, a_task("t", secrets={"pw": {"value": "swordfish-4711"}}))
    [(body,)] = journal._connection.execute("SELECT body FROM rows").fetchall()
    assert '"secrets":{"pw":null}' in body
    assert "swordfish" not in body


def test_half_a_surrogate_pair_in_an_event_is_written_as_an_escape(opened):
    journal = opened()
    events_written(journal, Fact(seq=1, at=1.0, name=EventName.STEP_STARTED, data={"labels": {"a": ["\ud800"]}}))
    assert journal.events(0, 10)[0].data == {"labels": {"a": ["\\ud800"]}}


def test_a_name_that_can_not_be_written_is_refused(opened, a_row):
    journal = opened()
    with pytest.raises(ValueError, match="can't be written down"):
        journal.write([a_row(Answer(id="a", task_id="t"), run="\udc80")])


def test_a_value_too_deep_to_be_read_back_is_refused_before_it_is_written(opened, a_row):
    journal, value, refused = opened(), None, []
    for depth in range(1, 253):
        value = [value]
        row = a_row(CommandResult(call_id="c", tool="x", status=ResultStatus.SUCCESS, value=value), run=str(depth))
        try:
            journal.write([row])
        except ValueError:
            refused.append(depth)
    journal.commit()
    assert refused == list(range(refused[0], 253))
    assert [row.run_id for row in journal.rows("t")] == [str(depth) for depth in range(1, refused[0])]


@pytest.mark.parametrize(
    "value",
    [
        [{"a": [number]} for number in range(500)],
        ["[{" * 200, "]" * 300, {"}": "{"}],
        [[text] for text in "[]{}" * 100],
        functools.reduce(lambda inner, _: {"{": [inner]}, range(80), "]"),
    ],
    ids=["many", "in texts", "many, in texts", "deep"],
)
def test_a_value_with_many_brackets_is_kept_as_it_is(opened, a_row, value):
    journal = opened()
    written(journal, a_row(CommandResult(call_id="c", tool="x", status=ResultStatus.SUCCESS, value=value)))
    assert [row.message.value for row in journal.rows("t")] == [value]


def test_a_long_value_that_is_not_deep_is_not_read_again(opened, a_row, monkeypatch):
    journal, read = opened(), []
    monkeypatch.setattr("pydantic_core.from_json", lambda body, **_: read.append(body))
    many = [{"a": [number]} for number in range(500)]
    journal.write([a_row(CommandResult(call_id="c", tool="x", status=ResultStatus.SUCCESS, value=many))])
    assert read == []


def test_a_message_without_a_tag_is_refused(opened, a_row):
    with pytest.raises(ValueError, match="a Message can't be written down"):
        opened().write([a_row(Message())])


def test_rows_come_back_in_order_and_by_task(opened, a_row):
    journal = opened()
    rows = [a_row(Answer(id=str(number), task_id="t"), task=f"t{number % 3}") for number in range(1000)]
    written(journal, *rows)
    assert list(journal.rows("t1")) == rows[1::3]


def test_rows_may_be_written_while_others_are_read(opened, a_row):
    journal = opened()
    rows = [a_row(Answer(id=str(number), task_id="t")) for number in range(600)]
    written(journal, *rows)
    reading = journal.rows("t")
    first = next(reading)
    written(journal, a_row(Answer(id="late", task_id="t")))
    assert [first, *reading] == [*rows, a_row(Answer(id="late", task_id="t"))]


def plan_of(journal, query):
    plan = journal._connection.execute(f"EXPLAIN QUERY PLAN {query}", [0] * query.count("?")).fetchall()
    return [step for *_, step in plan]


@pytest.mark.parametrize("query", [_READ, _READ_BUT_EVENTS, _READ_EVENTS, _RESULT])
def test_rows_are_found_and_ordered_by_an_index_without_a_scan(opened, query):
    assert [step.partition(" ")[0] for step in plan_of(opened(), query)] == ["SEARCH"]


@pytest.mark.parametrize("query", [_UNFINISHED, _SESSION])
def test_queries_never_scan_all_tasks(opened, query):
    scans = [step for step in plan_of(opened(), query) if step.startswith("SCAN")]
    assert scans == ["SCAN tasks USING INDEX tasks_open"] * (query == _UNFINISHED)


def test_rows_omit_events_unless_requested(opened, a_task, an_event):
    journal = opened()
    rows = [a_task("t"), a_task("u")]
    written(journal, *rows)
    events_written(journal, an_event(1), an_event(2, task="u"), an_event(3))
    assert list(journal.rows("t")) == rows[:1]
    told = [an_event(seq).event() for seq in (1, 3)]
    assert [row.message for row in journal.rows("t", events=True)] == [rows[0].message, *told]


def test_events_are_read_by_number_whatever_their_task(opened, a_task, an_event):
    journal = opened()
    facts = [an_event(seq, task=f"t{seq % 2}", text="x" * seq) for seq in range(1, 10)]
    written(journal, a_task("t0"))
    for group in (facts[:2], facts[2:7], facts[7:]):
        events_written(journal, *group)
    for after in range(10):
        for limit in range(1, 10):
            found = journal.events(after, limit)
            assert found == [fact.event() for fact in facts[after:]][: len(found)]
            assert len(found) >= min(limit, 9 - after)
    assert len(journal.events(3, 1)) == 4  # the rest of its group


def test_the_number_of_the_last_event_is_known_after_a_restart(opened, an_event):
    journal = opened()
    assert journal.last_seq == 0
    events_written(journal, an_event(3), an_event(7))
    assert journal.last_seq == 7
    journal.close()
    assert opened().last_seq == 7


def test_the_number_of_the_last_event_is_that_before_a_rollback(opened, an_event):
    journal = opened()
    events_written(journal, an_event(7))
    journal.write_events([an_event(8)], pytest.fail)
    journal.rollback()
    assert journal.last_seq == 7


def test_rolled_back_rows_are_gone(opened, a_task):
    journal = opened()
    journal.write([a_task("t")])
    journal.rollback()
    written(journal, a_task("u"))
    assert (journal.find("t"), journal.unfinished()) == (None, ("u",))


def test_closing_drops_uncommitted_rows(opened, a_task):
    journal = opened()
    written(journal, a_task("t"))
    journal.write([a_task("u")])
    journal.close()
    assert opened().unfinished() == ("t",)


def test_empty_commit_does_nothing(opened, everything, place):
    journal = opened()
    before = everything(place.parent)
    journal.commit()
    assert everything(place.parent) == before


def test_tasks_without_a_result_are_unfinished_in_order_of_submission(opened, a_task, a_result):
    journal = opened()
    written(journal, a_task("z"), a_task("a"), a_task("m"), a_result("a"))
    assert journal.unfinished() == ("z", "m")
    assert all(journal.find(task) == task for task in "zam")


def test_a_result_is_that_which_was_written_first(opened, a_task, a_result):
    journal = opened()
    first = a_result("t", outcome=Outcome.FAILED, comment="no")
    written(journal, a_task("t"), first)
    written(journal, a_result("t", outcome=Outcome.FINISHED))
    assert journal.result("t") == first.message


def test_a_task_that_is_not_over_has_no_result(opened, a_task):
    journal = opened()
    written(journal, a_task("t"))
    assert journal.result("t") is None


def test_an_idempotency_key_leads_to_its_task(opened, a_task):
    journal = opened()
    written(journal, a_task("t", key="order 7"), a_task("u"), a_task("v"))
    assert journal.find("", "order 7") == "t"
    assert journal.find("", "order 8") is None


@pytest.mark.parametrize("again", [{"task_id": "v"}, {"task_id": "u", "key": "once"}], ids=["id", "key"])
def test_an_id_or_a_key_is_refused_a_second_time_in_rows_written_together(opened, a_task, again):
    journal = opened()
    with pytest.raises(ValueError, match="its id or its key was used before"):
        journal.write([a_task("v", key="once"), a_task(**again)])
    journal.commit()
    assert journal.unfinished() == ()


@pytest.mark.parametrize("again", [{"task_id": "t"}, {"task_id": "u", "key": "once"}], ids=["id", "key"])
def test_an_id_or_a_key_is_used_once_and_a_second_use_is_refused_alone(opened, a_task, again):
    journal = opened()
    journal.write([a_task("t", key="once")])
    with pytest.raises(ValueError, match="its id or its key was used before"):
        journal.write([a_task("v"), a_task(**again)])
    journal.commit()
    assert journal.unfinished() == ("t",)


def test_session_tasks_are_the_first_task_and_its_successors(opened, a_task):
    journal = opened()
    written(journal, a_task("one"), a_task("else"), a_task("two", session="one"), a_task("three", session="one"))
    assert journal.session_tasks("one") == ("one", "two", "three")


def test_opening_a_new_journal_syncs_its_name_and_that_of_its_folder(opened, synced):
    opened()
    assert synced == ["folder", "folder"]


@pytest.mark.parametrize("durability", ["full", "process"])
def test_a_closed_journal_is_one_file_and_opens_again(opened, place, a_task, durability):
    journal = opened(durability=durability)
    written(journal, a_task("t"))
    journal.close()
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert opened(durability=durability).unfinished() == ("t",)


@pytest.mark.parametrize("durability", ["full", "process"])
def test_a_closed_journal_has_no_file_open(opened, place, a_task, held_open, durability):
    for number in range(3):
        journal = opened(durability=durability)
        written(journal, a_task(f"t{number}"))
        assert {"journal.db", "journal.db.lock"} <= set(held_open(place.parent))
        journal.close()
        assert held_open(place.parent) == []


def test_a_journal_that_is_refused_has_no_file_open(place, held_open):
    place.parent.mkdir()
    place.write_bytes(b"no journal" * 1000)
    with pytest.raises(JournalDamagedError):
        JournalFile.open(place)
    assert held_open(place.parent) == []


def test_a_journal_in_use_that_is_refused_has_no_more_files_open(opened, place, held_open):
    opened()
    before = held_open(place.parent)
    with pytest.raises(JournalInUseError):
        JournalFile.open(place)
    assert held_open(place.parent) == before


def test_a_journal_that_is_closed_while_it_is_read_empties_its_log(opened, place, tmp_path, a_task):
    journal = opened()
    written(journal, a_task("t"))
    with JournalReader.open(place) as reader:
        assert [task.id for task in reader.tasks()] == ["t"]
        journal.close()
        assert place.with_name(f"{place.name}-wal").stat().st_size == 0
        copy = tmp_path / "copy.db"
        copy.write_bytes(place.read_bytes())  # the one file is the whole journal
    with JournalReader.open(copy) as reader:
        assert [task.id for task in reader.tasks()] == ["t"]


def test_closing_waits_for_no_reader(place, a_task, monkeypatch):
    monkeypatch.setattr(_file, "BUSY_SECONDS", HELD)
    journal = JournalFile.open(place)
    written(journal, a_task("t"))
    with closing(sqlite3.connect(place)) as reader:
        assert reader.execute("BEGIN").execute("SELECT id FROM tasks").fetchall() == [("t",)]
        closes = threading.Thread(target=journal.close, daemon=True)
        closes.start()
        closes.join(PATIENCE)
        assert not closes.is_alive()


def test_a_closed_journal_needs_no_log_to_be_read(opened, place, a_task):
    journal = opened()
    written(journal, a_task("t"))
    write_and_read_versions = slice(18, 20)  # of SQLite's file format: 2 is a log, 1 is none
    assert place.read_bytes()[write_and_read_versions] == b"\2\2"
    journal.close()
    assert place.read_bytes()[write_and_read_versions] == b"\1\1"


def test_closing_twice_is_closing_once(opened):
    journal = opened()
    journal.close()
    journal.close()


def test_only_full_durability_waits_for_the_disk(opened, tmp_path):
    found = {
        how: opened(tmp_path / how, durability=how)._connection.execute("PRAGMA synchronous").fetchone()[0]
        for how in ("full", "process")
    }
    assert found == {"full": 2, "process": 1}


def test_the_journal_is_private_with_all_that_stands_beside_it(opened, place, a_task):
    old = os.umask(0)
    try:
        written(opened(), a_task("t"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.parent.iterdir()}
        assert modes == {f"{place.name}{suffix}": 0o600 for suffix in ("", "-wal", "-shm", ".lock")}
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    finally:
        os.umask(old)


def test_a_journal_that_others_could_read_is_taken_from_them(opened, place):
    opened().close()
    place.chmod(0o644)
    opened()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_one_journal_is_meant_by_all_links_to_its_folder(opened, place, tmp_path, a_task):
    written(opened(), a_task("t"))
    link = tmp_path / "link"
    link.symlink_to(place.parent)
    with pytest.raises(JournalError, match="is in use by process"):
        opened(link / place.name)


def test_a_link_to_a_journal_is_refused(opened, place, tmp_path, a_task):
    written(opened(), a_task("t"))
    link = tmp_path / "link.db"
    link.symlink_to(place)
    with pytest.raises(JournalPathError, match="it is a link"):
        opened(link)


@pytest.mark.parametrize("kind", UNSAFE)
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm", ".lock", ".pictures", ".artifacts", ".versions"])
def test_a_journal_beside_an_unsafe_path_is_not_opened(tmp_path, suffix, kind):
    path = tmp_path / "journals" / "journal.db"
    path.parent.mkdir()
    make_unsafe(path.with_name(f"{path.name}{suffix}"), kind)
    before = everything(path.parent)
    with pytest.raises(JournalPathError, match=r"it is|it belongs to user"):
        JournalFile.open(path)
    assert everything(path.parent) == before


@pytest.mark.parametrize("suffix", ["artifacts", "versions", "pictures"])
def test_a_folder_of_a_journal_that_became_a_link_is_not_used(tmp_path, suffix):
    (tmp_path / "victim").mkdir()
    journal = tmp_path / "journal.db"
    (tmp_path / f"journal.db.{suffix}").symlink_to(tmp_path / "victim")
    keep = {
        "artifacts": lambda: Artifacts(journal).keep("t", "c", b"x", ".txt"),
        "versions": lambda: Versions(journal).keep("t", b"x"),
        "pictures": lambda: Pictures(journal).write(b"x"),
    }
    with pytest.raises((JournalPathError, NotOwnError), match="it is a link"):
        keep[suffix]()
    assert list((tmp_path / "victim").iterdir()) == []


def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(JournalError, match="can't be named so"):
        JournalFile.open(tmp_path / "a\0b")


def test_folder_is_refused_as_a_journal(tmp_path):
    with pytest.raises(JournalPathError, match="it is a folder; name a file"):
        JournalFile.open(tmp_path)


# Errors


def test_a_row_of_an_unknown_kind_is_named(opened, place, a_task):
    opened().close()
    with sqlite3.connect(place) as connection:
        connection.execute(
            "INSERT INTO rows (id, at, task, run, job, kind, body) VALUES (5, 1.0, 't', '', 0, 'wish', '{}')"
        )
    connection.close()
    with pytest.raises(JournalDamagedError, match=r"row 5 \(wish\) of task 't' .* no message is called 'wish'"):
        list(opened().rows("t"))


@pytest.mark.parametrize("body", ["", "{", "[]", '{"kind": "answer"}', b"\xff\xfe", 7])
def test_a_row_whose_message_is_not_valid_is_named(opened, place, body):
    opened().close()
    with sqlite3.connect(place) as connection:
        connection.execute(
            "INSERT INTO rows (at, task, run, job, kind, body) VALUES (1.0, 't', '', 0, 'answer', ?)", (body,)
        )
    connection.close()
    with pytest.raises(JournalDamagedError, match=r"row 1 \(answer\) of task 't' can't be read"):
        list(opened().rows("t"))


def test_full_disk_raises_an_error_and_keeps_committed_rows(opened, a_task, a_row):
    journal = opened()
    written(journal, a_task("t"))
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(JournalError, match=r"can't be written: database or disk is full; free some space"):
        written(journal, *(a_row(Answer(id="a", task_id="t", texts=("x" * 1000,))) for _ in range(100)))
    journal.rollback()
    assert [row.message.kind for row in journal.rows("t")] == ["task"]
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    written(journal, a_row(Answer(id="a", task_id="t")))
    assert len(list(journal.rows("t"))) == 2


def test_after_a_failure_nothing_is_written_until_it_is_rolled_back(opened, a_task):
    journal = opened()
    journal.write([a_task("t")])
    journal._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(JournalError, match="readonly"):
        journal.write([a_task("v")])
    journal._connection.execute("PRAGMA query_only = OFF")
    for go_on in (lambda: journal.write([a_task("u")]), journal.commit):
        with pytest.raises(JournalError, match="was not rolled back"):
            go_on()
    journal.rollback()
    written(journal, a_task("u"))
    assert journal.unfinished() == ("u",)


@pytest.mark.parametrize("which", ["", "-wal", ".lock"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_commit_notices_that_a_file_was_deleted_or_replaced(opened, place, a_task, which, how):
    journal = opened()
    written(journal, a_task("t"))
    journal.write([a_task("u")])
    lost = place.with_name(f"{place.name}{which}")
    lost.unlink()
    if how == "replaced":
        lost.write_bytes(b"something else")
    with pytest.raises(JournalError, match="was deleted or replaced while it was in use"):
        journal.commit()
    journal.rollback()


def test_closing_leaves_a_file_that_replaced_the_journal_alone(opened, place, a_task):
    journal = opened()
    written(journal, a_task("t"))
    place.unlink()
    place.write_bytes(b"something else")
    journal.close()
    assert place.read_bytes() == b"something else"


def test_only_committed_rows_survive_a_killed_writer(opened, writer):
    other = writer()
    other.write(commit=True)
    other.write(commit=False)
    other.kill()
    rows = list(opened().rows("t"))
    assert [row.message.id for row in rows] == ["t", *(f"{number}.{part}" for number in (0, 1) for part in range(100))]


def test_journal_of_a_killed_writer_can_be_continued(opened, writer, a_task):
    writer().kill()
    journal = opened()
    written(journal, a_task("u"))
    journal.close()
    assert opened().unfinished() == ("t", "u")


def test_a_log_that_was_cut_short_leaves_whole_commits_or_is_refused(writer, place, tmp_path):
    other = writer()
    for _ in range(4):
        other.write(commit=True)
    other.kill()
    log = place.with_name(f"{place.name}-wal")
    whole, main = log.read_bytes(), place.read_bytes()
    found = set()
    for number, cut in enumerate([*range(0, len(whole), 4096 + 24 + 1001), 31, 32, 33, len(whole) - 1]):
        copy = tmp_path / f"cut{number}" / "journal.db"
        copy.parent.mkdir()
        copy.write_bytes(main)
        copy.with_name("journal.db-wal").write_bytes(whole[:cut])
        journal = JournalFile.open(copy)
        ids = [row.message.id for row in journal.rows("t")]
        journal.close()
        assert ids[1:] == [f"{at // 100}.{at % 100}" for at in range(len(ids[1:]))]
        assert len(ids[1:]) % 100 == 0
        found.add(len(ids))
    assert found >= {0, 101, 401}


@pytest.mark.parametrize("levels", range(194, 202))
def test_a_deep_event_makes_no_other_one_of_its_row_unreadable(opened, levels):
    value = functools.reduce(lambda inner, _: [inner], range(levels), 1)
    journal = opened()
    facts = [Fact(seq, 1.0, EventName.STEP_STARTED, "t", data={"x": value} if seq == 2 else {}) for seq in (1, 2, 3)]
    refused = events_written(journal, *facts)
    assert len(journal.events(0, 10)) == 3 - len(refused)
