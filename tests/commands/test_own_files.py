"""Files that tasks created themselves, by the notes of their writes."""

from __future__ import annotations

import os

import pytest

from callboard.actors.commands import OwnFiles
from callboard.messages import Foreseen

PATH = f"{os.sep}w{os.sep}a.txt"


@pytest.fixture
def own():
    """Return notes of one task, and the digest that the file is expected to have."""
    own_files = OwnFiles()

    def digest(*writes, call="9", path=PATH):
        for number, (before, after) in enumerate(writes):
            own_files.foresee("t", Foreseen(call_id=str(number), path=path, before=before, after=after))
        return own_files.digest("t", PATH, call)

    digest.files = own_files
    return digest


@pytest.mark.parametrize(
    ("writes", "digest"),
    [
        ([("", "1")], "1"),
        ([("", "1"), ("1", "2")], "2"),
        ([("", "1"), ("", "1")], "1"),  # a call that a crash interrupted is repeated
        ([("0", "1")], ""),
        ([("", "1"), ("0", "2")], ""),
        ([("", "1"), ("1", "")], ""),
        ([("", "1"), ("1", ""), ("", "2")], "2"),
        ([("", "1"), ("1", ""), ("1", "2")], ""),  # another file of the same bytes took its place
        ([("", "1"), ("1", ""), ("1", "")], ""),
        ([("", "1"), ("0", "")], ""),
    ],
)
def test_file_is_own_from_its_creation_until_others_write(own, writes, digest):
    assert own(*writes) == digest


def test_repeated_deletion_finds_its_file_own(own):
    assert own(("", "1"), ("1", ""), call="1") == "1"


def test_files_of_a_moved_folder_are_not_own(own):
    assert own(("", "1")) == "1"
    own(("folder", ""), path=os.path.dirname(PATH))  # noqa: PTH120 - a text
    assert own() == ""


def test_task_knows_only_its_own_files(own):
    own(("", "1"))
    assert own.files.digest("other", PATH, "9") == ""
    own.files.drop("t")
    assert own() == ""
