"""Archives of others, which state any size and any compression."""

from __future__ import annotations

import ast
import io
import zipfile
from pathlib import Path

import pytest

import callboard
from callboard.surfaces import BoundedZipFile


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_can_fill_the_memory_are_not_read(method: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", b"a", zipfile.ZIP_DEFLATED)
        archive.writestr("bomb", bytes(1_000), method)
    with BoundedZipFile(data) as archive:
        assert archive.read("a.txt") == b"a"
        for read in (archive.testzip, lambda: archive.read("bomb"), lambda: archive.open(archive.infolist()[1])):
            with pytest.raises(NotImplementedError, match="compression of 'bomb' is not read"):
                read()


def test_list_of_files_is_bounded_before_it_is_read() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for number in range(130):
            archive.writestr(f"{number:03}{'x' * 62_000}", b"")
    with pytest.raises(NotImplementedError, match="larger than 8000000 bytes"):
        BoundedZipFile(data)


def test_files_larger_than_the_list_may_be_are_read() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("large", bytes(9_000_000), zipfile.ZIP_STORED)
        archive.comment = b"a comment"
    with BoundedZipFile(data) as archive:
        assert archive.read("large") == bytes(9_000_000)


OWN = {
    "surfaces/documents/excel/_engines.py": "LibreOffice's results",
    "surfaces/documents/excel/_workbook.py": "an empty workbook",
    "surfaces/documents/powerpoint/_new_deck.py": "the template of a package",
    "surfaces/documents/powerpoint/_slide_charts.py": "a workbook of our own; the list of another one",
    "surfaces/documents/word/_document_package.py": "the list of a file that was read",
}
"""Modules that read archives of this program, or the list alone."""


def test_archives_of_others_are_read_in_bounds_everywhere() -> None:
    root = Path(callboard.__file__).parent
    readers = {
        path.relative_to(root).as_posix()
        for folder in ("actors", "console", "fleet", "history", "journal", "mcp_server", "surfaces", "terminal")
        for path in (root / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "zipfile.ZipFile" and len(node.args) == 1
    }
    assert readers == set(OWN)
