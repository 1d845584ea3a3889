"""A job for cron, which does one task a day, once.

Its line in a crontab; starting it more often does no harm:
``15 2 * * * cd /srv/reports && .venv/bin/python nightly.py >> nightly.log 2>&1``
"""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

from callboard import ModelRequest, Settings, Supervisor, Task, answers
from callboard.errors import JournalInUseError
from callboard.testing import MemoryServer

WINDOW = MemoryServer.window()


def work(request: ModelRequest) -> dict[str, Any]:
    """Write the day's line, in place of a live model."""
    return answers.finish() if request.memory else answers.act("append", control="field-1", text="done")


def main() -> int:
    """Run the day's task, or continue it; return the exit code."""
    today = dt.datetime.now(dt.UTC).date()
    settings = Settings.load(journal={"path": "nightly.db"}, system={"ask_question": False})
    try:
        with Supervisor.start(settings, models={"app": work}, servers=[MemoryServer(WINDOW)]) as supervisor:
            task = Task(request=f"the report of {today}", target=WINDOW.id, key=f"report-{today}")
            result = supervisor.submit(task).result(timeout=3600)
    except JournalInUseError as error:  # yesterday's run still works
        print(error)
        return 2
    print(today, result.outcome, result.comment, *(cause.reason for cause in result.causes))
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
