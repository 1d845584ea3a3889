"""The example of AG-UI: a program with a sign-in, and a front end that approves."""

from __future__ import annotations

import sys
from pathlib import Path

import forks
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agui" / "run.py"


def test_front_end_approves_and_reads_the_result() -> None:
    ran = forks.run([sys.executable, str(EXAMPLE)], timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    first, asks, second, text, *_, row = ran.stdout.splitlines()
    assert first.startswith("run-1: RUN_STARTED, STATE_SNAPSHOT")
    assert asks == 'asks: append_rows on customers.csv: {"rows": [["Kim & Sons", "Oslo"]]}'
    assert "TOOL_CALL_RESULT" in second
    assert second.endswith("RUN_FINISHED")
    assert text.startswith("text: The customer is in the list. finished")
    assert row == "the list: Kim & Sons,Oslo"
