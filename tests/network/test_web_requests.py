"""The origins of requests of pages."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from callboard.network._web_requests import is_same_origin

HERE = {"host": "here:8000", "origin": "http://here:8000"}


@pytest.mark.parametrize(
    ("headers", "is_same"),
    [
        (HERE, True),
        (HERE | {"origin": "https://HERE:8000"}, True),
        (HERE | {"sec-fetch-site": "same-origin"}, True),
        (HERE | {"sec-fetch-site": "same-site"}, False),
        (HERE | {"sec-fetch-site": "none"}, False),
        (HERE | {"origin": "http://here"}, False),
        (HERE | {"origin": "http://here:8000.evil"}, False),
        (HERE | {"origin": "null"}, False),
        ({"host": "here:8000"}, False),
        ({"host": "", "origin": "http://"}, False),
        (HERE | {"origin": "https://front", "sec-fetch-site": "cross-site"}, True),
        (HERE | {"origin": "https://front.evil", "sec-fetch-site": "cross-site"}, False),
    ],
)
def test_page_is_of_its_own_or_of_a_named_origin(headers, is_same):
    assert is_same_origin(Headers(headers), {"https://front"}) is is_same
