"""The checks of docs/checks.md are valid ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from callboard.messages import MATCHERS, Check, Task

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
CHECKS = [
    check for block in BLOCKS for check in ([block] if isinstance(block, dict) else block) if "request" not in check
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_a_recipe_is_a_check(check):
    assert Check(**check).title


def test_the_tasks_of_the_page_are_valid():
    tasks = [Task(**block) for block in BLOCKS if "request" in block]
    assert len(tasks[0].checks) == 4
    assert tasks[1].judge is not None
    assert len(BLOCKS) == 12


def test_every_matcher_and_reading_is_described():
    fields = [*MATCHERS, "cells", "table", "text", "chart", "control", "command", "tool", "file", "only", "unchanged"]
    fields += ["page", "downloaded"]
    assert [name for name in fields if f"`{name}: " not in PAGE] == []
