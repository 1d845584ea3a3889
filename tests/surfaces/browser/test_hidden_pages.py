"""Pictures of pages that no window shows."""

from __future__ import annotations

import io

import pytest

FILLED = "<title>{0}</title><body style='background: {0}; height: 5000px'><button>Go</button>"


def color_of(look):
    """Return the color of a look's picture, and its size."""
    from PIL import Image

    with Image.open(io.BytesIO(look.picture)) as image:
        return image.convert("RGB").getpixel((image.width - 20, image.height - 20)), image.size


@pytest.fixture
def red_tab(watch, shop, run):
    """Give a tab of a person's window, behind another one."""
    shop.pages.update({f"/{color}": FILLED.format(color) for color in ("red", "blue")})
    opened = [run(watch.surface._browser.new_tab("")) for _ in range(2)]
    red, other = [watch(tab.id) for tab in opened]
    red.do("open", address=f"{shop.url}/red")
    run(other.tab.page.bring_to_front())
    yield red
    for tab in opened:
        run(tab.close())


def test_a_picture_of_a_tab_in_the_background_is_of_its_page(red_tab, shop):
    size = tuple(red_tab.script("() => [innerWidth, innerHeight]"))
    red_tab.do("open", address=f"{shop.url}/blue")
    red_tab.script("() => scrollTo(0, 1000)")
    assert color_of(red_tab.look(picture=True)) == ((0, 0, 255), size)


def test_a_picture_leaves_tabs_where_they_are(red_tab, run, monkeypatch):
    page = red_tab.tab.page

    async def screen_of_two_pixels():
        session = await page.context.new_cdp_session(page)
        screen = {"width": 600, "height": 400, "deviceScaleFactor": 2, "mobile": False}
        await session.send("Emulation.setDeviceMetricsOverride", screen)

    async def late(**_):
        from playwright.async_api import TimeoutError as LateError

        raise LateError("not drawn")  # noqa: EM101, TRY003 - as Playwright

    run(screen_of_two_pixels())
    monkeypatch.setattr(page, "screenshot", late)
    monkeypatch.setattr(page, "bring_to_front", None)
    assert color_of(red_tab.look(picture=True)) == ((255, 0, 0), (600, 400))
