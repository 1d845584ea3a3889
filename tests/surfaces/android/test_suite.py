"""A phone passes the tests that every surface should pass."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from callboard.messages import LookBudget
from callboard.surfaces.android import AndroidSurface
from callboard.surfaces.android._hierarchy import Hierarchy
from callboard.testing import Phone, SurfaceCall, SurfaceCase, plugged_in
from short_suite import short_suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STAND: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def phone(adb_port: int) -> Iterator[None]:
    """Give all cases a phone of their own."""
    phone = Phone()
    with plugged_in(phone) as device:
        STAND.update(phone=phone, serial=device.serial, port=adb_port)
        yield
    STAND.clear()


def case(_folder: Path) -> SurfaceCase:
    """A number in the dialler; an action done once is a letter in it. Nothing seen is kept for a second look."""
    phone: Phone = STAND["phone"]
    phone.start("com.android.dialer", "tel:")
    app = phone.app
    phone.focus(app.number)  # type: ignore[attr-defined]

    def text() -> str:
        return str(app.number.text)  # type: ignore[attr-defined]

    control = next(each.id for each in Hierarchy(phone.hierarchy()).controls(LookBudget())[0] if each.name == "Number")
    return SurfaceCase(
        server=lambda: AndroidSurface([STAND["serial"]], port=STAND["port"], clock=itertools.count(step=6).__next__),
        target=STAND["serial"],
        change=lambda: phone.start("com.android.dialer", "tel:55"),
        control=control,
        replace=lambda: phone.start("com.android.launcher3"),
        once=SurfaceCall("type_text", {"text": "x"}),
        done=lambda: text().count("x"),
        slow=SurfaceCall("type_text", {"text": "." * 2_000}),
        started=lambda: "." in text(),
        secret=SurfaceCall("type_text", {"text": "${secret:password}", "control_id": control}),
        lent=lambda: phone.ime,
    )


class TestPhone(short_suite(case)):  # type: ignore[misc]
    """The suite."""
