"""Draw the README's picture, docs/picture.svg: ``python docs/picture.py``.

It runs the example, and shows the terminal's output beside the workbook that the agents made.
LibreOffice, ``pdftoppm`` (of Poppler) and ``callboard[pictures]`` draw the workbook.
"""
# ruff: noqa: INP001, TID253 - a script, which needs an extra

from __future__ import annotations

import base64
import contextlib
import io
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import yaml
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
_PDF = 'pdf:calc_pdf_Export:{"SinglePageSheets":{"type":"boolean","value":"true"}}'
_MARGIN = 16
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" role="img" xml:space="preserve">
<title>A run of the example: the agents, the outcome, and the workbook with its chart</title>
<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#d0d0d0"/>
{terminal}
<image x="{x}" y="{y}" width="{shown_width}" height="{shown_height}" href="data:image/png;base64,{png}"/>
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
    """Draw the first sheet of a workbook, without margins."""
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    convert = ["soffice", profile, "--headless", "--convert-to", _PDF, "--outdir", folder, workbook]
    subprocess.run(convert, check=True, capture_output=True)
    page = ["pdftoppm", "-png", "-r", str(_DPI), "-singlefile", folder / f"{workbook.stem}.pdf", folder / "page"]
    subprocess.run(page, check=True)
    image = Image.open(folder / "page.png").convert("RGB")
    empty = Image.new("RGB", image.size, "white")
    return image.crop(ImageChops.difference(image, empty).getbbox())


def picture() -> str:
    """Run the example, and give the picture as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    with tempfile.TemporaryDirectory() as name:
        page = drawn(run(Path(name), console), Path(name))
    lines = len(console.export_text(clear=False).splitlines())
    terminal = console.export_svg(theme=DEFAULT_TERMINAL_THEME, code_format=_TERMINAL, unique_id="run")
    file = io.BytesIO()
    page.quantize(64).save(file, "PNG", optimize=True)
    width, top = round(COLUMNS * 12.2) + 2 * _MARGIN, round(lines * 24.4) + 3 * _MARGIN
    across = width - 4 * _MARGIN
    height = page.height * across // page.width
    places = {"x": 2 * _MARGIN, "y": top, "shown_width": across, "shown_height": height}
    png = base64.b64encode(file.getvalue()).decode()
    return _SVG.format(width=width, total=top + height + 2 * _MARGIN, terminal=terminal, png=png, **places)


if __name__ == "__main__":
    (DOCS / "picture.svg").write_text(picture(), encoding="utf-8")
