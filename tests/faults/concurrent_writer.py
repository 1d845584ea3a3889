"""Add lines to one document, as one of several programs; print those that were confirmed."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

from callboard.config import ShellSettings
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.shell import ShellSurface

ADD = {
    "notes.docx": lambda call, line: call("insert_paragraph", text=line),
    "book.xlsx": lambda call, line: call("append_rows", values=[[line]]),
    "table.csv": lambda call, line: call("append_rows", rows=[[line]]),
    "days.ics": lambda call, line: call("write_event", summary=line, start="2026-01-02"),
    "mail.eml": lambda call, line: call("write_message", text=f"{call('read_text')['text']}\n{line}"),
    "notes.txt": lambda call, line: call("write_text", text=line),
    "shell": lambda call, line: call("edit_file", path="list", old="END", new=f"{line}\nEND"),
}


def called(surface: Any, root: str, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool."""
    entries = [entry for entry in surface.tools() if entry.name == tool]
    entry = next(entry for entry in entries if len(entries) == 1 or root in entry.roots)
    answer = entry.tool.fn(**entry.tool.validate(arguments))
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def main(folder: Path, kind: str, name: str, count: int) -> None:
    """Add the lines, each again until it is confirmed."""
    if kind == "shell":
        surface: Any = ShellSurface({"box": ShellSettings(cwd=folder, isolated=False)})
        surface.open(Stage("shells"))
        bound, root = {"shell": "box"}, ""
    else:
        surface = DocumentSurface(folder)
        (target,) = (each for each in surface.targets() if each.id == kind)
        bound, root = {"document": kind}, target.address.split("/")[1]
    for number in range(count):
        line = f"{name}-{number}"
        while True:
            if kind != "shell":
                surface.observe(target)
            try:
                ADD[kind](lambda tool, **arguments: called(surface, root, tool, {**bound, **arguments}), line)
            except ToolError as error:
                if "changed by another program" not in str(error):
                    raise
            else:
                print(line, flush=True)  # noqa: T201 - the program's answer
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
