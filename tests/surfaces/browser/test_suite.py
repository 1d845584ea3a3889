"""A tab passes the tests that every surface should pass: one of a running browser, that a person has open."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from callboard.config import NetworkSettings
from callboard.surfaces.browser import BrowserSurface
from callboard.testing import SurfaceCall, SurfaceCase
from short_suite import short_suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STAND: dict[str, Any] = {}
PAGE = """<title>Suite</title><h1>A form</h1><input aria-label="Field"><p id="text">Text</p>
<button onclick="fetch('/count', {method: 'POST', body: ''})">Count</button>"""


@pytest.fixture(scope="module", autouse=True)
def person(debugging_port, shop, watch) -> Iterator[None]:
    """Give all cases one browser, and a second view of its tabs."""
    shop.pages["/suite"] = PAGE
    STAND.update(port=debugging_port, shop=shop, watch=watch)
    yield
    STAND.clear()


def fetched(path: str, method: str = "GET") -> Any:
    """Ask the browser itself."""
    request = urllib.request.Request(f"{STAND['port']}/json/{path}", method=method)  # noqa: S310 - on loopback
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        return answer.read()


def case(_folder: Path) -> SurfaceCase:
    """A page with a field, and a button that counts."""
    shop = STAND["shop"]
    for target in json.loads(fetched("list")):
        if "/suite" in target["url"]:
            fetched(f"close/{target['id']}")
    new = json.loads(fetched("new?about:blank", "PUT"))
    tab_id = f"tab-{new['id'][:6].lower()}"
    tab = STAND["watch"](tab_id)
    tab.do("open", address=f"{shop.url}/suite")  # only now: ids differ for one that attaches while it is opened
    ids = {control.name: control.id for control in (tab.control("Count"), tab.control("Field"))}
    count = len(shop.orders)
    shop.hanging.clear()
    shop.released.clear()
    return SurfaceCase(
        server=lambda: BrowserSurface(cdp_url=STAND["port"], profile="shared", network=NetworkSettings(guarded=False)),
        target=tab_id,
        change=lambda: tab.script("() => { text.textContent = 'written by a person' }"),
        control=ids["Field"],
        replace=lambda: tab.script(
            "() => { const field = document.querySelector('input'); field.replaceWith(field.cloneNode()) }"
        ),
        once=SurfaceCall("click", {"control_id": ids["Count"]}),
        done=lambda: len(shop.orders) - count,
        slow=SurfaceCall("open", {"address": f"{shop.url}/hang"}),
        started=shop.hanging.is_set,
        release=shop.released.set,
        secret=SurfaceCall("fill", {"control_id": ids["Field"], "text": "${secret:password}"}),
        same=[SurfaceCall("open", {"address": address}) for address in (f"{shop.url}/x", f"{shop.url[7:]}/x")],
    )


class TestTab(short_suite(case)):  # type: ignore[misc]
    """The suite."""
