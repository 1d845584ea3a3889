"""The example with a mailbox: a report is sent once it is approved."""

from __future__ import annotations

import sys
from pathlib import Path

import forks
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mail_report" / "run.py"


def test_the_report_is_sent_as_it_was_approved() -> None:
    ran = forks.run([sys.executable, str(EXAMPLE)], timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    approved, came, last = ran.stdout.splitlines()
    assert (
        "to bob@example.org; cc carol@example.org; subject 'Sales by region'; attached: report.csv (32 byt" in approved
    )
    assert came == "came: Sales by region, from Ada <ada@example.org>, to Bob <bob@example.org>, with report.csv"
    assert last == "finished: The report was sent."
