"""The examples that are installed with the package."""

from __future__ import annotations

from pathlib import Path

import callboard
from callboard.messages import did_you_mean
from callboard.terminal._commands import fail
from callboard.terminal._place import TASK_FILE

DEMO = "sales_report"
"""The example that needs no key, display or Office."""
_FOLDER = Path(callboard.__file__).parent / "examples"


def demo_names() -> list[str]:
    """List the examples that have a folder to run."""
    return sorted(each.parent.name for each in _FOLDER.glob(f"*/{TASK_FILE}"))


def demo_folder(name: str) -> Path:
    """Find the folder of an example; only listed names are accepted."""
    known = demo_names()
    if name not in known:
        hint = did_you_mean(name, known, f"there are: {', '.join(known) or 'none'}")
        fail(f"there is no example {name!r}{hint}")
    return _FOLDER / name
