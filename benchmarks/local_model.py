"""Run the example with a small local model, and check the results.

``python benchmarks/local_model.py`` runs ``callboard run examples/sales_report`` repeatedly with a local model behind
all agents, each time with another seed, and prints a table in Markdown. The weights come from
``tests/local_llm/fetch.py``, the server is ``xllamacpp`` (``pip install 'callboard[local-llm]'``); ``--url`` names any
other server of the OpenAI protocol.

A run is completed if it reports that it finished. It is checked if the workbook is correct: the table's header, all of
its rows with numbers as numbers, and a chart over all of these numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
from openpyxl.worksheet.cell_range import CellRange

from callboard import Event, EventName
from callboard.actors.journal import JournalReader

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "sales_report"
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - a file of the tests, not a package
from weights import WEIGHTS  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Table = list[list[str]]


# The documents


def as_it_is(document: Any) -> None:
    """Keep the example's document: a table of four rows."""


def forty_rows(document: Any) -> None:
    """Give the table forty rows."""
    numbers = random.Random(40)  # noqa: S311 - figures for a document
    (table,) = document.tables
    for number in range(len(table.rows), 41):
        row = [f"Shop {number}", *(f"{numbers.randint(2000, 19000) / 10:,.1f}" for _ in range(1, len(table.columns)))]
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text


def several_tables(document: Any) -> None:
    """Add two tables on other subjects."""
    for title, rows in (
        ("Staff", [["Team", "Heads"], ["Warehouse", "14"], ["Service", "9"], ["Office", "6"]]),
        ("Offices", [["City", "Street", "Opened"], ["Lyon", "Rue Neuve 3", "2011"], ["Graz", "Am Anger 8", "2017"]]),
    ):
        document.add_heading(title, level=1)
        table = document.add_table(rows=0, cols=len(rows[0]))
        for row in rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text


DOCUMENTS: dict[str, Callable[[Any], None]] = {
    "as it is": as_it_is,
    "40 rows": forty_rows,
    "3 tables": several_tables,
}


def prepared(folder: Path, change: Callable[[Any], None]) -> Table:
    """Copy the example, change its document, and return the wanted table."""
    shutil.copytree(EXAMPLE, folder)
    path = folder / "workspace" / "sales.docx"
    document = docx.Document(str(path))
    change(document)
    document.save(str(path))
    return [[cell.text for cell in row.cells] for row in document.tables[0].rows]


# The results of a run


def wrong(workspace: Path, table: Table) -> str:
    """Describe the faults of a run's workbook; empty if there are none."""
    books = sorted(workspace.glob("*.xlsx"))
    if not books:
        return "no workbook"
    found = [_wrong(sheet, table) for book in books for sheet in openpyxl.load_workbook(book).worksheets]
    return "" if "" in found else found[0]


def _wrong(sheet: Any, table: Table) -> str:
    corner = next((cell for row in sheet.iter_rows() for cell in row if cell.value == table[0][0]), None)
    if corner is None:
        return "no header"
    last_row, last_column = corner.row + len(table) - 1, corner.column + len(table[0]) - 1
    found = list(sheet.iter_rows(corner.row, last_row, corner.column, last_column, values_only=True))
    expected = [tuple(table[0]), *((row[0], *(float(text.replace(",", "")) for text in row[1:])) for row in table[1:])]
    if found != expected:
        return "other values"
    drawn = [
        CellRange(series.val.numRef.f.rpartition("!")[2].replace("$", ""))
        for chart in sheet._charts
        for series in chart.series
    ]
    numbers = [
        CellRange(min_col=column, max_col=column, min_row=corner.row + 1, max_row=last_row)
        for column in range(corner.column + 1, last_column + 1)
    ]
    if not drawn:
        return "no chart"
    return "" if all(any(column.issubset(area) for area in drawn) for column in numbers) else "a chart of a part"


# The runs


@dataclass(frozen=True)
class Ran:
    """One run."""

    seed: int
    outcome: str
    wrong: str
    """The faults of its workbook."""
    valid: int
    """Answers that were valid as given."""
    invalid: int
    """Answers that were sent back."""
    calls: int
    seconds: float

    @property
    def checked(self) -> bool:
        """True if the run completed with a correct workbook."""
        return self.outcome == "finished" and not self.wrong


_OUTCOMES = {0: "finished", 1: "failed", 3: "error", 4: "cancelled", 5: "timed_out", 6: "out_of_budget"}
"""Outcomes by exit code of ``callboard run``."""


def run(folder: Path, url: str, seed: int, temperature: float, change: Callable[[Any], None]) -> Ran:
    """Run the example once, as a user would."""
    table = prepared(folder / "example", change)
    out = folder / "out"
    provider = {"url": url, "temperature": temperature, "seed": seed, "actions": 1, "short": True}
    provider |= {"input_price": 0, "output_price": 0}
    variables = {f"CALLBOARD_PROVIDERS__LOCAL__{name.upper()}": str(value) for name, value in provider.items()}
    command = [sys.executable, "-m", "callboard", "run", str(folder / "example"), "--output", str(out), "--no-input"]
    command += ["--model", "host=local:model,app=local:model", "--record", str(folder / "record.jsonl")]
    start = time.perf_counter()
    done = subprocess.run(  # our own command line
        command,
        env={
            **os.environ,
            **variables,
            "CALLBOARD_LIMITS__MODEL_SECONDS": "900",
            "CALLBOARD_LIMITS__STEPS": "15",
            "CALLBOARD_LIMITS__HISTORY_TOKENS": "800",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    journal = out / "journal.db"
    if not journal.is_file():
        msg = f"callboard run did not begin: {done.stderr[-500:]}"
        raise RuntimeError(msg)
    with contextlib.closing(JournalReader.open(journal)) as reader:
        (task,) = reader.tasks()
        told = [row.message.name for row in reader.rows(task.id) if isinstance(row.message, Event)]
    valid, invalid = told.count(EventName.MODEL_ANSWERED), told.count(EventName.MODEL_REPAIRED)
    outcome = _OUTCOMES.get(done.returncode, str(done.returncode))
    return Ran(seed, outcome, wrong(out / "workspace", table), valid, invalid, valid + invalid, seconds)


def row(name: str, ran: list[Ran]) -> str:
    """Summarize runs in a line of the table."""
    valid, calls = sum(one.valid for one in ran), sum(one.calls for one in ran)
    cells = [
        name,
        f"{sum(one.checked for one in ran)} of {len(ran)}",
        f"{sum(one.outcome == 'finished' for one in ran)}",
        f"{100 * valid / calls:.1f} % of {calls}" if calls else "none",
        f"{sum(one.invalid for one in ran)}",
        f"{statistics.median(one.calls for one in ran):g}",
        f"{statistics.median(one.seconds for one in ran):.0f}",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| documents | completed and checked | said finished | valid answers | sent back | calls a run | seconds a run |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


@contextlib.contextmanager
def server(url: str | None, model: str) -> Iterator[str]:
    """Use a running server, or start one."""
    if url is not None:
        yield url
        return
    if not WEIGHTS[model].path.is_file():
        sys.exit(f"the weights are not there: python tests/local_llm/fetch.py --model {model}")
    with serving(WEIGHTS[model].path, word_threads=2) as own:  # the machine has nothing else to do
        yield own


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.3)
    parser.add_argument("--documents", choices=DOCUMENTS, action="append")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--url", help="a server that runs already, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--keep", type=Path, help="a folder for what the runs leave, to look into it")
    said = parser.parse_args()
    with server(said.url, said.model) as url, contextlib.ExitStack() as scope:
        folder = said.keep or Path(scope.enter_context(tempfile.TemporaryDirectory()))
        lines = [HEAD]
        for name in said.documents or DOCUMENTS:
            ran = []
            for seed in range(said.first_seed, said.first_seed + said.runs):
                place = folder / name.replace(" ", "-") / str(seed)
                place.mkdir(parents=True)
                one = run(place.resolve(), url, seed, said.temperature, DOCUMENTS[name])
                ran.append(one)
                print(f"{name}, {one}", file=sys.stderr, flush=True)
            lines.append(row(name, ran))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
