"""`callboard.surface` is the whole contract of a surface, and docs/surfaces.md explains each part of it."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

import callboard.surface
from callboard.messages import Target
from callboard.surface import Effect, Server
from callboard.surfaces import tool

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "surfaces.md").read_text(encoding="utf-8")
INTERNAL = {"tools", "lane", "mcp_server", "name"}
"""The defaults of a surface, which follow from its marked methods and its targets."""


def test_the_page_begins_with_a_surface_that_runs_in_thirty_lines(tmp_path):
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    code = block.group(1)
    surface = code[code.index("class Lamps") : code.index("def decide")]
    assert len(surface.splitlines()) <= 30
    (tmp_path / "lamps.py").write_text(code, encoding="utf-8")
    assert runpy.run_path(str(tmp_path / "lamps.py"))["lamps"].lit == {"desk": True, "door": False}


@pytest.mark.parametrize("name", sorted(name for name in vars(Server) if not name.startswith("_")))
def test_each_method_stands_on_the_page(name):
    assert name in INTERNAL or re.search(rf"`{name}\b", PAGE), name


def test_each_choice_of_a_tool_stands_on_the_page():
    marked = re.search(r"`@tool\((.*?)\)`", PAGE).group(1)
    undescribed = {"roots", "type", "offered"}  # of the documents and the agents' own tools
    assert {word.strip("= ") for word in marked.split(",")} == set(inspect.signature(tool).parameters) - undescribed


@pytest.mark.parametrize("effect", ["read", "write", None, Effect])
def test_tool_refuses_what_is_no_effect(effect):
    with pytest.raises(TypeError, match=r"effect is one of Effect\.READ, Effect\.IDEMPOTENT, Effect\.ONCE, not"):
        tool(effect=effect)


def test_a_target_s_fields_stand_on_the_page():
    plain = {"id", "name", "kind", "server", "base"}
    missing = [name for name in Target.model_fields if name not in plain and f"`{name}`" not in PAGE]
    assert missing == []


def test_surface_module_lists_the_names_it_gathers():
    assert callboard.surface.__all__ == sorted(callboard.surface.__all__, key=lambda name: (not name.isupper(), name))
    assert [name for name in callboard.surface.__all__ if not hasattr(callboard.surface, name)] == []
