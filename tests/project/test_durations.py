"""`.ci/durations` adds up the seconds of each folder's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import forks
from support import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "durations"
REPORT = """<testsuites><testsuite>
<testcase classname="tests.journal.test_lock" name="test_x" time="1.5"/>
<testcase classname="tests.surfaces.desktop.test_suite.TestEditor" name="test_x" time="4.2"/>
<testcase classname="tests.journal.test_file" name="test_x[tests.states]" time="2.0"/>
<testcase classname="" name="tests.project.test_user_types" time="0.0"/>
</testsuite></testsuites>"""


def test_folders_are_listed_with_their_seconds_and_tests(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT, encoding="utf-8")
    ran = forks.run([sys.executable, str(SCRIPT), str(tmp_path / "report.xml")], timeout=PATIENCE)
    assert ran.stdout.splitlines() == [
        "    4 s      1 tests of tests/surfaces/desktop",
        "    4 s      2 tests of tests/journal",
        "    0 s      1 tests of tests/project",
    ]
