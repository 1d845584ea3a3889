"""Have a small language model do office tasks.

`python -m benchmarks.document_tasks` is `callboard eval` for the sets in `benchmarks/office`, with the check programs
and a server of the model. The weights come from ``tests/local_llm/fetch.py``, the server is ``xllamacpp``
(``pip install '.[local-llm]'``).

``--set`` chooses the set: `work` has 22 short requests about one document each, which an AppAgent gets without a
HostAgent; `held` has twelve more that are held out; `example` has the task of the example, with three documents. The
other arguments are those of `callboard eval`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.office_checks import PROGRAMS
from callboard.terminal import Again, Attendance, EvalChoices, mistakes, run_set

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "local_llm"))

from server import serving  # noqa: E402 - the tests' own, and no package
from weights import WEIGHTS  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

SETS = {
    "work": ROOT / "benchmarks/office/work.yaml",
    "held": ROOT / "benchmarks/office/held_out.yaml",
    "example": ROOT / "benchmarks/office/sales_report.yaml",
}
URL = "CALLBOARD_PROVIDERS__LOCAL__URL"
"""The variable that overrides the address of the server in the sets."""


@contextlib.contextmanager
def server(url: str | None, model: str) -> Iterator[str]:
    """Use a server that runs, or run one."""
    if url is not None:
        yield url
        return
    with serving(WEIGHTS[model].path, word_threads=2) as own_url:
        yield own_url


def main() -> None:
    """Run a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.document_tasks")
    parser.add_argument("--set", choices=SETS, default="work")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--url", help="a server that runs already, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--task", action="append", default=[], help="one task; repeatable")
    parser.add_argument("--seeds", type=int, help="the number of runs of each task")
    parser.add_argument("--output", type=Path, help="the folder of the runs and results")
    parser.add_argument("--again", type=Again, choices=[*Again], default=Again.NONE)
    parser.add_argument("--against", type=Path, help="the report.json of an earlier run")
    parser.add_argument("--html", type=Path, help="a page to write")
    options = parser.parse_args()
    choices = EvalChoices(
        Attendance(absent="benchmark"),
        seeds=options.seeds,
        tasks=options.task,
        output=options.output,
        again=options.again,
        against=options.against,
        html=options.html,
    )
    with server(options.url, options.model) as url, mistakes():
        os.environ[URL] = url
        sys.exit(run_set(SETS[options.set], choices, PROGRAMS))


if __name__ == "__main__":
    main()
