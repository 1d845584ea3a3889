"""Journals of earlier versions are migrated when they are opened, and their tasks go on."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from callboard import EventName, Outcome, Task
from callboard.journal import JournalFile, JournalReader, TaskFilter
from callboard.journal._migrations import MIGRATIONS
from callboard.messages import JournalError, StepDone
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import FINISH, PATIENCE, append, command_line

WRITTEN = {
    1: 1_795_379_300.0,
    2: 1_795_396_810.0,
    3: 1_795_420_542.0,
    4: 1_795_476_398.0,
    5: 1_795_534_147.0,
    6: 1_795_550_215.0,
    7: 1_795_613_849.0,
    8: 1_795_739_223.0,
    9: 1_795_761_213.0,
    10: 1_795_853_646.0,
    11: 1_795_879_514.0,
    12: 1_795_906_246.0,
    13: 1_795_906_246.0,
    14: 1_795_906_246.0,
}
"""Moments right after each was written, in seconds since 1970: ten minutes later no answer is accepted any more.

Each holds three tasks of the program that wrote it: ``done``; ``waits`` for an approval; ``doubt``, killed midway.
Those from version 2 on have a fourth, ``secret``, which waits with an action that names a secret. Version 7 also has
``rounds``, whose HostAgent has assigned one subtask, and asks a question in the second of three rounds. Version 10 has
``pair``, whose HostAgent has assigned two subtasks, one after the other; the second was killed after its first action.
Versions from 11 on have ``group`` in its place, whose HostAgent has assigned the same two subtasks at once. In
version 12, two tasks have labels. Version 13 is that file as the program of version 13 migrated it. Version 14
is made of it by the next migration, which adds a column.
"""


class Left(MemoryServer):
    """The windows as that program left them."""

    def __init__(self):
        super().__init__(*(self.window(name) for name in ("one", "two", "three", "four", "five", "six")))
        texts = {"one": "BOBCAROL", "two": "ALICE", "three": "ALICEBOB", "five": "DAVE", "six": "ERIN"}
        for name, text in texts.items():
            self._controls[f"memo:{name}"]["field-1"] = text


@pytest.fixture(params=WRITTEN)
def version(request):
    return request.param


@pytest.fixture
def journal(tmp_path, version):
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(Path(__file__).with_name(f"version_{min(version, 13)}.sql").read_text(encoding="utf-8"))
        for script in MIGRATIONS[13:version]:
            made.executescript(script)
    return path


@pytest.fixture
def started(start, journal, version):
    return left(start, journal, version)


def left(start, journal, version, **settings):
    """Start a supervisor on a journal right after it was written."""
    surface = Left()
    policy = [{"verdict": "approve", "tool": "write"}]
    parts = {"servers": [surface], "app": lambda _: FINISH, "clock": VirtualClock(WRITTEN[version])}
    return surface, start(**{**parts, "journal": {"path": journal}, "policy": policy, **settings})


def paired(path, task_id):
    """List the calls of a task's steps: the text written, and the value returned."""
    with JournalReader.open(path) as reader:
        steps = [row.message for row in reader.rows(task_id) if isinstance(row.message, StepDone)]
    return [(action.arguments["text"], result.value) for step in steps for action, result in step.record.calls]


def test_an_older_journal_tells_its_version_and_is_left_as_it_is(journal, version):
    before = journal.read_bytes()
    with JournalReader.open(journal, older=True) as reader:
        assert reader.version == version
    assert journal.read_bytes() == before


def test_a_journal_whose_number_alone_is_older_can_be_shown(journal, version):
    before = journal.read_bytes()
    if version < 4:
        with pytest.raises(JournalError, match=f"tables of the older version {version}"):
            JournalReader.open(journal)
    else:
        assert paired(journal, "done") == [("ALICE", "ALICE"), ("BOB", "BOB"), ("CAROL", "BOBCAROL")]
        assert "append on field-1" in command_line("show", "done", journal).stdout
    assert journal.read_bytes() == before


def test_results_of_held_actions_are_with_their_actions(started, journal):
    assert paired(journal, "done") == [("ALICE", "ALICE"), ("BOB", "BOB"), ("CAROL", "BOBCAROL")]


def test_waiting_action_of_an_older_journal_can_be_approved(started, journal):
    surface, supervisor = started
    handle = supervisor.handle("waits")
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert paired(journal, "waits") == [("ALICE", "ALICE"), ("BOB", "BOB"), ("CAROL", "BOBCAROL")]
    assert [text for target, _, text in surface.effects if target == "memo:two"] == ["BOB", "CAROL"]


def test_action_in_doubt_in_an_older_journal_is_not_repeated(started, journal):
    surface, supervisor = started
    assert supervisor.handle("doubt").result(PATIENCE).ok
    assert [action for action, _ in paired(journal, "doubt")] == ["ALICE", "BOB"]
    assert [text for target, _, text in surface.effects if target == "memo:three"] == []


def test_it_replays_and_can_be_shown(started, journal, version):
    _, supervisor = started
    supervisor.handle("doubt").result(PATIENCE)
    supervisor.stop()
    assert all(assert_replays(journal, task) for task in ("waits", "doubt"))
    if version == 1:
        with pytest.raises(AssertionError, match="replayed: subtask_finished"):  # it asked again after an approval
            assert_replays(journal, "done")
    else:
        assert assert_replays(journal, "done")
    assert "append on field-1" in command_line("show", "done", journal).stdout


def test_changed_targets_come_from_recorded_results(started, version):
    _, supervisor = started
    result = supervisor.handle("done").result(PATIENCE)
    told = ((), 0) if version == 1 else (("memo:one",), 3)
    assert (result.changed, result.actions) == (told[0], result.usage.commands)
    assert (result.subtasks[0].changed, result.subtasks[0].actions) == told


@pytest.mark.parametrize("wrong", [0, 400, -400])
def test_ages_of_earlier_tasks_are_taken_from_the_rows(journal, monkeypatch, wrong):
    with closing(sqlite3.connect(journal)) as written:
        (last,) = written.execute("SELECT at FROM rows ORDER BY id DESC LIMIT 1").fetchone()
    monkeypatch.setattr(time, "time", lambda: last + wrong * 86_400)
    with closing(JournalFile.open(journal)) as file:
        assert file.prune(days=30, max_bytes=None) == 0
        monotonic = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 31 * 86_400)
        assert file.prune(days=30, max_bytes=None) == 1
        assert file.find("done") is None


@pytest.mark.parametrize("version", [7])
def test_a_task_keeps_the_form_of_its_run_ids(start, journal, version):
    def host(request):
        if len(request.subtasks) == {"second": 2, "third": 3}[request.request]:
            return FINISH
        return {"Status": "ASSIGN", "ControlText": "memo:five", "Current Sub-Task": "more"}

    _, supervisor = left(start, journal, version, host=host)
    handle = supervisor.handle("rounds")
    handle.answer(handle.questions()[0].id, "this one")
    result = handle.result(PATIENCE)
    assert (result.ok, result.rounds) == (True, 3)
    assert [done.run_id for done in result.subtasks] == ["rounds/1", "rounds/2", "rounds/3"]
    with JournalReader.open(journal) as reader:
        rows = list(reader.rows("rounds", events=True))
    assert {row.run_id for row in rows} == {"", "rounds/0", "rounds/1", "rounds/2", "rounds/3"}
    supervisor.stop()
    assert assert_replays(journal, "rounds")


@pytest.mark.parametrize("version", [10])
def test_a_task_of_single_subtasks_goes_on_with_a_group(start, journal, version):
    def host(request):
        if len(request.subtasks) == 4:
            return FINISH
        group = [{"ControlText": f"memo:{name}", "Current Sub-Task": "more"} for name in ("five", "six")]
        return {"Status": "ASSIGN", "Sub-Tasks": group}

    def app(request):
        unfinished = request.request == "second" and request.step == 2
        return append("FAY") if unfinished else {**FINISH, "Result": request.run_id}

    surface, supervisor = left(start, journal, version, host=host, app=app)
    result = supervisor.handle("pair").result(PATIENCE)
    assert result.ok
    assert [done.run_id for done in result.subtasks] == ["pair~1", "pair~2", "pair~3", "pair~4"]
    assert [done.output for done in result.subtasks] == [{"name": "DAVE"}, "pair~2", "pair~3", "pair~4"]
    assert [text for target, _, text in surface.effects if target in {"memo:five", "memo:six"}] == ["FAY"]
    assert [action for action, _ in paired(journal, "pair")] == ["DAVE", "ERIN", "FAY"]
    supervisor.stop()
    assert assert_replays(journal, "pair")


@pytest.mark.parametrize("version", [11, 12])
def test_subtasks_that_work_side_by_side_go_on_on_one_machine(start, journal, version):
    def app(request):
        return append("FAY") if request.step == 2 else {**FINISH, "Result": request.run_id}

    surface, supervisor = left(start, journal, version, host=lambda _: FINISH, app=app)
    result = supervisor.handle("group").result(PATIENCE)
    assert result.ok
    assert [(done.run_id, done.machine) for done in result.subtasks] == [("group~1", ""), ("group~2", "")]
    assert [done.output for done in result.subtasks] == [{"name": "DAVE"}, "group~2"]
    assert [text for target, _, text in surface.effects if target in {"memo:five", "memo:six"}] == ["FAY"]
    assert supervisor.handle("group").task.origin is None
    supervisor.stop()
    assert assert_replays(journal, "group")


def test_migrated_journals_have_identities_of_their_own(journal, tmp_path):
    with closing(JournalFile.open(journal)) as first, closing(JournalFile.open(tmp_path / "new.db")) as second:
        identities = [first.identity, second.identity]
    assert len({*identities}) == 2
    with closing(JournalFile.open(journal)) as again:
        assert again.identity == identities[0]


@pytest.mark.parametrize("version", [2])
@pytest.mark.parametrize(("granted", "written"), [({}, []), ({"parameters": ["text"]}, ["swordfish-4711"])])
def test_action_without_a_known_decider_gets_only_granted_secrets(start, journal, version, granted, written):
    secrets = {"pw": {"value": "swordfish-4711", **granted}}
    surface, supervisor = left(start, journal, version, secrets=secrets)
    handle = supervisor.handle("secret")
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert [text for target, _, text in surface.effects if target == "memo:four"] == written
    refused = [event for event in handle.events() if event.name is EventName.SECRET_REFUSED]
    assert len(refused) == (not written)


def test_the_phases_of_an_older_journal_are_read_as_they_were_kept(started, journal, version):
    told = [event for event in started[1].handle("done").events() if event.name is EventName.PHASE_ENDED]
    with JournalReader.open(journal) as reader:
        assert [event for event in reader.events("done") if event.name is EventName.PHASE_ENDED] == told
    steps = 0 if version == 1 else 8  # two steps, the second without a model, and a look: the first file has no events
    assert len(told) == steps
    numbered = len(told) if version < 5 else 3  # from version 5 on, those of a step have the number of its end
    assert len({event.seq for event in told}) == numbered


def test_journal_without_the_newest_task_fields_can_be_continued(begin, until, tmp_path):
    before = begin(host=lambda _: {"Status": "PENDING", "Comment": "which one?"})
    handle = before.submit(Task(request="x"))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    path = tmp_path / "journal.db"
    newest = ('"dry_run":false,', '"limits":null,', '"model":null,', '"output_schema":null,')
    with closing(sqlite3.connect(path)) as written:
        for field in newest:
            without = "UPDATE rows SET body = replace(body, ?, '') WHERE instr(body, ?)"
            changed = written.execute(without, (field, field))
            assert changed.rowcount > 0, field
        written.commit()
    after = begin(host=lambda _: FINISH).handle(handle.task_id)
    assert (after.task.dry_run, after.task.limits, after.task.output_schema) == (False, None, None)
    after.answer(after.questions()[0].id, "this one")
    assert after.result(PATIENCE).ok
    assert_replays(path, handle.task_id)


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("migrated", [False, True])
def test_tasks_of_an_older_journal_are_found_by_words_and_labels(journal, version, migrated):
    if migrated:
        JournalFile.open(journal).close()
    with JournalReader.open(journal) as reader:
        assert reader.version == (len(MIGRATIONS) if migrated else version)
        assert [task.id for task in reader.page(TaskFilter("don")).tasks] == ["done"]
        assert [task.id for task in reader.page(TaskFilter(labels={"month": "May"})).tasks] == ["group", "done"]
        unfinished = reader.page(TaskFilter(outcomes=frozenset({None}), labels={"month": "May"})).tasks
        assert [(task.id, task.labels) for task in unfinished] == [("group", {"month": "May"})]
