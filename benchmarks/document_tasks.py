"""Have a small language model do short office tasks: `python -m benchmarks.document_tasks`.

An AppAgent gets a request about one document, without a HostAgent. A run counts as right if the
agent says that it finished and the file is what was asked for; nothing else in it may have changed. Approvals are
given. Each seed is a run of its own. The weights come from ``tests/local_llm/fetch.py``, the server is ``xllamacpp``
(``pip install 'callboard[local-llm]'``).

It prints one row for each task, with the reasons of its failures, and how many runs were right. ``--set`` chooses the
22 tasks to work on (`office_tasks`), or the twelve that are held out (`held_out_tasks`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.held_out_tasks import HELD_OUT
from benchmarks.office_tasks import TASKS, OfficeTask
from callboard import EventName, Settings, Supervisor, Task

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - the tests' own, and no package
from weights import WEIGHTS  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 1800
"""The time limit of an answer and of a step; a busy machine is slow."""
SETS = {"work": TASKS, "held": HELD_OUT}


@dataclass(frozen=True)
class Ran:
    """One run of a task."""

    task: str
    seed: int
    outcome: str
    wrong: str
    """The fault of the file or the answer; empty if it is right."""
    said: str
    """The answer in words."""
    calls: int
    """Answers of the model, those that were sent back included."""
    sent_back: int
    tools: tuple[str, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """True if it finished, and the file is as requested."""
        return self.outcome == "finished" and not self.wrong

    @property
    def reason(self) -> str:
        """The reason of a failure; empty if it is right."""
        if self.right:
            return ""
        unfinished = "" if self.outcome == "finished" else self.outcome
        early = f"{unfinished} before any action" if unfinished and not self.tools else unfinished
        return ", ".join(filter(None, (early, self.wrong)))


def run(task: OfficeTask, folder: Path, url: str, *, seed: int, temperature: float, steps: int) -> Ran:
    """Have one task done, and check its file."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    path = task.make(workspace)
    provider = {"url": url, "temperature": temperature, "seed": seed, "actions": 1, "short": True, "max_tokens": 800}
    settings = Settings.load(
        models={"app": "local:model", "record": folder / "record.jsonl"},
        providers={"local": {**provider, "input_price": 0, "output_price": 0}},
        documents={"workspace": workspace},
        limits={
            "steps": steps,
            "model_seconds": SECONDS,
            "step_seconds": SECONDS,
            "history_tokens": 800,
            "question_seconds": 1,
        },
        policy=[{"verdict": "allow"}],
    )
    begin = time.monotonic()
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(request=task.request, target=task.file))
        result = handle.result(SECONDS * steps)
        events = list(handle.events())
    said = result.output if isinstance(result.output, str) else result.comment
    names = [event.name for event in events]
    sent_back = names.count(EventName.MODEL_REPAIRED)
    return Ran(
        task.name,
        seed,
        result.outcome.value,
        task.wrong(path, said),
        said,
        names.count(EventName.MODEL_ANSWERED) + sent_back,
        sent_back,
        tuple(
            f"{event.data['tool']}{'' if event.data['status'] == 'success' else ' (failed)'}"
            for event in events
            if event.name is EventName.COMMAND_ENDED
        ),
        time.monotonic() - begin,
    )


def row(name: str, ran: list[Ran]) -> str:
    """Format a task's runs as a row of the table."""
    reasons = "; ".join(dict.fromkeys(one.reason for one in ran if not one.right))
    return f"| {name} | {sum(one.right for one in ran)} of {len(ran)} | {reasons.replace('|', '/')} |"


@contextlib.contextmanager
def server(url: str | None, model: str) -> Iterator[str]:
    """Use a server that runs, or run one."""
    if url is not None:
        yield url
        return
    with serving(WEIGHTS[model].path, word_threads=2) as own:
        yield own


def main() -> None:
    """Run the tasks, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.document_tasks")
    parser.add_argument("--set", choices=SETS, default="work")
    parser.add_argument(
        "--task", action="append", choices=[task.name for task in (*TASKS, *HELD_OUT)], help="one task; repeatable"
    )
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--url", help="a server that runs already, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--keep", type=Path, help="a folder for the files and recordings, to look into them")
    given = parser.parse_args()
    chosen = [task for task in SETS[given.set] if not given.task or task.name in given.task]
    ran: dict[str, list[Ran]] = {task.name: [] for task in chosen}
    with server(given.url, given.model) as url, contextlib.ExitStack() as scope:
        folder = (given.keep or Path(scope.enter_context(tempfile.TemporaryDirectory()))).resolve()
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for task in chosen:  # one after the other, so that an early end leaves some runs of each
                place = folder / task.name.replace(" ", "-").replace("'", "") / str(seed)
                one = run(task, place, url, seed=seed, temperature=given.temperature, steps=given.steps)
                (place / "run.json").write_text(json.dumps(asdict(one), indent=1), encoding="utf-8")
                ran[task.name].append(one)
    print("| task | right | failures |\n|---|--:|---|")
    for name, each in ran.items():
        print(row(name, each))
    every = [one for each in ran.values() for one in each]
    seconds = sum(one.seconds for one in every) / max(1, len(every))
    print(f"\n{sum(one.right for one in every)} of {len(every)} runs were right; a run took {seconds:.0f} s.")


if __name__ == "__main__":
    main()
