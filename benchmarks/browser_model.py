"""Have a small language model work in a browser.

``python -m benchmarks.browser_model`` prints one row for each run: an order in the shop of the tests, and pages of
MiniWoB++. A function opens the page and assigns it; the model is the AppAgent. An order is right if the shop got it, a
page if it gave its full reward. The weights come from ``tests/local_llm/fetch.py``, the server is ``xllamacpp``
(``pip install '.[local-llm]'``), the pages are of the package ``miniwob`` (``pip install --no-deps miniwob``).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.miniwob.pages import LOCAL, Pages
from callboard import EventName, FunctionModel, Settings, Supervisor, Task
from callboard.surfaces.browser import BrowserSurface

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "local_llm"), str(ROOT / "tests" / "helpers")]

from server import serving  # noqa: E402 - a file of the tests, not a package
from shop import Shop  # noqa: E402 - as above
from weights import WEIGHTS  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard import ModelRequest

SECONDS = 600
ORDER = "Order the kettle: fill in the name Ada, choose the size large, and send the order."
PAGE = "Do what the first line of the page asks for."
EASY = (
    "click-test", "click-test-2", "click-button", "click-dialog", "click-option", "click-checkboxes", "click-tab",
    "choose-list", "enter-text", "enter-password", "login-user", "focus-text", "read-table", "click-link", "use-slider",
)  # fmt: skip
"""The pages of a run by default: some that a small model may know how to do."""


class Work:
    """One supervisor with the model, for one page.

    Args:
        url: The address of the model's server.
        steps: The most steps.
    """

    def __init__(self, url: str, steps: int) -> None:
        self._url, self._steps = url, steps
        self._reward: Any = None

    def run(self, request: str, address: str) -> tuple[str, Any, str]:
        """Have a request done; return the outcome, the reward and the tools."""

        async def host(asked: ModelRequest) -> dict[str, Any]:
            tabs = [target for target in asked.observation.targets if target.id.startswith("tab-")]
            if asked.memory and asked.memory[-1].decision.status == "ASSIGN":
                if tabs:
                    tab = await surface._tab(tabs[0].id)
                    self._reward = await tab.page.evaluate("() => window.WOB_RAW_REWARD_GLOBAL ?? null")
                return {"Status": "FINISH"}
            if not tabs:
                arguments = {"application": "browser", "arguments": {"address": address}}
                return {"Status": "CONTINUE", "Function": "open_in_browser", "Args": arguments}
            return {"Status": "ASSIGN", "ControlText": tabs[0].id, "Current Sub-Task": request}

        self._reward = None
        surface = BrowserSurface("chromium", sandbox=os.geteuid() != 0, grace=1.0, network=LOCAL)
        provider = {
            "url": self._url,
            "temperature": 0.2,
            "actions": 1,
            "short": True,
            "max_tokens": 400,
            "pictures": False,
        }
        settings = Settings.load(
            models={"app": "local:model"},
            providers={"local": {**provider, "input_price": 0, "output_price": 0}},
            limits={"steps": self._steps, "model_seconds": SECONDS, "step_seconds": SECONDS, "question_seconds": 1},
            policy=[{"verdict": "allow"}],
        )
        with Supervisor.start(settings, models={"host": FunctionModel(host)}, servers=[surface]) as supervisor:
            handle = supervisor.submit(Task(request=request))
            result = handle.result(SECONDS * self._steps)
            ended = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
        tools = ", ".join(f"{row['tool']}{' (failed)' if row['error'] else ''}" for row in ended[1:])
        return result.outcome.value, self._reward, tools


def row(name: str, work: Callable[[], tuple[str, bool, str]]) -> str:
    """Do one run, and return its row."""
    begin = time.monotonic()
    outcome, is_right, tools = work()
    return f"| {name} | {outcome} | {'yes' if is_right else 'no'} | {time.monotonic() - begin:.0f} | {tools} |"


def main() -> None:
    """Run all, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser_model")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--pages", nargs="*", default=list(EASY))
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    print("| work | the agent says | right | seconds | tools |\n|---|---|---|--:|---|")
    with serving(WEIGHTS[options.model].path, word_threads=2) as url, Shop() as shop, Pages() as pages:
        work = Work(url, options.steps)

        def order() -> tuple[str, bool, str]:
            shop.orders.clear()
            outcome, _, tools = work.run(ORDER, shop.url)
            return outcome, shop.orders == [{"name": "Ada", "size": "large"}], tools

        def page(name: str) -> tuple[str, bool, str]:
            outcome, reward, tools = work.run(PAGE, f"{pages.url(name, 1)}&start")
            return outcome, reward == 1, tools

        for number in range(options.orders):
            print(row(f"order {number + 1}", order), flush=True)
        for name in options.pages:
            print(row(name, lambda name=name: page(name)), flush=True)  # type: ignore[misc]  # the name is bound


if __name__ == "__main__":
    main()
