"""The phone's names in `callboard.testing` are imported at their first use."""

import subprocess
import sys

import pytest

import callboard.testing
from support import PATIENCE

PROGRAM = """
import sys
import callboard.testing
assert "callboard.testing.phone" not in sys.modules
from callboard.testing import Phone
assert "callboard.testing.phone" in sys.modules
assert Phone is callboard.testing.Phone is callboard.testing.phone.Phone
"""


def test_testing_imports_the_phone_only_at_its_first_use():
    # A fork of a process that has imported callboard would have the phone, too.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_testing_lists_the_names_of_the_phone():
    assert set(callboard.testing.__all__) <= set(dir(callboard.testing))
    assert all(hasattr(callboard.testing, name) for name in callboard.testing.__all__)


def test_testing_has_no_other_names():
    with pytest.raises(AttributeError, match=r"module 'callboard.testing' has no attribute 'Tablet'"):
        _ = callboard.testing.Tablet
