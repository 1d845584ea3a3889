"""The log: one line for each event, whatever it holds, and nothing of the host program's own set-up is touched."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from unittest import mock

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

import forks
from callboard.config import EventLog, LogSettings, McpServer, Settings, _log_writer
from callboard.config._logging import LEVELS
from callboard.messages import Event, EventName, SettingsError
from support import HELD, PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "hush-hush-4711"
IMPORTANCE = ["debug", "info", "warning", "error"]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CONTROL = "\n\r\t\v\f\x00\x07\x08\x1b[2J\x7f\x85\x9b31m\u2028\u2029"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def open_log(out: io.StringIO, *, secret: str | None = None, **log: Any) -> Iterator[EventLog]:
    servers = {"files": McpServer(command="x", env={"TOKEN": secret})} if secret else {}
    opened = EventLog(Settings(log=LogSettings(**log), mcpServers=servers), out)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def open_log_and_pipe(pipe: Path, out: io.StringIO, **log: Any) -> Iterator[tuple[EventLog, TextIO]]:
    """Open a log whose file is a pipe, and the end of it where the lines come out."""
    os.mkfifo(pipe)
    opening = mock.patch("callboard.config._log_file.open_private", lambda path: path.open("a", encoding="utf-8"))
    with ThreadPoolExecutor(1) as reading, opening:  # the log itself takes only regular files
        reader = reading.submit(pipe.open, encoding="utf-8")
        opened = EventLog(Settings(log=LogSettings(file=pipe, **log)), out)
        with reader.result(PATIENCE) as lines:
            yield opened, lines
            opened.close(timeout=0)


def written(*events: Event, secret: str | None = None, **log: Any) -> list[dict[str, Any]]:
    """Write events as JSON to a stream, and read its lines."""
    stream = io.StringIO()
    with open_log(stream, secret=secret, **{"level": "debug", "stream": "json", **log}) as opened:
        for event in events:
            opened.write(event)
    return [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]


def event(name: EventName = EventName.STEP_ENDED, **fields: Any) -> Event:
    return Event(**{"seq": 1, "at": 0.0, "name": name, **fields})


def test_line_holds_every_field_of_the_event():
    told = written(
        event(
            EventName.PHASE_ENDED,
            seq=12,
            at=1_700_000_000.25,
            task_id="night-run",
            run_id="night-run~2",
            agent="app/word/report.docx",
            state="CONTINUE",
            step=3,
            phase="llm_interaction",
            duration=1.25,
            data={"error": "the model is down"},
        )
    )
    assert told == [
        {
            "event": "phase.ended",
            "level": "debug",
            "timestamp": "2023-11-14T22:13:20.250+00:00",
            "schema": 1,
            "seq": 12,
            "task": "night-run",
            "subtask": "night-run~2",
            "agent": "app/word/report.docx",
            "state": "CONTINUE",
            "step": 3,
            "phase": "llm_interaction",
            "duration": 1.25,
            "error": "the model is down",
        }
    ]


def test_line_omits_fields_that_do_not_apply():
    (told,) = written(event(EventName.SUPERVISOR_STARTED))
    assert told.keys() == {"event", "level", "timestamp", "schema", "seq"}


def test_line_keeps_zero_values():
    (told,) = written(event(duration=0.0, data={"count": 0, "error": ""}))
    assert (told["duration"], told["count"], told["error"]) == (0.0, 0, "")


@pytest.mark.parametrize("run_id", ["t~0", "t/0"])
def test_line_of_a_host_agent_has_no_subtask(run_id):
    (told,) = written(event(task_id="t", run_id=run_id))
    assert "subtask" not in told


@pytest.mark.parametrize("key", ["event", "level", "timestamp", "seq", "task", "subtask", "agent", "state", "step"])
def test_data_never_hides_the_fields_of_the_line(key):
    plain = written(event(task_id="t", run_id="t~1", agent="app/a/b", state="CONTINUE", step=1))[0]
    told = written(event(task_id="t", run_id="t~1", agent="app/a/b", state="CONTINUE", step=1, data={key: "mine"}))[0]
    assert told == {**plain, f"data_{key}": "mine"}


@pytest.mark.parametrize("name", EventName)
def test_every_event_has_its_level(name):
    assert written(event(name))[0]["level"] == LEVELS.get(name, "info")


def test_only_events_that_a_person_must_act_on_are_logged_as_errors():
    assert {name.value for name, level in LEVELS.items() if level == "error"} == {
        "agent.crashed",
        "journal.failed",
        "run.stalled",
        "state.refused",
        "step.failed",
    }


def test_warnings_are_exactly_the_listed_events():
    assert {name.value for name, level in LEVELS.items() if level == "warning"} == {
        "blackboard.rebuilt",
        "check.failed",
        "clock.behind",
        "command.in_doubt",
        "command.late",
        "events.missed",
        "loop.noticed",
        "model.failed",
        "model.repaired",
        "routine.missed",
        "phase.retried",
        "policy.unmatched",
        "provider.unused",
        "run.failed",
        "secret.refused",
        "machine.away",
        "server.left_out",
        "target.abandoned",
        "task.cancelling",
        "thread.blocked",
        "tool.unmatched",
    }


@pytest.mark.parametrize("name", EventName)
@pytest.mark.parametrize("level", IMPORTANCE)
def test_events_below_the_level_are_not_written(name, level):
    important = IMPORTANCE.index(LEVELS.get(name, "info")) >= IMPORTANCE.index(level)
    assert len(written(event(name), level=level)) == important


@given(st.dictionaries(st.text(max_size=8).filter(lambda key: key != "phases"), JSON_VALUES, max_size=4))
def test_an_event_is_one_line_and_its_data_come_back(data):
    """The key `phases` is left out: it holds further events, with lines of their own."""
    (told,) = written(event(data=data))
    ours = {"event", "level", "timestamp", "schema", "seq"}
    hidden = {"task", "labels", "subtask", "agent", "state", "step", "phase", "duration"}
    assert {key: value for key, value in told.items() if key not in ours} == {
        f"data_{key}" if key in ours | hidden else key: value for key, value in data.items()
    }


@pytest.mark.parametrize("sign", CONTROL, ids=ascii)
@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_a_control_character_in_a_value_never_breaks_a_line(sign, log_format):
    stream = io.StringIO()
    with open_log(stream, stream=log_format) as opened:
        opened.write(event(task_id="t", data={"thought": f"a{sign}b", "actions": [{"tool": f"c{sign}d"}]}))
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("sign", ["\x1b", "\x9b", "\x07", "\x08", "\r", "\v", "\f", "\x00", "\x7f"], ids=ascii)
def test_model_output_never_controls_the_terminal(sign):
    stream = Terminal()
    with open_log(stream, stream="pretty") as opened:
        opened.write(event(data={"thought": f"a{sign}[2Jb"}))
    assert f"{sign}[2J" not in stream.getvalue()


def test_terminal_gets_readable_text_and_colours():
    stream = Terminal()
    with open_log(stream, stream="auto") as opened:
        opened.write(event(task_id="night-run", data={"status": "FINISH"}))
    words = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "step.ended" in words
    assert "task=night-run" in words
    assert words != stream.getvalue()


def test_another_stream_than_a_terminal_gets_json():
    stream = io.StringIO()
    with open_log(stream, stream="auto") as opened:
        opened.write(event(EventName.TASK_ENDED))
    assert json.loads(stream.getvalue())["event"] == "task.ended"


def test_pretty_can_be_had_without_a_terminal_and_then_without_colours():
    stream = io.StringIO()
    with open_log(stream, stream="pretty") as opened:
        opened.write(event(EventName.TASK_ENDED))
    assert "task.ended" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_lines_for_people_leave_out_empty_values(caplog):
    data = {"action": {}, "picture": "", "artifacts": [], "cost": None, "attempt": 0, "whole": False, "reason": "no"}
    streams = {name: io.StringIO() for name in ("pretty", "json")}
    for name, stream in streams.items():
        with open_log(stream, stream=name) as opened, caplog.at_level("DEBUG", "callboard"):
            opened.write(event(EventName.RUN_FAILED, data=data))
    for text in (streams["pretty"].getvalue(), caplog.text):
        assert not re.search(r"action=|picture=|artifacts=|cost=", text)
        assert re.search(r"attempt=0\b", text)
        assert re.search(r"whole=(False|false)\b", text)
        assert "reason=no" in text
    assert json.loads(streams["json"].getvalue()).items() >= data.items()


def test_the_stream_can_be_switched_off():
    stream = Terminal()
    with open_log(stream, stream="off") as opened:
        opened.write(event(EventName.TASK_ENDED))
    assert stream.getvalue() == ""


def test_the_file_gets_json_lines_whatever_the_terminal_gets(tmp_path):
    stream = Terminal()
    with open_log(stream, file=tmp_path / "logs" / "events.log", stream="pretty") as opened:
        opened.write(event(EventName.TASK_SUBMITTED, data={"request": "Zähle die Zeilen"}))
        opened.write(event(EventName.TASK_ENDED))
    lines = (tmp_path / "logs" / "events.log").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["task.submitted", "task.ended"]
    assert "Zähle die Zeilen" in lines[0]
    assert stream.getvalue()


@given(data=st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3))
def test_a_line_is_the_same_wherever_it_goes_and_as_structlog_renders_it(data):
    stream, said = io.StringIO(), event(data=data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.log"
        with open_log(stream, file=path, stream="json") as opened:
            opened.write(said)
        assert path.read_bytes() == stream.getvalue().encode()
    render = structlog.processors.JSONRenderer(serializer=lambda fields, **_: msgspec.json.encode(fields).decode())
    assert stream.getvalue() == f"{render(None, '', json.loads(stream.getvalue()))}\n"


def test_a_line_is_in_the_file_before_the_log_is_closed(tmp_path):
    with open_log_and_pipe(tmp_path / "events.log", io.StringIO(), stream="off") as (opened, lines):
        opened.write(event(EventName.TASK_ENDED))
        assert json.loads(lines.readline())["event"] == "task.ended"


def test_a_file_that_is_there_is_added_to(tmp_path):
    for _ in range(2):
        with open_log(io.StringIO(), file=tmp_path / "events.log", stream="off") as opened:
            opened.write(event(EventName.TASK_ENDED))
    assert (tmp_path / "events.log").read_text(encoding="utf-8").count("\n") == 2


def test_a_relative_file_starts_from_the_folder_of_the_settings(tmp_path):
    settings = Settings.load(base=tmp_path, log=LogSettings(file="logs/events.log", stream="off"))
    EventLog(settings).close()
    assert (tmp_path / "logs" / "events.log").exists()


def test_a_file_that_can_not_be_opened_is_a_matter_of_the_settings(tmp_path):
    with pytest.raises(SettingsError, match=r"log\.file: .* can't be opened"):
        EventLog(Settings(log=LogSettings(file=tmp_path, stream="off")))


def test_unwritable_line_is_counted_and_the_log_continues(tmp_path):
    stream = io.StringIO()
    with open_log(stream, file=tmp_path / "events.log", stream="json") as opened:
        stream.close()
        opened.write(event(EventName.TASK_ENDED))
        opened.write(event(EventName.TASK_ENDED, data={"request": "half of a pair: \ud800"}))
        assert not opened.close()
        assert opened.lost == 3
    assert (tmp_path / "events.log").read_text(encoding="utf-8").count("\n") == 1


class Stuck(io.StringIO):
    """A stream that is not drained, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.let_go.wait(HELD)
        return super().write(text)


@pytest.fixture
def stuck():
    """A stuck stream; let go, and its thread waited for, at the end."""
    stream = Stuck()
    yield stream
    stream.let_go.set()
    for thread in threads_of_logs():
        thread.join(PATIENCE)


def threads_of_logs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("callboard-log")]


def seqs(text: str) -> list[int]:
    return [json.loads(line)["seq"] for line in text.splitlines()]


def test_a_blocked_stream_delays_neither_the_writer_nor_the_file(stuck, tmp_path):
    with open_log_and_pipe(tmp_path / "events.log", stuck, stream="json") as (log, lines):
        for seq in range(1, 6):
            log.write(event(seq=seq))
        assert [json.loads(lines.readline())["seq"] for _ in range(5)] == [1, 2, 3, 4, 5]
        assert stuck.reached.wait(PATIENCE)
        assert not log.close(timeout=0)
    assert log.lost == 4
    stuck.let_go.set()
    for thread in threads_of_logs():
        thread.join(PATIENCE)
    assert seqs(stuck.getvalue()) == [1]


def test_undrained_pipe_does_not_keep_a_program_from_ending():
    code = """
from callboard.config import EventLog, Settings
from callboard.messages import Event, EventName
log = EventLog(Settings(log={"stream": "json"}))
for seq in range(1, 2000):
    log.write(Event(seq=seq, at=0.0, name=EventName.TASK_ENDED, data={"text": "x" * 1000}))
print(log.close(timeout=0.1), log.lost > 0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.wait(PATIENCE) == 0
        assert program.stdout is not None
        assert program.stdout.read().split() == [b"False", b"True"]


def test_closing_writes_queued_events_in_order(stuck):
    log = EventLog(Settings(log=LogSettings(stream="json")), stuck)
    for seq in range(1, 101):
        log.write(event(seq=seq))
    with ThreadPoolExecutor(1) as closing:
        closed = closing.submit(log.close, 30)
        stuck.let_go.set()
        assert closed.result(PATIENCE)
    assert seqs(stuck.getvalue()) == list(range(1, 101))


def test_past_the_bound_new_lines_are_lost_and_counted(stuck, monkeypatch):
    monkeypatch.setattr(_log_writer, "WAITING", 3)
    log = EventLog(Settings(log=LogSettings(stream="json")), stuck)
    log.write(event(seq=1))
    assert stuck.reached.wait(PATIENCE)
    for seq in range(2, 8):
        log.write(event(seq=seq))
    assert log.lost == 3
    stuck.let_go.set()
    assert not log.close()
    assert seqs(stuck.getvalue()) == [1, 2, 3, 4]


def test_full_disk_counts_the_lost_event_and_raises_nothing(tmp_path, monkeypatch):
    full = Path("/dev/full").open  # the log itself takes only regular files
    monkeypatch.setattr("callboard.config._log_file.open_private", lambda _: full("a", encoding="utf-8"))
    log = EventLog(Settings(log=LogSettings(file=tmp_path / "events.log", stream="off")))
    log.write(event())
    assert not log.close()
    assert log.lost == 1
    assert not log.close()
    assert threads_of_logs() == []


def test_closing_a_fully_written_log_succeeds_each_time(tmp_path):
    log = EventLog(Settings(log=LogSettings(file=tmp_path / "events.log", stream="off")))
    log.write(event())
    assert log.close()
    assert log.close()


def test_the_log_has_threads_while_it_is_open(tmp_path):
    with open_log(io.StringIO(), file=tmp_path / "events.log", stream="json"):
        assert [thread.daemon for thread in threads_of_logs()] == [True, True]
    assert threads_of_logs() == []


def test_a_log_that_goes_nowhere_has_no_thread():
    with open_log(io.StringIO(), stream="off") as opened:
        opened.write(event())
        assert threads_of_logs() == []


def test_a_file_that_can_not_be_opened_leaves_no_thread(tmp_path):
    with pytest.raises(SettingsError):
        EventLog(Settings(log=LogSettings(file=tmp_path)), io.StringIO())
    assert threads_of_logs() == []


def test_a_program_without_a_standard_error_stream_has_no_log_there(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    log = EventLog(Settings())
    log.write(event())
    assert log.close()


def test_a_closed_log_writes_nothing_and_raises_nothing(tmp_path):
    stream = io.StringIO()
    with open_log(stream, file=tmp_path / "events.log") as opened:
        opened.close()
        opened.write(event(EventName.TASK_ENDED))
    assert stream.getvalue() == (tmp_path / "events.log").read_text(encoding="utf-8") == ""


def test_lines_of_many_threads_do_not_mix():
    stream = io.StringIO()
    with open_log(stream, stream="json", level="debug") as opened, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda seq: opened.write(event(seq=seq, data={"thought": "x" * 200})), range(400)))
    assert sorted(json.loads(line)["seq"] for line in stream.getvalue().splitlines()) == list(range(400))


@pytest.mark.parametrize(
    "data",
    [
        {"error": f"401: {SECRET} is no valid token"},
        {"actions": [{"arguments": {"password": SECRET}}]},
        {"text": SECRET * 3},
        {SECRET: "as a key"},
        {"deep": [[[{"deeper": [SECRET]}]]]},
    ],
    ids=["in a sentence", "nested", "repeated", "as a key", "deep"],
)
@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_a_secret_of_the_settings_never_appears(data, log_format):
    stream = io.StringIO()
    with open_log(stream, secret=SECRET, stream=log_format) as opened:
        opened.write(event(data=data))
    assert SECRET not in stream.getvalue()
    assert "**********" in stream.getvalue()


def test_a_secret_never_appears_in_the_fields_of_an_event_either():
    (told,) = written(event(task_id=SECRET, agent=f"app/word/{SECRET}.docx"), secret=SECRET)
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"args": ["--api-key", SECRET]}, SECRET),
        ({"args": [f"--token={SECRET}"]}, SECRET),
        ({"args": ["--header", f"Authorization: Bearer {SECRET}"]}, SECRET),
        ({"args": [f"postgresql://ada:{SECRET}@db/sales"]}, SECRET),
        ({"args": ["postgresql://ada:hush%2Dhush%2D4711@db/sales"]}, SECRET),
        ({"env": {"AUTH": f"Bearer {SECRET}"}}, SECRET),
        ({"url": f"https://ada:{SECRET}@wiki.example/mcp"}, SECRET),
        ({"url": f"https://{SECRET}@wiki.example/mcp"}, SECRET),
        ({"url": f"https://wiki.example/mcp?q={SECRET}"}, SECRET),
        ({"url": "https://wiki.example/mcp?key=4711"}, "4711"),
        ({"url": "https://wiki.example/mcp?v=4711"}, "https://wiki.example/mcp?v=4711"),
    ],
)
def test_secrets_in_arguments_and_addresses_never_appear(server, said):
    servers = {"files": McpServer(**({"command": "x"} if "url" not in server else {}), **server)}
    stream = io.StringIO()
    log = EventLog(Settings(log=LogSettings(stream="json"), mcpServers=servers), stream)
    log.write(event(data={"error": f"401: {said} is refused"}))
    assert log.close()
    told = json.loads(stream.getvalue())["error"]
    assert "4711" not in told
    assert "**********" in told


def test_a_short_value_of_a_query_does_not_blot_out_ordinary_text():
    stream = io.StringIO()
    servers = {"wiki": McpServer(url="https://ada:hush-hush@wiki.example/mcp?format=json")}
    log = EventLog(Settings(log=LogSettings(stream="json"), mcpServers=servers), stream)
    log.write(event(data={"request": "write json for ada"}))
    assert log.close()
    assert json.loads(stream.getvalue())["request"] == "write json for ada"


def test_a_secret_that_holds_another_one_is_hidden_whole():
    servers = {"files": McpServer(command="x", env={"A": "hush", "B": "hush-4711"})}
    stream = io.StringIO()
    log = EventLog(Settings(log=LogSettings(stream="json"), mcpServers=servers), stream)
    log.write(event(data={"error": "hush-4711"}))
    log.close()
    assert json.loads(stream.getvalue())["error"] == "**********"


@pytest.fixture
def host_program():
    """A host program with a log set-up of its own; put back afterwards."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(logging.Formatter("host %(levelname)s %(message)s"))
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    root.handlers[:], root.level = [handler], logging.WARNING
    structlog.configure(
        processors=[structlog.processors.KeyValueRenderer(sort_keys=True)],
        logger_factory=structlog.PrintLoggerFactory(lines),
        cache_logger_on_first_use=False,
    )
    yield lines
    structlog.reset_defaults()
    root.handlers[:], root.level = before


def configuration() -> tuple[Any, ...]:
    root = logging.getLogger()
    named = sorted(name for name, logger in root.manager.loggerDict.items() if getattr(logger, "handlers", None))
    return (root.handlers[:], root.level, named, logging.getLevelName(25), structlog.get_config())


def test_the_host_programs_logging_is_the_same_before_and_after(host_program):
    before = configuration()
    with open_log(io.StringIO(), stream="pretty") as opened:
        opened.write(event(EventName.TASK_ENDED))
        assert configuration() == before
    assert configuration() == before
    assert host_program.getvalue() == ""


def test_the_host_programs_own_lines_look_as_before(host_program):
    ours = io.StringIO()
    with open_log(ours, stream="json") as opened:
        opened.write(event(EventName.TASK_ENDED))
        logging.getLogger("host").warning("disk almost full")
        structlog.get_logger().info("saved", rows=3)
    assert host_program.getvalue() == "host WARNING disk almost full\nevent='saved' rows=3\n"
    assert ours.getvalue().count("\n") == 1


def test_our_lines_look_the_same_however_structlog_is_configured_later(host_program):
    with open_log(io.StringIO(), stream="json") as opened:
        structlog.configure(processors=[structlog.processors.LogfmtRenderer()])
        opened.write(event(EventName.TASK_ENDED))
    (told,) = written(event(EventName.TASK_ENDED))
    assert told["event"] == "task.ended"
    assert host_program.getvalue() == ""


def test_the_standard_output_belongs_to_the_host_program():
    code = """
from callboard.config import EventLog, Settings
from callboard.messages import Event, EventName
log = EventLog(Settings(log={"stream": "json"}))
log.write(Event(seq=1, at=0.0, name=EventName.TASK_ENDED))
log.close()
"""
    ran = forks.run([sys.executable, "-c", code], timeout=PATIENCE, cwd="/")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert json.loads(ran.stderr)["event"] == "task.ended"
