"""Have three machines do one task: ``python examples/fleet/run.py``.

It starts a server of NATS and three machines on this computer, each a process with a workspace, a journal and models of
its own. One has a Word document, one an empty workbook, one an archive with a shell. This program plans, and has no
document: the table is read on the first machine, written and drawn on the second, and the workbook moves to the third,
which takes its digest. Each step is checked where it was done. Functions replace the language models, and at the end
nothing is left running.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import openpyxl

from callboard import FunctionModel, ModelRequest, PlanStep, Settings, Supervisor, Task, TaskResult
from callboard.messages import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

SALES = Path(__file__).resolve().parents[1] / "sales_report" / "workspace" / "sales.docx"
MACHINES = ("office-1", "finance-3", "archive")
SECONDS = 60


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Build an answer with one action."""
    return {"Status": "CONTINUE", "Function": tool, "Args": arguments}


def app(request: ModelRequest) -> dict[str, Any]:
    """Read the table in Word, or write it in Excel."""
    results = [result.value for record in request.memory for result in record.results]
    if "app/word" in request.address:
        if not results:
            return {**call("read_table", decimal="."), "ControlLabel": "table-1"}
        return {"Status": "FINISH", "Result": results[0]}
    sheet = request.observation.controls[0].name
    table = cast("dict[str, Any]", request.subtasks[0].output)  # of another machine
    if not results:
        return call("insert_table", sheet=sheet, name="Sales", header=table["header"], rows=table["rows"])
    if len(results) == 1:
        cells = cast("dict[str, Any]", results[0])["cells"]
        return call("insert_chart", type="bar", sheet=sheet, cells=cells, title="Revenue by region")
    return {"Status": "FINISH", "Result": "the table is written, with a bar chart"}


def shell(request: ModelRequest) -> dict[str, Any]:
    """Take the digest of the workbook that came."""
    if not request.memory:
        return call("run", command=f"sha256sum '{request.subtasks[-1].artifacts[-1]}'")
    output = cast("dict[str, Any]", request.memory[0].results[0].value)["stdout"]
    return {"Status": "FINISH", "Result": output.split()[0]}


def settings_of(name: str, url: str, folder: Path, **sections: Any) -> Settings:
    """Return the settings of a machine."""
    log = {"stream": "off"}
    return Settings.load(fleet={"url": url, "name": name}, journal={"path": folder / "journal.db"}, log=log, **sections)


def machine(name: str, url: str, folder: Path) -> None:
    """Serve one machine until the standard input ends.

    It ends with the program that started it.
    """
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    if name == "office-1":
        shutil.copy(SALES, workspace)
    elif name == "finance-3":
        openpyxl.Workbook().save(workspace / "report.xlsx")
    sections: dict[str, Any] = {"documents": {"workspace": workspace}, "policy": [{"verdict": "allow"}]}
    if name == "archive":
        sections["shells"] = {"archive": {"cwd": workspace}}
    models = {"app": FunctionModel(app), "linux": FunctionModel(shell)}
    with Supervisor.start(settings_of(name, url, folder, **sections), models=models) as supervisor:
        supervisor.serve()
        sys.stdin.read()


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server of NATS on loopback, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    url = f"nats://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: answers(port), f"the server at {url}")
            yield url
        finally:
            process.terminate()


def answers(port: int) -> bool:
    """Return whether the server takes connections."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def started(name: str, url: str, folder: Path) -> Iterator[None]:
    """Run one machine in a process of its own."""
    command = [sys.executable, __file__, "--machine", name, "--url", url, "--folder", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.communicate()  # the end of its input ends it


def wait_for(check: Any, name: str) -> None:
    """Wait until a check holds."""
    end = time.monotonic() + SECONDS
    while not check():
        if time.monotonic() > end:
            sys.exit(f"{name} did not come within {SECONDS} s")
        time.sleep(0.1)


def run_task(url: str, folder: Path) -> TaskResult:
    """Plan the task, and have it done."""
    plan = (
        PlanStep(request="Extract the sales table", target="office-1:sales.docx"),
        PlanStep(
            request="Write the table, and draw a bar chart of it",
            target="finance-3:report.xlsx",
            checks=(
                Check(
                    name="its first row is that of the north", table="report.xlsx!Sales", path="/0/0", equals="North"
                ),
                Check(name="it has a bar chart", chart="report.xlsx", contains={"kind": "bar"}),
            ),
        ),
        PlanStep(request="Take the digest of the workbook", target="archive:archive"),
    )
    with Supervisor.start(settings_of("desk", url, folder)) as supervisor:
        wait_for(lambda: {target.machine for target in supervisor.targets()} >= set(MACHINES), "a machine")
        return supervisor.submit(Task(request="Report the sales", plan=plan)).result(timeout=SECONDS)


def main() -> int:
    """Start everything, run the task, and print the work of each machine."""
    parser = argparse.ArgumentParser(description="Have three machines do one task.")
    parser.add_argument("--machine", choices=MACHINES, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.machine:
        machine(options.machine, options.url, options.folder)
        return 0
    if shutil.which("nats-server") is None:
        sys.exit("nats-server is missing: apt-get install nats-server")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        url = running.enter_context(server(folder / "server"))
        for each in MACHINES:
            running.enter_context(started(each, url, folder / each))
        result = run_task(url, folder / "desk")
    for subtask in result.subtasks:
        print(f"{subtask.machine:<10} {subtask.target}: {subtask.request} -> {subtask.outcome.value}")
    for check in result.checks:
        print(f"{check.name}: {'holds' if check.held else f'does not hold: {check.found or check.problem}'}")
    print(f"{result.outcome.value}: {result.output or '; '.join(cause.reason for cause in result.causes)}")
    return 0 if result.ok and result.verified else 1


if __name__ == "__main__":
    sys.exit(main())
