"""Large CSV files read in parts: their answers equal those of files that are read whole."""

from __future__ import annotations

import csv
import io
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors.runtime import Lease
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents import DocumentSurface, _csv_index, _large_file, _workspace
from callboard.surfaces.documents._csv_index import index_of
from callboard.surfaces.documents._large_file import LargeFile
from callboard.surfaces.documents._workspace import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PIECES = ["a", "1,5", "ü", "日本", '"', '""', '"a', 'b"', "x\ny", "\r\n", "\r", ",", "", " ", "12.50", "€ 3"]


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all CSV files read in parts of a few bytes."""
    monkeypatch.setattr(_workspace, "IN_PARTS_BYTES", 0)
    monkeypatch.setattr(_csv_index, "PIECE_BYTES", 16)


def ask(folder: Path, tool: str, /, document: str = "a.csv", **arguments: Any) -> Any:
    """Call a tool on a new surface; an error is an answer, too."""
    surface = DocumentSurface(folder)
    return call(surface, tool, document, **arguments)


def call(surface: DocumentSurface, tool: str, document: str = "a.csv", **arguments: Any) -> Any:
    entry = next(entry for entry in surface.tools() if entry.name == tool and "csv" in entry.roots)
    with EffectGuard(Lease("here", 1)).active():
        try:
            return entry.tool.fn(**entry.tool.validate({"document": document, **arguments}))
        except ToolError as error:
            return str(error)


def look(surface: DocumentSurface, document: str = "a.csv") -> Any:
    observation = surface.observe(next(target for target in surface.targets() if target.id == document))
    return observation.window, observation.text, observation.fingerprint


def written_tables(rng: random.Random) -> Iterator[str]:
    """Yield tables as programs write them, and texts with quotation marks at any place."""
    for line_break in ("\n", "\r\n", "\r"):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator=line_break, quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        writer.writerows([rng.choices(_PIECES, k=rng.randint(1, 4)) for _ in range(rng.randint(1, 30))])
        yield text.getvalue() + rng.choice(["", line_break, '"open'])
        signs = rng.choices([*_PIECES, line_break, line_break, ",", "text"], k=rng.randint(1, 120))
        yield "".join(signs)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
@pytest.mark.parametrize("seed", range(10))
def test_a_file_in_parts_has_the_rows_of_one_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, encoding: str
) -> None:
    rng = random.Random(f"{seed} {encoding}")  # noqa: S311 - no secret
    path = tmp_path / "a.csv"
    for text in written_tables(rng):
        path.write_bytes(text.encode(encoding))
        expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        for size in (1, 2, 3, 7, 16, 64, 1 << 18):
            monkeypatch.setattr(_csv_index, "PIECE_BYTES", size)
            file = LargeFile.of("a.csv", path, path.stat(), 1 << 30)
            index = index_of(Snapshot("a.csv", path, file, "", 0.0, 0o644), file, ",", encoding)
            widths = [*map(len, expected)]
            counts = (index.row_count, index.width, index.cell_count)
            assert counts == (len(expected), max(widths, default=0), sum(widths)), (text, size)
            for start in range(len(expected) + 2):
                assert index.read(start, 2, 100) == expected[start : start + 2], (text, size)


def test_answers_equal_those_of_a_file_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "sep=;\r\n" + "name;price;note\r\n" + 'a;1,5;"x\r\ny"\r\n\r\nb;2.000,25;\r\nc;n/a\r\n' * 40
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    options: list[dict[str, Any]] = [{}, {"start": 3, "limit": 5}, {"header": False}, {"numbers": False}]
    whole = [look(DocumentSurface(tmp_path)), *(ask(tmp_path, "read_table", **option) for option in options)]
    monkeypatch.setattr(_workspace, "IN_PARTS_BYTES", 0)
    assert [look(DocumentSurface(tmp_path)), *(ask(tmp_path, "read_table", **option) for option in options)] == whole


def test_the_longest_row_counts_the_columns(tmp_path: Path, in_parts: None) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 50 + "1,2,3,4\n" + "1,2\n" * 50)
    window, text, _ = look(DocumentSurface(tmp_path))
    assert (window["rows"], window["columns"], window["delimiter"]) == (102, 4, ",")
    assert text.splitlines()[:2] == ["a | b", "1 | 2"]


def test_the_first_letters_beyond_ascii_tell_the_encoding(tmp_path: Path, in_parts: None) -> None:
    (tmp_path / "a.csv").write_bytes(b"name,city\n" + b"Smith,Bath\n" * 100 + "Müller,Köln\n".encode("cp1252"))
    answer = ask(tmp_path, "read_table", start=100, limit=1)
    assert answer["rows"] == [["Müller", "Köln"]]
    assert "a guess" in answer["encoding"]


def test_an_error_of_the_encoding_names_the_row(tmp_path: Path, in_parts: None) -> None:
    rows = ["name,text", "Müller,a", '"two\nlines",b', *["x,y"] * 30]
    (tmp_path / "a.csv").write_bytes("\n".join(rows).encode() + b"\nab,\xffc\nx,y\n")
    answer = ask(tmp_path, "read_table")
    offset = (tmp_path / "a.csv").read_bytes().index(b"\xff") + 1
    assert f"byte {offset}, in row 34, fits no character; pass its encoding" in answer
    assert ask(tmp_path, "read_table", encoding="cp1252", start=32)["rows"][0] == ["ab", "ÿc"]


@pytest.mark.parametrize("text", ["a,b\n" + "1,2\n" * 20 + '"' + "x" * 1_000_001, '"' + "x\n" * 600_000])
def test_a_cell_that_is_too_long_is_an_error_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(_workspace, "IN_PARTS_BYTES", 0)
    (tmp_path / "a.csv").write_text(text)
    row = 22 if text.startswith("a") else 1
    assert f"row {row}: field larger than field limit" in ask(tmp_path, "read_table")


def test_a_row_that_is_too_long_is_an_error(tmp_path: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv_index, "LONGEST_ROW", 100)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n" + "1," * 200)
    assert "row 3 has more than 100 characters" in ask(tmp_path, "read_table")


def test_too_many_cells_at_once_are_refused(tmp_path: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("," * 3000 + "\n" + "1\n" * 5000)
    assert "5000 rows of 3001 cells are more than 2000000 cells" in ask(
        tmp_path, "read_table", limit=5000, delimiter=","
    )
    assert ask(tmp_path, "read_table", start=4000, limit=2, delimiter=",")["left_out"] == 998


def test_another_program_that_changes_the_file_is_noticed(tmp_path: Path, in_parts: None) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 50)
    surface = DocumentSurface(tmp_path)
    before = look(surface)
    path.write_text("a,b\n" + "3,4\n" * 50)
    after = look(surface)
    assert before[2] != after[2]
    assert call(surface, "read_table", limit=1)["rows"] == [[3, 4]]
    source = surface._workspace.read("a.csv").source
    assert not isinstance(source, bytes)
    with pytest.raises(ToolError, match="changed by another program while it was read"), source.open():
        path.write_text("a,b\n")


def test_a_second_call_reads_only_its_rows(tmp_path: Path, in_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f'{n},"x\ny"\n' for n in range(2000)))
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr(_large_file.time, "time_ns", lambda: later)
    surface = DocumentSurface(tmp_path)
    look(surface)
    sizes: list[int] = []
    pieces = _csv_index.CsvIndex._pieces

    def counted(index: Any, stream: Any, offset: int) -> Any:
        for place, data in pieces(index, stream, offset):
            sizes.append(len(data))
            yield place, data

    monkeypatch.setattr(_csv_index.CsvIndex, "_pieces", counted)
    monkeypatch.setattr(_large_file.hashlib, "file_digest", None)  # the fingerprint is known
    assert call(surface, "read_table", start=1500, limit=2)["rows"] == [[1500, "x\ny"], [1501, "x\ny"]]
    assert sum(sizes) < 13_000  # the rows, and the first 1,000 for the decimal separators


def test_a_file_above_the_limit_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 300)
    content = path.read_bytes()
    surface = DocumentSurface(tmp_path, max_bytes=1000, max_csv_bytes=2000)
    window, _, _ = look(surface)
    assert window["rows"] == 301
    assert "1000 bytes (documents.max_bytes)" in window["not_writable_because"]
    assert call(surface, "read_table", limit=1)["left_out"] == 299
    for tool, arguments in (
        ("append_rows", {"rows": [[1, 2]]}),
        ("write_cell", {"row": 1, "column": 1, "value": "x"}),
        ("save_as", {"path": "b.csv"}),
    ):
        assert "at most 1000 are read (documents.max_bytes)" in call(surface, tool, **arguments)
    assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("rows", ["1,2\n", '"x,y\nz",2\n', "1,2\r\n", "\n1,2\n"])
def test_a_file_of_more_cells_than_the_limit_is_only_read(tmp_path: Path, rows: str, in_parts: None) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(("a,b\n" + rows * 20).encode())
    content = path.read_bytes()
    surface = DocumentSurface(tmp_path, max_csv_cells=41)
    window, _, _ = look(surface)
    assert "more than 41 cells (documents.max_csv_cells)" in window["not_writable_because"]
    for tool, arguments in (
        ("append_rows", {"rows": [[1, 2]]}),
        ("write_cell", {"row": 1, "column": 1, "value": "x"}),
    ):
        assert "more than 41 cells (documents.max_csv_cells)" in call(surface, tool, **arguments)
    assert call(surface, "read_table", limit=2)["left_out"] == 18
    assert path.read_bytes() == content
    less = DocumentSurface(tmp_path, max_csv_cells=39)
    assert "more than 39 cells (documents.max_csv_cells)" in call(less, "read_table", limit=100)
    exact = DocumentSurface(tmp_path, max_csv_cells=42)
    assert look(exact)[0]["not_writable_because"] == ""
    assert call(exact, "append_rows", rows=[[1, 2]])["rows"] == 22


def test_a_file_above_the_limit_of_tables_is_refused_from_its_size(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(3_000_000_000)  # no bytes are read
    assert "3000000000 bytes, and at most 2000000000 are read (documents.max_csv_bytes)" in ask(tmp_path, "read_table")


def test_a_large_file_below_the_limit_is_written(tmp_path: Path, in_parts: None) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 300)
    surface = DocumentSurface(tmp_path)
    look(surface)
    assert call(surface, "append_rows", rows=[[3, 4]])["rows"] == 302
    assert call(surface, "read_table", start=300)["rows"] == [[3, 4]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n\0\0\x01\x02" * 40, "zero bytes"),
        ("a,日本\n".encode("iso2022_jp") * 40, "save it as UTF-8"),
    ],
)
def test_bytes_that_are_no_plain_text_are_refused(tmp_path: Path, in_parts: None, content: bytes, reason: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert reason in ask(tmp_path, "read_table")
