"""A device on loan: ``CALLBOARD_ANDROID_SERIAL`` names it, ``CALLBOARD_ADB_PORT`` the adb server's port.

It is looked at, and left at its home screen. Nothing is typed, sent or set.
"""

from __future__ import annotations

import asyncio
import io
import os
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from callboard.surfaces import Stage
from callboard.surfaces.android import AndroidSurface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

SETTINGS = "com.android.settings"


@pytest.fixture
def lent(held_by: Callable[..., Any]) -> Iterator[Any]:
    """Give the device, awake and unlocked; a person sees to that."""
    serial = os.environ.get("CALLBOARD_ANDROID_SERIAL")
    if not serial:
        pytest.skip("CALLBOARD_ANDROID_SERIAL names no device")
    with asyncio.Runner() as runner:
        surface = AndroidSurface([serial], port=int(os.environ.get("CALLBOARD_ADB_PORT", "5037")))
        runner.run(surface.open(Stage("android")))
        yield held_by(surface, serial, runner)
        runner.run(surface.close())


def test_its_screen_is_seen(lent: Any) -> None:
    seen = lent.look()
    assert seen.picture is not None, seen.notes
    width, height = Image.open(io.BytesIO(seen.picture)).size
    assert seen.controls, seen.notes
    boxes = [each.box for each in seen.controls if each.box is not None]
    assert all(box.x + box.width <= width and box.y + box.height <= height for box in boxes)
    assert seen.window["device"]
    assert seen.window["application"]


def test_its_settings_are_opened_and_left(lent: Any) -> None:
    lent.do("launch_app", application=SETTINGS)
    assert str(lent.look(picture=False).window["application"]).startswith(SETTINGS)
    lent.do("swipe", direction="up")
    lent.do("press_key", key="HOME")
    assert not str(lent.look(picture=False).window["application"]).startswith(SETTINGS)
