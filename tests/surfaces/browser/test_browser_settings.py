"""Settings of the browser that are wrong: each error names the setting and the way out."""

from __future__ import annotations

import pytest

from callboard import Settings
from callboard.config import NetworkSettings
from callboard.messages import SettingsError
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.browser import BrowserSurface

WRONG = {
    "a size in words": ({"viewport": "large"}, r"browser\.viewport: write a width .* such as 1280x800"),
    "a network in words": ({"network": "guarded"}, r"browser\.network: write the rules .*`unguarded`"),
    "an address as a host": ({"network": {"allow": ["https://a.example/"]}}, r"browser\.network\.allow: .* is no host"),
    "two browsers": ({"executable": "chromium", "cdp_url": "http://127.0.0.1:9222"}, "names two browsers"),
    "a shared profile of none": ({"profile": "shared"}, "give its `cdp_url`"),
}


@pytest.mark.parametrize(("section", "reason"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_named(section, reason):
    with pytest.raises(SettingsError, match=reason):
        Settings.load(browser=section)


def test_a_folder_that_is_none_is_named(run, tmp_path):
    (tmp_path / "file").touch()
    stage = Stage("browser", None)
    for options, reason in (
        ({"profile": tmp_path / "file"}, r"browser\.profile: .*file' is no folder"),
        ({"workspace": tmp_path / "absent"}, r"browser\.workspace: there is no folder .*absent'"),
    ):
        with pytest.raises(SettingsError, match=reason):
            run(BrowserSurface("chromium", sandbox=False, **options).open(stage))
    stage.close()


def test_a_browser_that_does_not_answer_is_named(run, requires_browser):
    stage = Stage("browser", None)
    surface = BrowserSurface(cdp_url="http://127.0.0.1:9", network=NetworkSettings(guarded=False))
    with pytest.raises(ToolError, match=r"browser\.cdp_url: no browser answers at http://127\.0\.0\.1:9"):
        run(surface.open(stage))
    run(surface.close())
    stage.close()


@pytest.mark.parametrize(("program", "command"), [("playwright", "playwright install"), ("absent", "apt-get install")])
def test_a_missing_program_is_named_with_its_command(program, command, monkeypatch, tmp_path):
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    (need,) = [need for need in BrowserSurface.needs({"executable": program}) if not need.met]
    assert command in need.told
