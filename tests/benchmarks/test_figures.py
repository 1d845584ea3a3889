"""Contenders of the start, of large documents and of instructions: their answers and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.figures import documents, instructions, start
from benchmarks.large_documents import FILES, ROWS, write_workbook
from benchmarks.parts import QUICK, Sizes
from benchmarks.parts import documents as document_questions

SMALL = "small.xlsx"
MODIFIED = "modify the file"


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Processes that run rows without the example before them."""
    made = start.Processes(tmp_path)
    monkeypatch.setattr(made, "_first_action", lambda: {"seconds": 1.0})
    return made


def test_start_of_the_package_is_measured_with_its_modules(processes):
    answer = processes.measure({"row": "callboard"})
    assert answer["seconds"] > 0
    assert 5 < answer["megabytes"] < 100
    assert 20 < answer["modules"] < 500


def test_command_that_fails_is_an_error(processes, monkeypatch):
    monkeypatch.setitem(start.COMMANDS, "docs", ("docs", "no such page"))
    with pytest.raises(RuntimeError, match=r"`callboard docs` ended with status 2"):
        processes.measure({"row": "docs"})


def test_first_action_waits_for_the_end_of_a_command(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "COMMAND", 'print(\'{"event": "command.ended"}\')')
    assert start.Processes(tmp_path).measure({"row": start.FIRST_ACTION})["seconds"] > 0


def test_run_without_an_action_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "COMMAND", "print('nothing')")
    with pytest.raises(RuntimeError, match="ended without an action"):
        start.Processes(tmp_path).measure({"row": start.FIRST_ACTION})


def test_rows_of_documents_are_those_of_their_command():
    rows = [question.row for question in document_questions(Sizes())]
    assert rows[: len(ROWS)] == list(ROWS)
    assert set(rows) <= {*ROWS, *documents.LIBRARIES}


def test_quick_rows_of_documents_need_few_files():
    (question,) = document_questions(QUICK)
    assert question.row in ROWS
    assert set(question.parameters["files"]) < set(FILES)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Documents of one small workbook."""
    monkeypatch.setitem(FILES, SMALL, lambda path: write_workbook(path, 3, lambda row: iter((f"<v>{row}</v>",))))
    folder = tmp_path / "originals"
    folder.mkdir()
    return documents.Files(folder)


def test_each_row_of_documents_gets_files_that_no_other_has_changed(files, monkeypatch):
    sizes = []

    def change(_row, folder):
        (path,) = Path(folder).iterdir()
        sizes.append(path.stat().st_size)
        path.write_bytes(b"")
        return {}

    monkeypatch.setattr(documents, "call", change)
    for _ in range(2):
        files.measure({"row": MODIFIED, "files": [SMALL]})
    assert sizes[0] == sizes[1] > 0


def test_other_libraries_are_measured_on_the_same_files(files, monkeypatch):
    program = f"openpyxl.load_workbook({SMALL!r}, read_only=True)"
    monkeypatch.setitem(documents.LIBRARIES, "reads", ("openpyxl", program))
    answer = files.measure({"row": "reads", "files": [SMALL]})
    assert answer["seconds"] > 0
    assert answer["megabytes"] > 10


def test_library_that_fails_gives_its_error(files, monkeypatch):
    monkeypatch.setitem(documents.LIBRARIES, "fails", ("openpyxl", "openpyxl.load_workbook('missing.xlsx')"))
    with pytest.raises(RuntimeError, match=r"missing\.xlsx"):
        files.measure({"row": "fails", "files": [SMALL]})


def test_call_that_fails_gives_its_error(tmp_path):
    with pytest.raises(RuntimeError, match="no such row"):
        documents.call("no such row", tmp_path)


def test_instructions_without_valgrind_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="valgrind is not installed"):
        instructions.measure({"row": "J"})


def test_instructions_are_those_of_one_task(monkeypatch):
    monkeypatch.setattr(instructions, "VALGRIND", ("python3",))
    counts = {instructions.FEW: 1_000_000, instructions.MANY: 5_000_000}
    monkeypatch.setattr(instructions, "counted", lambda _row, batches: counts[batches])
    assert instructions.measure({"row": "process"}) == {"instructions": 20_000}
    assert instructions.measure({"row": "alone"}) == {"instructions": 40_000}
