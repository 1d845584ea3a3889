"""The example of a skill: one request, done in the program's way and in the operator's."""

from __future__ import annotations

import sys
from pathlib import Path

import forks
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "skills" / "run.py"


def test_skill_changes_name_order_and_last_row_of_the_workbook() -> None:
    ran = forks.run([sys.executable, str(EXAMPLE)], timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    before, after = ran.stdout.splitlines()
    assert before == "without a skill: report.xlsx: Region Sales; N 120; S 310; W 205"
    assert after == (
        "with the skill: sales-2026.xlsx: Region Sales; "
        "Southern Europe 310; Western Europe 205; Northern Europe 120; Total 635"
    )
