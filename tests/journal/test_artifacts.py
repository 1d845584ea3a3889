"""The files that tools leave: a folder for each task beside the journal, or one that ends with the process."""

from __future__ import annotations

import pytest

from callboard.journal import Artifacts, _artifacts
from callboard.journal._artifacts import artifacts_of, folder_of, sweep
from callboard.messages import JournalError


@pytest.fixture(params=["full", "process"])
def artifacts(request, tmp_path):
    return Artifacts(tmp_path / "journal.db", durable=request.param == "full")


@pytest.mark.parametrize("call", ["t~1.1.0", "../../etc/passwd", "", "ä/\\\0\n", "x" * 1_000, "\udc80"])
@pytest.mark.parametrize("task", ["t", "../t", "a/b", "x" * 1_000, "\udc80"])
def test_whatever_names_a_task_and_a_call_the_file_stays_in_the_folder(artifacts, tmp_path, task, call):
    path = artifacts.keep(task, call, b"x", ".txt")
    assert path.parent == artifacts_of(tmp_path / "journal.db") / folder_of(task)
    assert path.read_bytes() == b"x"


def test_a_call_may_keep_several_and_none_is_written_over(artifacts):
    paths = [artifacts.keep("t", "t~1.1.0", str(number).encode(), ".txt") for number in range(3)]
    assert [path.read_bytes() for path in paths] == [b"0", b"1", b"2"]


def test_artifact_that_can_t_be_written_raises_a_journal_error(artifacts, tmp_path):
    artifacts_of(tmp_path / "journal.db").write_text("a file where the folder should be")
    with pytest.raises(JournalError, match="can't be written"):
        artifacts.keep("t", "c", b"x", "")


def test_a_sweep_keeps_what_belongs_to_tasks_that_are_kept(artifacts, tmp_path):
    kept, dropped = artifacts.keep("kept", "c", b"x", ""), artifacts.keep("dropped", "c", b"x", "")
    sweep(tmp_path / "journal.db", ["kept"])
    assert (kept.is_file(), dropped.parent.exists()) == (True, False)


def test_a_sweep_of_a_journal_without_artifacts_does_nothing(tmp_path):
    sweep(tmp_path / "journal.db", [])
    assert [*tmp_path.iterdir()] == []


def test_without_a_journal_they_end_with_the_process(tmp_path):
    artifacts = Artifacts()
    one, other = artifacts.keep("one", "c", b"x", ""), artifacts.keep("other", "c", b"x", "")
    artifacts.forget(["one"])
    assert (one.exists(), other.exists()) == (False, True)
    artifacts.close()
    assert not other.parent.parent.exists()


def test_oversized_artifact_is_refused_before_anything_is_written(artifacts, tmp_path, monkeypatch):
    monkeypatch.setattr(_artifacts, "LARGEST", 3)
    with pytest.raises(ValueError, match="an artifact has at most 3 bytes, this one has 4"):
        artifacts.keep("t", "c", b"1234", "")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("name", "stored"),
    [("report.csv", "report.csv"), ("../../etc/passwd", "-..-etc-passwd"), ("", "c-1.txt"), ("..", "file")],
)
def test_a_named_artifact_keeps_its_name_in_a_folder_of_its_own(artifacts, tmp_path, name, stored):
    paths = [artifacts.keep("t", "c", str(number).encode(), ".txt", name) for number in range(2)]
    assert [path.read_bytes() for path in paths] == [b"0", b"1"]
    assert paths[0].name == stored
    assert all(path.is_relative_to(artifacts_of(tmp_path / "journal.db") / folder_of("t")) for path in paths)


def test_files_of_a_call_are_listed_in_order_without_partial_ones(artifacts):
    paths = [artifacts.keep("t", "t~1.1.0", b"x", ".txt") for _ in range(10)]
    other_path = artifacts.keep("t", "t~1.1.1", b"x", "", name="report.pdf")
    artifacts.keep("other", "t~1.1.0", b"x", ".txt")
    (paths[0].parent / "t-1.1.0-12.txt.partial").write_bytes(b"half")
    assert artifacts.of("t", "t~1.1.0") == paths
    assert artifacts.of("t", "t~1.1.1") == [other_path]
    assert artifacts.of("none", "t~1.1.0") == []
    assert artifacts.keep("t", "t~1.1.0", b"x", ".txt").name == "t-1.1.0-11.txt"
