"""A step in a browser, beside Playwright alone.

A step looks at a page with 60 controls and clicks on one of them, which changes a text. The answer to ``{"row": name,
"steps": n}`` has the seconds of a step, and the CPU seconds of the Python process; Playwright's own process and the
browser are not in it. ``python -m benchmarks --only browser`` prints a table. It needs ``callboard[browser]`` and
``chromium``, so ``python -m benchmarks`` leaves it out unless it is named.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.miniwob.pages import LOCAL
from benchmarks.protocol import serve
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.messages import Look
from callboard.surfaces import Stage
from callboard.surfaces.browser import BrowserSurface

if TYPE_CHECKING:
    from callboard import ModelRequest
    from callboard.surface import Target

PROGRAM = "chromium"
BUTTONS = 60
CONTENT = "<title>Buttons</title><p id=text>0</p>" + "".join(
    f"<button onclick='text.textContent++'>Button {number}</button>" for number in range(BUTTONS)
)
PATIENCE = 300.0
TITLES = {
    "playwright": "Playwright alone: `aria_snapshot`, `click`",
    "surface": "the surface: `observe`, `click`",
    "picture": "the same with a picture",
    "agent": "an AppAgent's step, with journal",
}


def surface() -> BrowserSurface:
    """Make a surface; root has no sandbox."""
    return BrowserSurface(PROGRAM, sandbox=os.geteuid() != 0, grace=1.0, network=LOCAL)


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Measure a row."""
    row, steps = str(parameters["row"]), int(parameters["steps"])
    if row == "agent":
        return agent(steps)
    return asyncio.run(playwright(steps) if row == "playwright" else on_surface(steps, picture=row == "picture"))


async def playwright(steps: int) -> dict[str, float]:
    """Look and click with Playwright alone."""
    from playwright.async_api import async_playwright

    async with async_playwright() as library:
        sandbox = os.geteuid() != 0
        browser = await library.chromium.launch(channel=None, executable_path=_program(), chromium_sandbox=sandbox)
        page = await browser.new_page()
        await page.set_content(CONTENT)
        watch = Watch()
        for step in range(steps + 1):
            if step == 1:
                watch = Watch()  # the first step is a warm-up
            text = await page.aria_snapshot(mode="ai", boxes=True)
            line = next(line for line in text.splitlines() if f'"Button {step % BUTTONS}"' in line)
            await page.locator(f"aria-ref={line.partition('[ref=')[2].partition(']')[0]}").click()
        answer = watch.per(steps)
        await browser.close()
    return answer


async def on_surface(steps: int, *, picture: bool) -> dict[str, float]:
    """Look and click with the surface, without agents."""
    browser, stage = surface(), Stage("browser")
    click = next(entry for entry in browser.tools() if entry.name == "click").tool.fn
    await browser.open(stage)
    try:
        application = (await browser.targets())[-1]
        target = await browser.start(application, {})
        await fill(browser, target)
        watch = Watch()
        for step in range(steps + 1):
            if step == 1:
                watch = Watch()
            look = await browser.observe(target, Look(picture=picture))
            control = next(each for each in look.controls if each.name == f"Button {step % BUTTONS}")
            await click(tab=target.id, control_id=control.id)
        return watch.per(steps)
    finally:
        await browser.close()
        stage.close()


def agent(steps: int) -> dict[str, float]:
    """Look and click as an AppAgent does."""
    browser, watch = surface(), Watch()
    answer: dict[str, float] = {}

    def host(request: ModelRequest) -> dict[str, Any]:
        if request.memory and request.memory[-1].decision.status == "ASSIGN":
            return {"Status": "FINISH"}
        tabs = [target for target in request.observation.targets if target.id.startswith("tab-")]
        if not tabs:
            return {"Status": "CONTINUE", "Function": "open_in_browser", "Args": {"application": "browser"}}
        return {"Status": "ASSIGN", "ControlText": tabs[0].id, "Current Sub-Task": "click"}

    async def app(request: ModelRequest) -> dict[str, Any]:
        nonlocal watch
        if request.step == 1:
            assert request.target is not None  # noqa: S101 - an AppAgent has one
            await fill(browser, request.target)
            return {"Status": "CONTINUE", "Function": "read", "Args": {}}
        if request.step == 2:
            watch = Watch()
        if request.step == steps + 2:
            answer.update(watch.per(steps))
            return {"Status": "FINISH"}
        name = f"Button {request.step % BUTTONS}"
        control = next(control for control in request.observation.controls if control.name == name)
        return {"Status": "CONTINUE", "Function": "click", "Args": {"control_id": control.id}}

    with tempfile.TemporaryDirectory() as folder:
        limits = {"steps": steps + 5, "repeats": steps + 5}
        settings = Settings.load(
            journal={"path": Path(folder, "journal.db")}, limits=limits, policy=[{"verdict": "allow"}]
        )
        models = {"host": FunctionModel(host), "app": FunctionModel(app)}
        with Supervisor.start(settings, models=models, servers=[browser]) as supervisor:
            result = supervisor.submit(Task(request="click")).result(PATIENCE)
    if not answer:
        msg = f"the task ended {result.outcome.value}: {result.reason}"
        raise RuntimeError(msg)
    return answer


class Watch:
    """The time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def per(self, steps: int) -> dict[str, float]:
        """Return the seconds and CPU seconds of one step."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"seconds": wall / steps, "cpu": cpu / steps}


async def fill(browser: BrowserSurface, target: Target) -> None:
    """Give an empty tab its content."""
    tab = await browser._tab(target.id)
    await tab.page.set_content(CONTENT)


def _program() -> str:
    import shutil

    path = shutil.which(PROGRAM)
    if path is None:
        msg = f"{PROGRAM} is missing: apt-get install chromium chromium-sandbox libatomic1"
        raise RuntimeError(msg)
    return path


if __name__ == "__main__":
    serve(measure)
