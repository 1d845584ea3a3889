"""The suite for surfaces, on a real editor: each case has a surface of its own on one display that stays."""

import pytest

from callboard.surfaces.desktop import DesktopSurface
from callboard.testing import SurfaceCall, SurfaceCase, surface_suite
from short_suite import short_suite

LONG = "." * 20_000 + "!"
"""A text whose end is not visible; only the end has an effect that counts."""
STAND = {}
"""The editor, and the clipboard, as a person sees them: by another connection than that of the surface on trial."""


@pytest.fixture(scope="module", autouse=True)
def editor(share, folder):
    window = share("editor")
    environment = window.desktop.session.environment
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBUS_SESSION_BUS_ADDRESS", environment["DBUS_SESSION_BUS_ADDRESS"])
        surface = lambda: DesktopSurface(environment["DISPLAY"], folder=folder, installed=False)  # noqa: E731 - short
        STAND.update(window=window, server=surface)
        yield window
        STAND.clear()


def case(_folder, once=("type_text", {"text": "x"})):
    window = STAND["window"]
    if "dialog" in window.look().window:
        window.do("press_keys", keys="Escape")
    field = window.control("", kind="text")
    window.do("set_text", field, text="")

    def change():
        window.do("set_text", field, text="written by somebody else")

    def done():
        return window.text().count("x") + window.text().count("!")

    return SurfaceCase(
        server=STAND["server"],
        target=window.target.id,
        change=change,
        control=field.id,
        replace=lambda: window.do("press_keys", keys="ctrl+o"),  # a dialog: nothing else reacts any more
        once=SurfaceCall(*once),
        done=done,
        slow=SurfaceCall("type_text", {"text": LONG}),
        started=lambda: "." in window.text(),
        secret=SurfaceCall("set_text", {"control_id": field.id, "text": "${secret:password}"}),
        same=(
            SurfaceCall("press_keys", {"keys": "F5"}),
            SurfaceCall("press_keys", {"keys": "F5", "control_id": field.id}),
            SurfaceCall("type_text", {"text": ""}),
        ),
        lent=window.desktop.clipboard.text,
    )


class TestEditor(short_suite(case)):
    """The suite."""


@pytest.mark.slow
class TestPasting(surface_suite(lambda folder: case(folder, ("paste", {"text": "x"})))):
    """The suite, as far as it tells something new."""
