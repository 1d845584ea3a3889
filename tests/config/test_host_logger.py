"""Embedded means silent: events go to the logger `callboard`, and are rendered only if the host has a handler."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

import forks
from callboard.config import EventLog, Settings
from callboard.config._log_file import LogFile
from callboard.messages import Event, EventName
from support import PATIENCE

PASSWORD = "xyzzy-4711"


def event(name=EventName.TASK_ENDED, seq=1, **fields):
    return Event(seq=seq, at=1_700_000_000.25, name=name, **fields)


class Kept(logging.Handler):
    """Keeps records, and on which thread they came."""

    def __init__(self):
        super().__init__()
        self.records = []
        self.threads = set()

    def emit(self, record):
        self.records.append(record)
        self.threads.add(threading.current_thread().name)


@pytest.fixture
def listening():
    """Listen to the logger `callboard`, at all levels."""
    handler, logger = Kept(), logging.getLogger("callboard")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def logged(*events, **sections):
    log = EventLog(Settings(**sections))
    for each in events:
        log.write(each)
    assert log.close()


def test_a_handler_gets_a_record_of_each_event_on_the_logs_thread(listening):
    logged(event(task_id="t", agent="host/t", data={"outcome": "finished", "causes": ["none"]}))
    (record,) = listening.records
    assert (record.name, record.levelname, record.created) == ("callboard", "INFO", 1_700_000_000.25)
    assert record.getMessage() == 'task.ended seq=1 task=t agent=host/t outcome=finished causes=["none"]'
    assert record.callboard["outcome"] == "finished"
    assert record.callboard["schema"] == 1
    assert listening.threads == {"callboard-log-host"}


def test_host_logger_gets_all_levels_and_filters_by_its_own(listening):
    names = [EventName.STEP_STARTED, EventName.TASK_ENDED, EventName.COMMAND_LATE, EventName.STEP_FAILED]
    logged(*map(event, names), log={"level": "error"})  # of the file and the stream
    assert [record.levelname for record in listening.records] == ["DEBUG", "INFO", "WARNING", "ERROR"]
    logging.getLogger("callboard").setLevel(logging.ERROR)
    listening.records.clear()
    logged(*map(event, names))
    assert [record.levelname for record in listening.records] == ["ERROR"]


def test_handler_added_later_gets_only_later_events(monkeypatch):
    log, handler, logger = EventLog(Settings()), Kept(), logging.getLogger("callboard")
    monkeypatch.setattr(logger, "propagate", False)
    log.write(event(EventName.COMMAND_LATE, seq=1))
    logger.addHandler(handler)
    log.write(event(EventName.COMMAND_LATE, seq=2))
    log.close()
    logger.removeHandler(handler)
    assert [record.callboard["seq"] for record in handler.records] == [2]


def test_handler_that_raises_does_not_stop_the_log(listening):
    listening.emit = lambda _record: 1 / 0
    logged(event(), event(seq=2))


def test_secrets_of_the_settings_reach_no_handler(listening):
    servers = {"mail": {"command": "x", "env": {"TOKEN": PASSWORD}}}
    logged(event(data={"error": f"{PASSWORD} is wrong"}), mcpServers=servers)
    (record,) = listening.records
    assert record.callboard["error"] == "********** is wrong"
    assert PASSWORD not in record.getMessage()


def test_the_labels_of_a_task_stand_in_each_of_its_records(listening):
    labels = {"order": "4711"}
    submitted = event(EventName.TASK_SUBMITTED, task_id="t", data={"labels": labels})
    again = event(EventName.TASK_RECOVERED, task_id="r", data={"runs": 1, "labels": labels})
    rest = [event(EventName.TASK_PAUSED, task_id=task_id) for task_id in ("t", "r", "other")]
    logged(submitted, again, *rest, event(task_id="t"), event(EventName.TASK_PAUSED, task_id="t"))
    told = [(record.callboard["task"], record.callboard.get("labels")) for record in listening.records[2:]]
    assert told == [("t", labels), ("r", labels), ("other", None), ("t", labels), ("t", None)]


@pytest.mark.parametrize("set_up", ["", "import logging; logging.basicConfig(level=logging.CRITICAL)"])
def test_program_without_log_setup_prints_nothing_and_has_no_log_thread(set_up):
    code = f"""
{set_up}
import threading
from callboard import Supervisor, Task
from callboard.testing import MemoryServer

surface = MemoryServer(MemoryServer.window())
policy = [{{"verdict": "deny", "tool": "wrte"}}]  # a warning
with Supervisor.start(models={{"app": lambda request: 1 / 0}}, servers=[surface]) as supervisor:
    supervisor.submit(Task(request="x", target="memo:one")).result(30)
    assert not any("log" in thread.name for thread in threading.enumerate()), threading.enumerate()
"""
    ran = forks.run([sys.executable, "-c", code], timeout=PATIENCE, cwd="/")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


# The file


def lines(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_file_that_is_full_gets_a_number_and_a_new_one_is_begun(tmp_path):
    path = tmp_path / "events.log"
    sections = {"log": {"file": path, "max_bytes": 1000, "backups": 2}}
    logged(*(event(seq=seq, data={"text": "x" * 300}) for seq in range(1, 10)), **sections)
    files = [path, tmp_path / "events.log.1", tmp_path / "events.log.2"]
    assert sorted(tmp_path.iterdir()) == files
    assert [lines(file) for file in files] == [1, 2, 2]
    assert all(file.stat().st_size <= 1000 and file.stat().st_mode & 0o777 == 0o600 for file in files)


@pytest.mark.parametrize("backups", [0, 3])
def test_rotation_keeps_as_many_backups_as_configured(tmp_path, backups):
    sections = {"log": {"file": tmp_path / "events.log", "max_bytes": 1000, "backups": backups}}
    logged(*(event(seq=seq, data={"text": "x" * 900}) for seq in range(1, 7)), **sections)
    assert len(list(tmp_path.iterdir())) == 1 + backups


def test_line_longer_than_max_bytes_is_written(tmp_path):
    path = tmp_path / "events.log"
    logged(event(data={"text": "x" * 5000}), event(seq=2), log={"file": path, "max_bytes": 1000})
    assert (lines(path), lines(tmp_path / "events.log.1")) == (1, 1)


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_log_file_is_created_again_after_it_was_moved_or_deleted(tmp_path, how):
    path = tmp_path / "events.log"
    log = EventLog(Settings(log={"file": path}))
    log.write(event())
    wait_for(lambda: lines(path) == 1)
    path.rename(tmp_path / "old") if how == "moved" else path.unlink()
    log.write(event(seq=2))  # the thread may have looked before it was taken away
    log.write(event(seq=3))
    wait_for(path.exists)
    log.write(event(seq=4))
    assert log.close()
    assert '"seq":4' in path.read_text()


def wait_for(condition):
    reached = threading.Event()
    for _ in range(2000):
        if condition():
            return
        reached.wait(0.005)
    raise AssertionError


def test_log_file_is_written_again_once_its_folder_can_be_made(tmp_path):
    path = tmp_path / "logs" / "events.log"
    file = LogFile(path, None, 0)
    file.write([b"1"])
    file.flush()
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()  # nothing can be made there now
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        file.flush()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        file.write([b"2"])
    path.parent.unlink()
    file.write([b"3"])
    file.close()
    assert path.read_text() == "3\n"


def test_a_handler_may_stop_the_log(listening):
    log = EventLog(Settings())
    listening.emit = lambda _record: log.close(0)
    log.write(event())
    log.close()
    assert log.close()
