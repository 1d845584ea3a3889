"""Draw the README's pictures, docs/picture.svg and docs/workbook.png: ``python docs/picture.py``.

It runs the example. One picture shows the terminal's output, the other the workbook that the agents made, with its
grid, rows and columns, as a spreadsheet program shows it. The workbook is drawn by LibreOffice and
``callboard[pdf,pictures]``.
"""
# ruff: noqa: INP001, TID253 - a script, which needs an extra

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import openpyxl
import pypdfium2
import yaml
from openpyxl.worksheet.properties import PageSetupProperties
from PIL import Image, ImageChops
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from callboard import Supervisor, Task
from callboard.terminal._board import TaskDisplay
from callboard.terminal._document_changes import OldDocuments
from callboard.terminal._results import print_head, print_result

DOCS = Path(__file__).resolve().parent
EXAMPLE = DOCS.parent / "examples" / "sales_report"
COLUMNS = 100
_DPI = 110
_MARGIN = 16
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}"
 role="img" xml:space="preserve">
<title>A run of the example: the agents and the outcome</title>
<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#d0d0d0"/>
{terminal}
</svg>
"""
_TERMINAL = """<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
.{unique_id}-matrix {{ font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<g transform="translate(16, 16)"><g>{backgrounds}</g><g class="{unique_id}-matrix">{matrix}</g></g>"""
"""Rich's template of a terminal, with the fonts of the reader's system instead of one from the network."""


def run(folder: Path, console: Console) -> Path:
    """Run a copy of the example, and print its result.

    The output is that of the command line. Returns the workbook.
    """
    name = "sales_report-1"
    copy = shutil.copytree(EXAMPLE, folder / "runs" / name)
    task = Task(id=name, **yaml.safe_load((EXAMPLE / "task.yaml").read_text(encoding="utf-8")))
    display = TaskDisplay(task.id, task.request)
    with Supervisor.start(copy / "callboard.yaml") as supervisor:
        handle = supervisor.submit(task)
        for event in handle.events():
            display.see(event)
        result = handle.result()
    console.print(Text("$ ", style="dim").append("callboard demo", style="not dim bold"))
    with contextlib.chdir(folder):  # paths inside the current folder are printed without it
        print_head(console, task, copy, "")
        console.print(display.drawn(time.time(), COLUMNS))
        history = f"callboard show {name} runs/{name}"
        print_result(console, result, old=OldDocuments(originals={copy: EXAMPLE}), history=history)
    return copy / "workspace" / "report.xlsx"


def drawn(workbook: Path, folder: Path) -> Image.Image:
    """Draw a workbook's first sheet with its grid, without margins."""
    copy = folder / workbook.name
    book = openpyxl.load_workbook(workbook)
    sheet = book.active
    sheet.print_options.gridLines = sheet.print_options.headings = True
    sheet.page_setup.orientation = "landscape"
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    book.save(copy)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", folder, copy]
    subprocess.run(convert, check=True, capture_output=True)
    with pypdfium2.PdfDocument(copy.with_suffix(".pdf")) as pages:
        image = pages[0].render(scale=_DPI / 72).to_pil().convert("RGB")
    empty = Image.new("RGB", image.size, "white")
    return image.crop(ImageChops.difference(image, empty).getbbox())


def main() -> None:
    """Run the example, and draw both pictures."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    with tempfile.TemporaryDirectory() as name:
        page = drawn(run(Path(name), console), Path(name))
    page.quantize(64).save(DOCS / "workbook.png", optimize=True)
    lines = len(console.export_text(clear=False).splitlines())
    terminal = console.export_svg(theme=DEFAULT_TERMINAL_THEME, code_format=_TERMINAL, unique_id="run")
    width, height = round(COLUMNS * 12.2) + 2 * _MARGIN, round(lines * 24.4) + 2 * _MARGIN
    (DOCS / "picture.svg").write_text(_SVG.format(width=width, total=height, terminal=terminal), encoding="utf-8")


if __name__ == "__main__":
    main()
