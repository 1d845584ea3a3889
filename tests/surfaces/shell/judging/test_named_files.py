"""The files and folders that a command names."""

from __future__ import annotations

import pytest

from callboard.surfaces.shell.judging import LocalDisk, named_files
from callboard.surfaces.shell.judging._environment_variables import PATH

pytest.importorskip("tree_sitter_bash")


@pytest.fixture
def named(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("a.txt", "Makefile", "data/b.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "gone").symlink_to("nowhere")
    environment = {"PATH": PATH, "LANG": "C.UTF-8"}
    return lambda command: named_files(command, cwd=tmp_path, disk=LocalDisk(tmp_path), environment=environment)


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("sort a.txt > out.txt", {"a.txt": "a file", "out.txt": "missing"}),
        ("mkdir reports", {"reports": "missing"}),
        ("grep hello a.txt", {"a.txt": "a file"}),
        ("[ -f b.txt ] && cat a.txt", {"b.txt": "missing", "a.txt": "a file"}),
        ("cat data/*.csv", {}),
        ("cat data/b.csv | wc -l", {"data/b.csv": "a file"}),
        ("ls data", {"data": "a folder"}),
        ("cat gone", {"gone": "neither a file nor a folder"}),
        ("echo hello", {}),
        ("cd data && cat b.csv", {"data": "a folder", "b.csv": "a file"}),
        ("python3 x.py a.txt --to new.csv hello", {"x.py": "missing", "a.txt": "a file", "new.csv": "missing"}),
        ("make -f Makefile", {"Makefile": "a file"}),
        ("./run.sh https://x.example/a.html", {"./run.sh": "missing"}),
        ("cat $(ls) a.txt", {"a.txt": "a file"}),
    ],
)
def test_command_names_its_files(named, command, kinds):
    assert named(command) == kinds


def test_number_of_names_is_bounded(named):
    assert len(named("cat " + " ".join(f"{number}.txt" for number in range(100)))) == 50
