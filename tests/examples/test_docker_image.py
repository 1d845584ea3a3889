"""The recipe of a container's image names packages, extras and an example that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from callboard.terminal import demo_names

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "examples/docker/Dockerfile").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_the_image_has_the_packages_of_the_page_on_desktops():
    page = (ROOT / "docs/desktop.md").read_text(encoding="utf-8")
    commands = re.findall(r"apt-get install ([\w -]+)", page)
    packages = {name for command in commands for name in command.split()}
    assert {"xvfb", "at-spi2-core", "libreoffice-gtk3"} <= packages
    assert packages - {"bubblewrap"} <= set(RECIPE.split())


def test_the_image_installs_extras_that_there_are():
    (extras,) = re.findall(r"\[([\w,]+)\]\"", RECIPE)
    assert "desktop" in extras.split(",")
    assert set(extras.split(",")) <= set(EXTRAS)


def test_the_image_runs_an_example_as_an_ordinary_user():
    (command,) = re.findall(r'^CMD \["callboard", "demo", "(\w+)", "--yes"\]$', RECIPE, re.MULTILINE)
    assert command in demo_names()
    assert re.findall(r"^USER (\w+)$", RECIPE, re.MULTILINE) == ["1000"]
    assert "useradd --create-home --uid 1000 " in RECIPE
