"""Dialogs that a frame of another origin shows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture
def page(visit, shop):
    """Give the function that opens a page with a frame of another origin, which runs a script."""

    def opened(script):
        shop.pages["/inner"] = f"<body><script>setTimeout(() => {{ {script} }}, 100)</script>"
        shop.pages["/outer"] = f"<iframe src='{shop.other_url}/inner'></iframe>"
        tab = visit(f"{shop.url}/outer")
        while tab.tab.dialog is None or not tab.tab.dialog_url:
            pass
        return tab

    return opened


def test_a_dialog_of_a_frame_is_answered_as_the_frame_s_own(page, shop, run, monkeypatch):
    tab, origins = page("document.body.textContent = prompt('Password?')"), []
    assert tab.look().window["dialog"]["frame"] == f"{shop.other_url}/inner"
    resources = run(tab.surface.resources(tab.target, "accept_dialog", {}))
    assert {f"origin:{shop.url}", f"origin:{shop.other_url}"}.issubset(resources)
    stub = SimpleNamespace(id="", check_origin=origins.append)
    monkeypatch.setattr("callboard.surfaces.browser._control_tools.current_call", lambda: stub)
    tab.do("accept_dialog", text="Ada")
    assert origins == [shop.other_url]
    tab.wait_for(text="Ada")


def test_a_tab_is_closed_without_the_browser(page, surface):
    tab = page("alert(1)")
    tab.run(surface.stop(tab.target))
    assert surface._browser._browser.is_connected()
    assert tab.target.id not in [target.id for target in tab.run(surface.targets())]
