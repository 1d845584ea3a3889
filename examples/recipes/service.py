"""A service that systemd or Docker ends with SIGTERM.

Unfinished tasks stay in the journal, and the next start resumes them.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from callboard import ModelRequest, Settings, Supervisor, Task, answers
from callboard.errors import TaskRefusedError
from callboard.testing import MemoryServer

if TYPE_CHECKING:
    from types import FrameType

WINDOW = MemoryServer.window()
STOP_SECONDS = 5.0
"""For each part of the supervisor; ``TimeoutStopSec`` has to be longer."""


def work(request: ModelRequest) -> dict[str, Any]:
    """Write into the memo, in place of a live model."""
    return answers.finish() if request.memory else answers.act("append", control="field-1", text=request.request)


def submit(supervisor: Supervisor, file: Path) -> None:
    """Submit the task of a file, and remove the file.

    A file that is no task, or another task under an earlier file's name, is moved into the folder ``failed``.
    """
    try:
        supervisor.submit(Task(request=file.read_text(encoding="utf-8"), target=WINDOW.id, key=file.name))
    except (PermissionError, TaskRefusedError, ValueError) as error:  # of this file; other errors end the service
        failed = file.parent / "failed"
        failed.mkdir(exist_ok=True)
        file.replace(failed / file.name)
        print(f"{file.name!r} was moved to {failed}: {error}", file=sys.stderr, flush=True)
    else:
        file.unlink()  # the task is in the journal now


def main(inbox: Path) -> int:
    """Run a task for each file in a folder, until SIGTERM.

    The name of the file is the key of its task.
    """
    signals: SimpleQueue[int] = SimpleQueue()  # an Event would deadlock if its waiting thread handles the signal

    def on_signal(number: int, _frame: FrameType | None) -> None:
        signals.put(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    settings = Settings.load(journal={"path": "service.db"})
    with Supervisor.start(settings, models={"app": work}, servers=[MemoryServer(WINDOW)]) as supervisor:
        print("ready", flush=True)
        while signals.empty():
            for file in sorted(filter(Path.is_file, inbox.glob("*.txt"))):
                submit(supervisor, file)
            time.sleep(0.2)
        unfinished = supervisor.stop(STOP_SECONDS)
    print("stopped", *unfinished, flush=True)
    return 1 if unfinished else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
