"""The tabs that may have sent a form."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from callboard.surfaces.browser._page_rules import _senders


class Page(SimpleNamespace):
    """A page that can be a key."""

    __hash__ = object.__hash__


@pytest.fixture
def tabs():
    given = {}
    for name, urls in {
        "shop": ["https://shop.example/list"],
        "bank": ["https://bank.example/", "https://widget.example/frame"],
    }.items():
        page = Page(frames=[SimpleNamespace(url=url) for url in urls])
        given[page] = SimpleNamespace(name=name, page=page, opener=None)
    return given


def request(origin):
    """Give a request of a page that has no tab yet."""
    headers = {"origin": origin} if origin else {}
    return SimpleNamespace(frame=SimpleNamespace(page=Page(), parent_frame=None), headers=headers)


@pytest.mark.parametrize(
    ("origin", "names"),
    [
        ("https://shop.example", ["shop"]),
        ("https://widget.example", ["bank"]),
        ("https://other.example", []),
        ("null", ["shop", "bank"]),
        ("", ["shop", "bank"]),
    ],
)
def test_form_into_a_new_window_is_of_a_tab_with_its_origin(tabs, origin, names):
    senders, in_frame = _senders(request(origin), tabs)
    assert ([sender.name for sender in senders], in_frame) == (names, False)
