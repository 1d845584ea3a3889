"""Measure calls on large documents: ``python -m benchmarks.large_documents [ROW...]``.

Each row runs in a process of its own. Printed are the processor time of the calls, without the imports, and the
process's largest memory, with them. It only reports: no figure makes a run fail.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docx

from callboard.actors.runtime import Lease
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONSHIPS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONSHIPS}">'
    '<sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONSHIPS}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_RELATIONSHIPS}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts>'
    '<fills count="1"><fill><patternFill/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="2"><xf/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
}


def numbers(row: int) -> Iterator[str]:
    """Yield ten numbers."""
    return (f"<v>{(row * 10 + column) % 9973}</v>" for column in range(10))


def figures(row: int) -> Iterator[str]:
    """Yield a number, a price, a share, a count and a formula."""
    yield from (f"<v>{row}</v>", f"<v>{row % 9973 / 4}</v>", f"<v>{row % 97 / 97:.6f}</v>", f"<v>{row % 12}</v>")
    yield f"<f>B{row}*D{row}</f><v>{row % 9973 / 4 * (row % 12)}</v>"


def plain(row: int) -> Iterator[str]:
    """Yield five numbers."""
    return (f"<v>{row * column % 9973}</v>" for column in range(1, 6))


def write_workbook(path: Path, rows: int, cells_of: Callable[[int], Iterator[str]]) -> None:
    """Write a workbook of one sheet: a header, and rows of values."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _PARTS.items():
            archive.writestr(name, content)
        with io.TextIOWrapper(archive.open("xl/worksheets/sheet1.xml", "w"), "utf-8") as sheet:
            sheet.write(f'<worksheet xmlns="{_MAIN}"><sheetData><row r="1">')
            letters = "ABCDEFGHIJ"[: len([*cells_of(2)])]
            sheet.write("".join(f'<c r="{name}1" t="inlineStr"><is><t>{name}</t></is></c>' for name in letters))
            for row in range(2, rows + 1):
                pairs = zip(letters, cells_of(row), strict=True)
                cells = "".join(f'<c r="{name}{row}">{content}</c>' for name, content in pairs)
                sheet.write(f'</row><row r="{row}">{cells}')
            sheet.write("</row></sheetData></worksheet>")


def write_table(path: Path, rows: int, row: str) -> None:
    """Write a CSV file of equal rows with their numbers."""
    with path.open("w", encoding="utf-8") as file:
        file.write("number,name,price,day,place\n")
        file.writelines(row.format(number) for number in range(rows))


def write_paragraphs(path: Path, count: int) -> None:
    """Write a Word document of paragraphs, with a heading after each hundred."""
    empty = io.BytesIO()
    docx.Document().save(empty)
    run = '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{} </w:t></w:r><w:r><w:t>with some words</w:t></w:r>'
    heading = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    with zipfile.ZipFile(empty) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "word/document.xml":
                head, mark, tail = content.partition(b"<w:sectPr")
                texts = (f"<w:p>{'' if n % 100 else heading}{run.format(n)}</w:p>" for n in range(count))
                content = head + "".join(texts).encode() + mark + tail
            new.writestr(name, content)


def write_pages(path: Path, count: int) -> None:
    """Write a PDF of pages with 40 lines."""
    kids = " ".join(f"{4 + 2 * page} 0 R" for page in range(count))
    parts = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for page in range(1, count + 1):
        lines = " ".join(f"(Page {page} line {line} with some words) Tj T*" for line in range(40))
        text = f"BT /F1 11 Tf 14 TL 50 780 Td {lines} ET"
        parts += [f"<</Type/Page/Parent 2 0 R/Contents {len(parts) + 2} 0 R>>"]
        parts += [f"<</Length {len(text)}>>\nstream\n{text}\nendstream"]
    content, offsets = "%PDF-1.4\n", []
    pieces, size = [content], len(content)
    for number, part in enumerate(parts, 1):
        offsets.append(size)
        pieces.append(f"{number} 0 obj\n{part}\nendobj\n")
        size += len(pieces[-1])
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    pieces.append(f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}")
    pieces.append(f"trailer<</Size {len(parts) + 1}/Root 1 0 R>>\nstartxref\n{size}\n%%EOF")
    path.write_text("".join(pieces), encoding="ascii")


def write_sparse(path: Path, size_bytes: int) -> None:
    """Make a file of zeros, which take no space on the disk."""
    with path.open("wb") as file:
        file.truncate(size_bytes)


FILES: dict[str, Callable[[Path], None]] = {
    "million.xlsx": lambda path: write_workbook(path, 100_000, numbers),
    "rows.xlsx": lambda path: write_workbook(path, 200_000, plain),
    "formulas.xlsx": lambda path: write_workbook(path, 200_000, figures),
    "plain.csv": lambda path: write_table(path, 2_000_000, "{0},Name {0},12.50,2026-01-31,München {0}\n"),
    "quoted.csv": lambda path: write_table(path, 2_000_000, '{0},"Name, {0}",12.50,2026-01-31,München {0}\n'),
    "long.docx": lambda path: write_paragraphs(path, 100_000),
    "pages.pdf": lambda path: write_pages(path, 1000),
    "huge.docx": lambda path: write_sparse(path, 1_000_000_000),
    "huge.csv": lambda path: write_sparse(path, 3_000_000_000),
}


class Session:
    """A server on the folder of the files, and its tools."""

    def __init__(self, folder: Path) -> None:
        self.server = DocumentSurface(folder)

    def look(self, document: str) -> str:
        """Look at a document as an agent does; a refusal is returned."""
        target = next(target for target in self.server.targets() if target.id == document)
        try:
            self.server.observe(target)
        except ToolError as error:
            return str(error)
        return ""

    def call(self, name: str, document: str, **arguments: Any) -> Any:
        """Call a tool; a refusal is the answer."""
        suffix = document.rpartition(".")[2]
        root = {"xlsx": "excel", "docx": "word"}.get(suffix, suffix)
        entries = [entry for entry in self.server.tools() if entry.name == name]
        tool = next(entry.tool for entry in entries if len(entries) == 1 or root in entry.roots)
        with EffectGuard(Lease("benchmark", 1)).active():
            values = tool.validate({"document": document, **arguments})
            try:
                return tool.fn(**values)
            except Exception as error:
                return str(error)


def _read(session: Session) -> Any:
    return session.call("read_range", "rows.xlsx", cells="A150000:E150011")


def _four_calls(session: Session) -> Any:
    session.look("rows.xlsx")
    _read(session)
    session.call("summarize", "rows.xlsx", columns=["B"])
    return session.call("read_range", "rows.xlsx", cells="A1:E12")


def _part_of_table(session: Session) -> Any:
    session.look("quoted.csv")
    return session.call("read_table", "quoted.csv", start=1_900_000, limit=12)


def _write(session: Session) -> Any:
    session.look("million.xlsx")
    return session.call("write_range", "million.xlsx", cell="C50000", values=[[1.5]])


ROWS: dict[str, Callable[[Session], Any]] = {
    "look at 1,000,000 cells": lambda session: session.look("million.xlsx"),
    "look twice": lambda session: [session.look("million.xlsx") for _ in range(2)],
    "read_range, 12 of 200,000 rows": _read,
    "four calls on 200,000 rows": _four_calls,
    "look at 200,000 formulas": lambda session: session.look("formulas.xlsx"),
    "summarize 200,000 rows": lambda session: session.call("summarize", "rows.xlsx"),
    "summarize by group": lambda session: session.call("summarize", "formulas.xlsx", columns=["B"], by="D"),
    "sort_range, 1,000,000 cells": lambda session: session.call("sort_range", "million.xlsx", by=[{"column": "A"}]),
    "write_range, 1 of 1,000,000 cells": _write,
    "write_range beside 200,000 formulas": lambda session: session.call(
        "write_range", "formulas.xlsx", cell="B50000", values=[[1.5]]
    ),
    "look at a CSV of 90 MB": lambda session: session.look("plain.csv"),
    "look at one with quotation marks": lambda session: session.look("quoted.csv"),
    "look, and read 12 of its rows": _part_of_table,
    "append_rows above the limit": lambda session: session.call("append_rows", "quoted.csv", rows=[[1, 2, 3, 4, 5]]),
    "look at 100,000 paragraphs": lambda session: session.look("long.docx"),
    "read_text, 1,000 characters of them": lambda session: session.call("read_text", "long.docx", limit=1000),
    "look at a PDF of 1,000 pages": lambda session: session.look("pages.pdf"),
    "read_text, page 900": lambda session: session.call("read_text", "pages.pdf", page=900, limit=1000),
    "look at a document of 1 GB": lambda session: session.look("huge.docx"),
    "look at a CSV of 3 GB": lambda session: session.look("huge.csv"),
}
"""The rows; each gets files that no other row has changed."""


def measure(row: str, folder: Path) -> dict[str, Any]:
    """Run a row in this process."""
    session = Session(folder)
    session.server.tools()
    before = _processor_seconds()
    answer = ROWS[row](session)
    seconds = _processor_seconds() - before
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    text = answer if isinstance(answer, str) else ""
    return {"seconds": seconds, "megabytes": int(peak) // 1000, "refusal": text}


def _processor_seconds() -> float:
    """Return the time of this process and of readers that it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Build the files, and measure the named rows; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", help="beginnings of the rows' names")
    parser.add_argument("--seconds", type=int, default=600, help="the longest time of a row")
    parser.add_argument("--measure", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.rows[0], options.measure)))
        return
    names = [row for row in ROWS if not options.rows or row.startswith(tuple(options.rows))]
    for row in names:
        with tempfile.TemporaryDirectory() as folder:
            run = f"from benchmarks.large_documents import *; [FILES[n](Path({folder!r}) / n) for n in FILES]"
            subprocess.run([sys.executable, "-c", run], check=True)
            print(f"{row:40} {_figures(row, folder, options.seconds)}", flush=True)


def _figures(row: str, folder: str, seconds: int) -> str:
    command = [sys.executable, "-m", "benchmarks.large_documents", "--measure", folder, row]
    try:
        done = subprocess.run(command, check=True, capture_output=True, timeout=seconds, env=os.environ)
    except subprocess.TimeoutExpired:
        return f"more than {seconds} s"
    except subprocess.CalledProcessError as error:
        return error.stderr.decode().strip().rpartition("\n")[2]
    figures = json.loads(done.stdout)
    return f"{figures['seconds']:7.2f} s {figures['megabytes']:6} MB  {figures['refusal'][:90]}"


if __name__ == "__main__":
    main()
