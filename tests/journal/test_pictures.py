"""Pictures: files named by their contents, on the disk before the row that names them."""

from __future__ import annotations

import errno
import hashlib
import os
import stat

import pytest

from callboard.journal import JournalReader
from callboard.journal._parts import exchanged
from callboard.journal._pictures import Pictures, picture_path
from callboard.messages import (
    ApprovalRequest,
    Captured,
    CommandResult,
    Decision,
    JournalError,
    Message,
    Observation,
    Outcome,
    ResultStatus,
    StepDone,
    StepRecord,
    SubtaskFailed,
    SubtaskResult,
    TaskResult,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
NAME = hashlib.sha256(PNG).hexdigest()


def seen(picture=PNG):
    return Observation(text="a window", picture=picture)


def subtask(picture=PNG):
    return SubtaskResult(
        run_id="t~1", number=1, request="r", address="app/x", outcome=Outcome.FAILED, last_seen=seen(picture)
    )


WITH_PICTURES = [
    Captured(observation=seen()),
    StepDone(record=StepRecord(step=1, status="CONTINUE", observation=seen(), decision=Decision(status="FINISH"))),
    ApprovalRequest(
        id="a", task_id="t", run_id="t~1", token=1, address="app/x", actions=(), reason="r", observation=seen()
    ),
    SubtaskFailed(task_id="t", run_id="t~1", token=1, result=subtask()),
    TaskResult(task_id="t", outcome=Outcome.FAILED, subtasks=(subtask(None), subtask(), subtask(b"another"))),
]
every_message = pytest.mark.parametrize("message", WITH_PICTURES, ids=lambda message: message.kind)


@pytest.fixture
def kept(opened, a_row, place):
    """Keep messages, and give the journal."""

    def keep(*messages: Message, task: str = "t"):
        journal = opened()
        journal.write([a_row(message, task=task) for message in messages])
        journal.commit()
        return journal

    return keep


@pytest.fixture
def files(place):
    """List the files of the journal's pictures."""
    folder = place.with_name(f"{place.name}.pictures")
    return lambda: sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@every_message
def test_a_message_comes_back_with_its_picture(kept, message):
    assert [row.message for row in kept(message).rows("t")] == [message]


@every_message
def test_a_picture_is_a_file_and_not_in_the_row(kept, files, message):
    journal = kept(message)
    assert f"{NAME[:2]}/{NAME}.png" in files()
    bodies = [body for (body,) in journal._connection.execute("SELECT body FROM rows")]
    assert "iVBORw0KGgo" not in "".join(bodies)


def test_one_picture_is_kept_once_however_often_it_was_seen(kept, files):
    kept(*WITH_PICTURES[:4])
    assert files() == [f"{NAME[:2]}/{NAME}.png"]


def test_an_empty_picture_is_not_none(kept):
    message = Captured(observation=seen(b""))
    assert next(kept(message).rows("t")).message == message


def test_a_picture_that_looks_like_a_digest_is_a_picture(kept):
    message = Captured(observation=seen(hashlib.sha256(PNG).digest()))
    journal = kept(Captured(observation=seen()), message)
    assert [row.message for row in journal.rows("t")][1] == message


def test_pictures_are_private(kept, place):
    old = os.umask(0)
    try:
        kept(WITH_PICTURES[0])
    finally:
        os.umask(old)
    folder = place.with_name(f"{place.name}.pictures")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert all(mode == (0o600 if path.is_file() else 0o700) for path, mode in modes.items())


@pytest.mark.parametrize("damage", ["lost", "cut", "changed", "a folder"])
def test_a_picture_that_is_lost_or_damaged_loses_no_message(kept, place, damage):
    journal = kept(WITH_PICTURES[0])
    file = place.with_name(f"{place.name}.pictures") / NAME[:2] / f"{NAME}.png"
    file.unlink()
    match damage:
        case "cut":
            file.write_bytes(PNG[:10])
        case "changed":
            file.write_bytes(PNG[:-1] + b"!")
        case "a folder":
            file.mkdir()
    assert next(journal.rows("t")).message == Captured(observation=seen(None))


def test_a_truncated_picture_is_written_again_when_it_is_seen_again(kept, place, files):
    journal = kept(WITH_PICTURES[0])
    (place.with_name(f"{place.name}.pictures") / files()[0]).write_bytes(b"cut")
    journal.close()
    assert [row.message for row in kept(WITH_PICTURES[0]).rows("t")] == [WITH_PICTURES[0]] * 2


def test_leftover_of_an_interrupted_write_is_overwritten(kept, place, files):
    part = place.with_name(f"{place.name}.pictures") / NAME[:2] / f"{NAME}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half")
    kept(WITH_PICTURES[0])
    assert files() == [f"{NAME[:2]}/{NAME}.png"]


def test_a_digest_is_never_a_path(opened, a_row, place, tmp_path):
    journal = opened()
    (tmp_path / "secret.png").write_bytes(b"secret")
    planted = Captured(observation=seen(b"../../secret"))
    journal._connection.execute(
        "INSERT INTO rows (at, task, run, job, kind, body) VALUES (1.0, 't', '', 0, 'captured', ?)",
        (planted.model_dump_json(),),
    )
    assert next(journal.rows("t")).message == Captured(observation=seen(None))


def test_a_picture_and_its_folders_are_synced_before_the_row_is_committed(opened, a_row, synced):
    journal = opened()
    synced.clear()
    journal._connection.set_trace_callback(lambda statement: synced.append(statement.split()[0]))
    journal.write([a_row(WITH_PICTURES[0])])
    journal.commit()
    assert synced.index("file") < synced.index("INSERT")
    assert synced[-4:] == ["folder", "folder", "folder", "COMMIT"]


def test_a_picture_is_synced_when_all_its_bytes_are_in_the_file(opened, a_row, monkeypatch):
    journal, synced = opened(), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor)))
    journal.write([a_row(WITH_PICTURES[0])])
    assert [found.st_size for found in synced if stat.S_ISREG(found.st_mode)] == [len(PNG)]


def test_durability_of_the_process_syncs_nothing(opened, a_row, synced):
    journal = opened(durability="process")
    journal.write([a_row(WITH_PICTURES[0])])
    journal.commit()
    assert synced == []


def test_disk_full_while_writing_a_picture_raises_a_journal_error(opened, a_row, monkeypatch):
    journal = opened()
    journal.write([a_row(Captured(observation=None))])

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(JournalError, match="No space left on device"):
        journal.write([a_row(WITH_PICTURES[0])])
    journal.rollback()
    assert list(journal.rows("t")) == []


def test_a_reader_sees_the_pictures_of_a_journal_in_use(kept, place):
    kept(WITH_PICTURES[0])
    with JournalReader.open(place) as reader:
        assert next(reader.rows("t")).message == WITH_PICTURES[0]


def test_prune_removes_pictures_without_a_row(kept, place, files, a_row):
    journal = kept(WITH_PICTURES[0])
    journal.write([a_row(Captured(observation=seen(b"never committed")))])
    journal.rollback()
    assert len(files()) == 2
    journal.prune(days=None, max_bytes=None)
    assert files() == [f"{NAME[:2]}/{NAME}.png"]


def test_a_message_without_a_picture_stays_the_same_object(tmp_path):
    pictures, message = Pictures(tmp_path / "journal.db"), Captured(observation=seen(None))
    assert exchanged(message, {bytes: pictures.write}) is message
    assert exchanged(message, {bytes: pictures.read}) is message
    assert list(tmp_path.iterdir()) == []


def test_a_lost_picture_of_a_result_leaves_the_others(tmp_path):
    kept = Pictures(tmp_path / "journal.db")
    result = CommandResult(call_id="1", tool="t", status=ResultStatus.SUCCESS, pictures=(b"one", b"two"))
    stored = exchanged(result, {bytes: kept.write})
    assert exchanged(stored, {bytes: kept.read}) == result
    picture_path(tmp_path / "journal.db", b"one").unlink()
    assert exchanged(stored, {bytes: kept.read}).pictures == (b"two",)
