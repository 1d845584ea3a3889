"""Do one request without a skill, and with one: ``python examples/skills/run.py``.

The skill is the folder ``report-style`` beside this program. Functions replace the language models: a language model
would follow the instructions as they are written, and these look for the words that they know. No network is needed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import openpyxl

from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task, TaskResult

SKILL = Path(__file__).resolve().parent / "report-style"
SALES = {"N": 120, "S": 310, "W": 205}


def read_texts(request: ModelRequest) -> list[str]:
    """Return the texts of skills that an agent has read, in order."""
    results = [result for record in request.memory for result in record.results if result.tool == "read_skill"]
    return [str(result.value["text"]) for result in results if isinstance(result.value, dict)]


def read_skill(name: str, file: str | None = None) -> dict[str, Any]:
    """Answer with a call of the tool that reads skills."""
    return {"Status": "CONTINUE", "Function": "read_skill", "Args": {"name": name, "file": file}}


def host(request: ModelRequest) -> dict[str, Any]:
    """Read the skill, make the workbook, and assign its agent."""
    texts, names = read_texts(request), [skill.name for skill in request.skills]
    if names and not texts:
        return read_skill(names[0])
    called = re.search(r"`(\S+\.xlsx)`", "".join(texts))
    workbook = called[1] if called else "report.xlsx"
    if all(target.id != workbook for target in request.observation.targets):
        return {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": workbook}}
    if not request.subtasks:
        style = f", by the skill {names[0]}" if names else ""
        return {"Status": "ASSIGN", "ControlText": workbook, "Current Sub-Task": f"Write the sales{style}"}
    return {"Status": "FINISH", "Comment": f"The sales are in {workbook}."}


def app(request: ModelRequest) -> dict[str, Any]:
    """Read the skill that the subtask names, and write the rows."""
    texts = read_texts(request)
    named = next((skill.name for skill in request.skills if skill.name in request.request), None)
    if named is not None and len(texts) < len(("SKILL.md", "regions.md")):
        return read_skill(named, "regions.md" if texts else None)
    if any(result.tool == "insert_table" for record in request.memory for result in record.results):
        return {"Status": "FINISH", "Comment": "The sales are written."}
    regions = dict(re.findall(r"(\w) = (.+)", "".join(texts)))
    rows: list[list[Any]] = [[regions.get(region, region), amount] for region, amount in SALES.items()]
    if "largest figure comes first" in "".join(texts):
        rows.sort(key=lambda row: -row[1])
    if "`Total`" in "".join(texts):
        rows.append(["Total", sum(SALES.values())])
    sheet = request.observation.controls[0].name
    arguments = {"sheet": sheet, "name": "Sales", "header": ["Region", "Sales"], "rows": rows}
    return {"Status": "CONTINUE", "Function": "insert_table", "Args": arguments}


def run_task(folder: Path, skills: list[str]) -> TaskResult:
    """Run the request in an empty folder, with some skills."""
    settings = Settings.load(documents={"workspace": folder}, skills=skills)
    with Supervisor.start(settings, models={"host": FunctionModel(host), "app": FunctionModel(app)}) as supervisor:
        return supervisor.submit(Task(request="Put the sales of each region into a workbook")).result(timeout=60)


def main() -> int:
    """Run the request twice, and print the workbooks."""
    for title, skills in (("without a skill", []), ("with the skill", [str(SKILL)])):
        with tempfile.TemporaryDirectory() as name:
            result = run_task(Path(name), skills)
            if not result.ok:
                print("; ".join(cause.reason for cause in result.causes))
                return 1
            (path,) = Path(name).glob("*.xlsx")
            (sheet,) = openpyxl.load_workbook(path).worksheets
            print(f"{title}: {path.name}: {'; '.join(f'{row[0]} {row[1]}' for row in sheet.values)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
