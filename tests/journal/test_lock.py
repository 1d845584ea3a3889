"""The lock: one holder at a time, who says who it is, and who leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

import forks
from callboard.journal import JournalHolder, JournalReader
from callboard.journal._lock import JournalLock, holder_of
from callboard.messages import JournalError, JournalInUseError
from support import PATIENCE

FORKS = """
import os, sys, time
from pathlib import Path
from callboard.journal import JournalFile

file = JournalFile.open(Path(sys.argv[1]))
if not os.fork():
    print(os.getpid(), flush=True)
time.sleep(60)
"""

FORKED_AND_RELEASED = """
import os, sys
from pathlib import Path
from callboard.journal._lock import JournalLock, holder_of

journal = Path(sys.argv[1])
lock = JournalLock.acquire(journal)
child = os.fork()
if not child:
    lock.release()
    os._exit(0)
os.waitpid(child, 0)
print("intact" if lock.intact and holder_of(journal).pid == os.getpid() else "lost")
lock.release()
"""


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def lock(journal):
    taken = JournalLock.acquire(journal)
    yield taken
    taken.release()


def test_a_journal_in_use_by_another_process_is_refused_with_its_name(writer, opened):
    before = time.time()
    other = writer()
    with pytest.raises(JournalInUseError, match=f"is in use by process {other.process.pid} on ") as info:
        opened()
    assert (info.value.pid, info.value.host) == (other.process.pid, socket.gethostname())
    assert before - 1 < info.value.since < time.time() + 1


def test_refused_open_does_not_disturb_the_holder_of_the_journal(writer, opened):
    other = writer()
    with pytest.raises(JournalInUseError):
        opened()
    other.write(commit=True)
    other.end()
    assert len(list(opened().rows("t"))) == 201


def test_a_second_supervisor_of_the_same_process_is_refused_too(opened):
    opened()
    with pytest.raises(JournalInUseError, match=f"process {os.getpid()}"):
        opened()


def test_a_killed_holder_leaves_a_lock_that_is_free(writer, opened, place):
    other = writer()
    other.kill()
    assert place.with_name(f"{place.name}.lock").exists()
    assert holder_of(place) is None
    opened()
    assert holder_of(place).pid == os.getpid()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_that_was_forked_does_not_keep_the_lock_of_a_killed_holder(place, opened):
    holder = forks.Program([sys.executable, "-c", FORKS, str(place)], stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        assert holder_of(place).pid == holder.pid
        with pytest.raises(JournalInUseError, match=f"process {holder.pid}"):
            opened()
        holder.kill()
        holder.wait()
        assert holder_of(place) is None
        opened()
    finally:
        holder.kill()
        holder.wait()
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_forked_child_does_not_release_the_lock_of_its_parent(journal):
    command = [sys.executable, "-c", FORKED_AND_RELEASED, str(journal)]
    ran = forks.run(command, timeout=PATIENCE)
    assert ran.stdout == "intact\n", ran.stderr


def test_a_lock_that_was_given_back_leaves_no_file(journal, lock):
    lock.release()
    assert list(journal.parent.iterdir()) == []


def test_a_lock_that_was_given_back_has_no_file_open(journal, lock, held_open):
    assert held_open(journal.parent) == ["journal.db.lock"]
    lock.release()
    assert held_open(journal.parent) == []


def test_asking_for_the_holder_leaves_no_file_open(journal, lock, held_open):
    before = held_open(journal.parent)
    assert holder_of(journal).pid == os.getpid()
    assert held_open(journal.parent) == before


def test_giving_a_lock_back_twice_gives_it_back_once(journal, lock):
    lock.release()
    again = JournalLock.acquire(journal)
    lock.release()
    assert again.intact
    again.release()


def test_the_holder_is_named_while_it_holds_and_no_longer(journal, lock):
    held = holder_of(journal)
    assert (held.pid, held.host) == (os.getpid(), socket.gethostname())
    lock.release()
    assert holder_of(journal) is None


def test_asking_for_the_holder_creates_nothing(journal):
    assert holder_of(journal) is None
    assert list(journal.parent.iterdir()) == []


@pytest.mark.parametrize("text", [b"", b"{", b'{"pid": "1"}', b'{"pid": 1, "host": "h", "since": 1e300}', b"\xff"])
def test_lock_with_an_unreadable_holder_counts_as_held(journal, lock, text):
    journal.with_name("journal.db.lock").write_bytes(text)
    assert holder_of(journal) == JournalHolder(pid=0, host="", since=0.0)
    with pytest.raises(JournalInUseError, match="is in use by another process"):
        JournalLock.acquire(journal)


def test_acquire_replaces_the_lock_text_of_a_dead_holder(journal):
    journal.with_name("journal.db.lock").write_text('{"pid": 1, "host": "' + "h" * 500 + '", "since": 1.0}')
    lock = JournalLock.acquire(journal)
    assert holder_of(journal).pid == os.getpid()
    lock.release()


def test_a_lock_whose_file_was_deleted_is_no_longer_intact(journal, lock):
    assert lock.intact
    journal.with_name("journal.db.lock").unlink()
    assert not lock.intact


def test_lock_file_of_another_holder_is_not_removed(journal, lock):
    journal.with_name("journal.db.lock").unlink()
    other = JournalLock.acquire(journal)
    lock.release()
    assert other.intact
    other.release()


def test_a_link_in_the_place_of_the_lock_is_not_followed(journal, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    journal.with_name("journal.db.lock").symlink_to(victim)
    with pytest.raises(JournalError, match="can't be locked"):
        JournalLock.acquire(journal)
    assert victim.read_text() == "precious"


def test_the_lock_can_not_be_made_where_there_is_no_folder(tmp_path):
    with pytest.raises(JournalError, match="can't be locked: No such file or directory"):
        JournalLock.acquire(tmp_path / "nowhere" / "journal.db")


def test_a_reader_names_the_holder_in_another_process(writer, place):
    other = writer()
    with JournalReader.open(place) as reader:
        assert reader.holder().pid == other.process.pid
        other.end()
        assert reader.holder() is None
