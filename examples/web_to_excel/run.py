"""Put a table of a website into a workbook: ``python examples/web_to_excel/run.py``.

The website is served by this program, on loopback. Its table has two pages, with a link between them. A HostAgent plans
for two agents: one reads the table in a browser, page by page, the other writes the workbook, with a chart. The checks
read back both the workbook and the page. Functions replace the language models.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from callboard import FunctionModel, ModelRequest, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.errors import SettingsError
from callboard.messages import Check, PageQuery

HEADER = ("City", "Visitors", "Nights")
CITIES = [
    ("Aarhus", 412_300, 1_204_900),
    ("Bergen", 298_050, 611_400),
    ("Cádiz", 655_700, 1_930_250),
    ("Delft", 184_900, 260_100),
    ("Évora", 131_250, 240_800),
    ("Ghent", 520_600, 978_300),
]
PER_PAGE = 4
PAGES = -(-len(CITIES) // PER_PAGE)


class Website(BaseHTTPRequestHandler):
    """The table, four cities a page."""

    timeout = 1  # a browser opens connections that it may not use

    def do_GET(self) -> None:
        """Answer with a page."""
        number = 2 if self.path == "/cities?page=2" else 1
        rows = CITIES[(number - 1) * PER_PAGE : number * PER_PAGE]
        lines = "".join(f"<tr><td>{city}<td>{visitors:,}<td>{nights:,}" for city, visitors, nights in rows)
        link = "<a href='/cities?page=2'>Next page</a>" if number < PAGES else "<a href='/cities'>First page</a>"
        page = (
            f"<!DOCTYPE html><meta charset=utf-8><title>Cities</title><h1>Visitors of cities</h1><table>"
            f"<thead><tr>{''.join(f'<th>{name}' for name in HEADER)}</thead>{lines}</table>"
            f"<p>Page {number} of {PAGES}</p>{link}"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
        """Print nothing."""


def host(request: ModelRequest) -> dict[str, Any]:
    """Open the page and assign it, then the workbook."""
    done = request.subtasks
    if done and done[-1].outcome is not Outcome.FINISHED:
        return {"Status": "FAIL", "Comment": "; ".join(cause.reason for cause in done[-1].causes)}
    if len(done) == 2:  # both
        return {"Status": "FINISH", "Result": done[-1].output, "Comment": done[-1].comment}
    targets = {offer.id: offer for offer in request.observation.targets}
    if not done:
        tab = next((name for name in targets if name.startswith("tab-")), None)
        if tab is None:
            address = request.task_request.rpartition(" ")[2]
            return call("open_in_browser", application="browser", arguments={"address": address})
        return {"Status": "ASSIGN", "ControlText": tab, "Current Sub-Task": "Read all pages of the table"}
    if "cities.xlsx" not in targets:
        return call("create_document", path="cities.xlsx")
    subtask = "Write the table that was read, and draw a chart of it"
    return {"Status": "ASSIGN", "ControlText": "cities.xlsx", "Current Sub-Task": subtask}


def app(request: ModelRequest) -> dict[str, Any]:
    """Work in the browser, or in the workbook."""
    return on_page(request) if "app/browser" in request.address else in_workbook(request)


def on_page(request: ModelRequest) -> dict[str, Any]:
    """Extract the table of each page, and return all of it."""
    tables = [
        cast("dict[str, Any]", result.value)
        for record in request.memory
        for result in record.results
        if result.tool == "extract_table"
    ]
    last_tool = request.memory[-1].results[-1].tool if request.memory else ""
    controls = request.observation.controls
    links = [control.id for control in controls if control.name == "Next page"]
    if last_tool == "extract_table" and links:
        return call("click", control_id=links[0])
    if last_tool == "click":
        return call("wait_for", text=f"Page {len(tables) + 1} of {PAGES}")
    if last_tool == "extract_table":
        rows = [[city, *map(number, numbers)] for table in tables for city, *numbers in table["rows"]]
        result = {"header": tables[0]["header"], "rows": rows}
        return {"Status": "FINISH", "Result": result, "Comment": f"Read {len(rows)} rows of {len(tables)} pages."}
    (table,) = [control.id for control in controls if control.kind == "table"]
    return call("extract_table", control_id=table)


def number(text: str) -> int:
    """Return the number that a cell shows."""
    return int(text.replace(",", ""))


def in_workbook(request: ModelRequest) -> dict[str, Any]:
    """Write the table, and draw a chart of the visitors."""
    sheet = request.observation.controls[0].name
    if not request.memory:
        return call("insert_table", sheet=sheet, name="Cities", **cast("dict[str, Any]", request.subtasks[0].output))
    if len(request.memory) == 1:
        cells = f"A1:B{len(CITIES) + 1}"
        return call("insert_chart", type="bar", sheet=sheet, cells=cells, title="Visitors")
    return {"Status": "FINISH", "Comment": f"The table of {len(CITIES)} cities is in cities.xlsx, with a chart."}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Build an answer with one action."""
    return {"Status": "CONTINUE", "Function": tool, "Args": arguments}


def fill_workbook(workspace: Path, address: str, browser: dict[str, Any]) -> TaskResult:
    """Run the task, and check the workbook and the page."""
    settings = Settings.load(
        browser=browser,
        documents={"workspace": workspace},
        policy=[{"verdict": "allow", "tool": "open_in_browser"}, {"verdict": "allow", "tool": "click"}],
    )
    rows = [list(city) for city in CITIES]
    checks = (
        Check(name="the workbook has all rows", table="cities.xlsx!Cities", equals=cast("Any", rows)),
        Check(name="it has a bar chart", chart="cities.xlsx", contains={"kind": "bar"}),
        Check(name="the last page is open", page=PageQuery(url="http://127.0.0.1:*/cities*", contains="Page 2 of 2")),
        Check(name="nothing else was written", only=("cities.xlsx",)),
    )
    models = {"host": FunctionModel(host), "app": FunctionModel(app)}
    with Supervisor.start(settings, models=models) as supervisor:
        task = Task(request=f"Put the table of visitors into cities.xlsx, with a chart: {address}", checks=checks)
        return supervisor.submit(task).result(timeout=300)


def main() -> int:
    """Serve the website, run the task, and print the checks."""
    parser = argparse.ArgumentParser(description="Put a table of a website into a workbook.")
    parser.add_argument("--browser", default="chromium", help="the browser's program, or `playwright`")
    parser.add_argument(
        "--no-sandbox",
        action="store_true",
        help="run the browser without its sandbox, which root needs: only this program's own pages are opened",
    )
    parser.add_argument("--output", type=Path, help="folder of the workbook; default: a temporary one")
    options = parser.parse_args()
    network = {"allow": ["127.0.0.1:*"]}  # the only host that the pages may reach
    browser = {"executable": options.browser, "sandbox": not options.no_sandbox, "network": network}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Website)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        workspace = options.output or Path(folder)
        workspace.mkdir(parents=True, exist_ok=True)
        result = fill_workbook(workspace, f"http://127.0.0.1:{server.server_port}/cities", browser)
    server.shutdown()
    for check in result.checks:
        print(f"{check.name}: {'holds' if check.held else f'does not hold: {check.found}'}")
    print(f"{result.outcome.value}: {result.comment or '; '.join(cause.reason for cause in result.causes)}")
    return 0 if result.verified else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SettingsError as error:  # the browser or the extra is missing, or root runs it: it says what to do
        sys.exit(f"{error} (--no-sandbox)" if "sandbox" in str(error) else str(error))
