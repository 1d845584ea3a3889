"""The run of a language model in a browser, with a provider that answers on order."""

from __future__ import annotations

import json
import re
import threading

import pytest

from benchmarks.browser_model import PAGE, Work, row
from benchmarks.miniwob.pages import MISSING, Pages, pages_folder
from callboard.surfaces.browser import BrowserSurface
from local_provider import LocalProvider


def test_a_page_is_worked_on_by_the_model_and_rated():
    missing = [need.told for need in BrowserSurface.needs({"executable": "chromium"}) if not need.met]
    if missing or pages_folder() is None:
        pytest.skip("; ".join(missing) or MISSING)
    provider = LocalProvider()
    threading.Thread(target=provider.http.serve_forever, daemon=True).start()

    def click(handler):
        (control,) = re.findall(r"\b(e\d+)\b[^\n]*Click Me", json.dumps(provider.requests[-1]["messages"]))[:1]
        provider.says({"Thought": "The button.", "Function": "click", "Args": {"control_id": control},
                       "Status": "CONTINUE"})  # fmt: skip
        provider.orders.pop()(handler)
        provider.says({"Thought": "It is clicked.", "Status": "FINISH"})

    provider.orders.append(click)
    try:
        with Pages() as pages:
            outcome, reward, tools = Work(provider.url, 3).run(PAGE, f"{pages.url('click-test', 1)}&start")
    finally:
        provider.http.shutdown()
        provider.http.server_close()
    assert (outcome, reward, tools) == ("finished", 1, "click")


def test_a_row_has_the_outcome_and_the_tools():
    assert row("order", lambda: ("finished", True, "fill, click")).split(" | ")[:3] == ["| order", "finished", "yes"]
