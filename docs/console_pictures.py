"""Take the pictures of the console: ``python docs/console_pictures.py``.

Agents work on documents, in a browser and on windows in memory until one of them waits for an approval. The pictures
show the console at that moment. It needs Chromium, and ``callboard[browser,console,excel,pictures]``.
"""
# ruff: noqa: INP001, TID253 - a script, which needs extras

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import socket
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
import yaml
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task, answers
from callboard.console import app
from callboard.events import EventName
from callboard.models import ScriptedModel
from callboard.testing import MemoryServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

DOCS = Path(__file__).resolve().parent
EXAMPLE = DOCS.parent / "examples" / "sales_by_region"
PERSON = "Ada"
SHOP = ("127.0.0.1", 8000)
SIZE = {"width": 1180, "height": 780}
COLORS = 128
PATIENCE_SECONDS = 60.0
THOUGHT_SECONDS = 0.4
PICTURES = """Promise.all([...document.images]
    .filter((image) => image.closest("details[open], .ask") && image.getBoundingClientRect().top < innerHeight)
    .map((image) => image.naturalWidth || new Promise((done) => { image.onload = done; })))"""
"""Wait for the pictures in sight."""
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
ORDER, SALES = "order-bearings", "sales-by-region"
ORDER_FIELDS = {"Article": "Bearing 6204", "Quantity": "40", "Deliver to": "Pump station 2"}
POLICY = [
    {"verdict": "allow", "tool": "open_in_browser"},
    {"verdict": "allow", "tool": "fill"},
    {"verdict": "approve", "tool": "click", "reason": "an order is sent to the supplier"},
]
FORM = """<!doctype html><html lang=en><meta charset=utf-8><title>Spare parts</title>
<style>body{font:26px sans-serif;margin:0;background:#eef2f5;color:#1c2733}header{background:#12455f;color:#fff;
padding:18px 40px;font-size:34px}form{background:#fff;margin:30px 40px;padding:24px 30px;max-width:800px;display:grid;
gap:12px;border-radius:8px}input{font:inherit;padding:8px}button{font:inherit;padding:10px;background:#12455f;
color:#fff;border:0;border-radius:6px}</style>
<header>Spare parts &middot; Order form</header><form action=/sent><label>Article <input name=article></label>
<label>Quantity <input name=quantity></label><label>Deliver to <input name=place></label><button>Send order</button>
</form></html>"""


class Shop(SimpleHTTPRequestHandler):
    """A website with an order form."""

    def do_GET(self) -> None:
        """Answer with the form."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(FORM.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
        """Print nothing."""


def order(request: ModelRequest) -> answers.Answer:
    """Open the form, fill it, and send it."""
    if request.is_host:
        tab = next((target.id for target in request.observation.targets if target.id.startswith("tab-")), None)
        if tab is None:
            page = {"address": "http://{}:{}/order".format(*SHOP)}
            thought = "The form is on the supplier's website."
            return answers.act("open_in_browser", application="browser", arguments=page, thought=thought)
        return answers.assign("Fill in the order form, and send it", tab, thought="The form is open in a tab.")
    controls = {control.name: control.id for control in request.observation.controls}
    if request.step <= len(ORDER_FIELDS):
        name, text = list(ORDER_FIELDS.items())[request.step - 1]
        return answers.act("fill", control=controls[name], text=text, thought=f"The field {name!r} is empty.")
    return answers.act("click", control=controls["Send order"], thought="All fields are filled.")


LEDGER = {
    "reconcile-march": ("Reconcile the bank statement of March", [answers.finish("All 214 entries have a match.")]),
    "post-invoices": ("Post the invoices of the week", [answers.fail("Invoice 4711 has no cost center.")]),
    "bank-fees": ("Book the bank fees of March", [answers.ask("Which account takes the fees?", "6855", "4970")]),
}
"""Tasks on the ledger by their ids: the request, and the answers of the agent."""


def model(example: Path) -> FunctionModel:
    """Make the model of all agents: functions, and the example's script."""
    script = ScriptedModel.load(example / "script.yaml")

    async def decide(request: ModelRequest) -> Any:
        await asyncio.sleep(THOUGHT_SECONDS)
        if request.task_id == ORDER:
            return order(request)
        if request.task_id in LEDGER:
            return LEDGER[request.task_id][1][request.call - 1]
        return (await script.answer(request)).content

    return FunctionModel(decide)


def run(supervisor: Supervisor) -> None:
    """Submit the tasks, and wait until two of them need a person."""
    for name, (text, _) in LEDGER.items():
        supervisor.submit(Task(id=name, request=text, target="ledger:2026", labels={"team": "finance"}))
    example = yaml.safe_load((EXAMPLE / "task.yaml").read_text(encoding="utf-8"))
    supervisor.submit(Task(id=SALES, labels={"team": "sales"}, **example)).result(PATIENCE_SECONDS)
    request = "Order 40 bearings 6204 for pump station 2"
    order_handle = supervisor.submit(Task(id=ORDER, request=request, labels={"team": "maintenance"}))
    for event in order_handle.events():  # its end, without a request, is an error
        if event.name is EventName.APPROVAL_REQUESTED:
            return
    raise RuntimeError(order_handle.result())


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Run the tasks, and serve the console; gives its address."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        example = shutil.copytree(EXAMPLE, Path(name, "example"))
        shop = running.enter_context(ThreadingHTTPServer(SHOP, Shop))
        threading.Thread(target=shop.serve_forever, daemon=True).start()
        running.callback(shop.shutdown)
        settings = Settings.load(
            documents={"workspace": example / "workspace"},
            browser={"executable": "chromium", "sandbox": not IS_ROOT, "network": {"allow": ["{}:{}".format(*SHOP)]}},
            journal={"path": example / "journal.db"},
            policy=POLICY,
        )
        ledger = MemoryServer(MemoryServer.window("2026", "ledger"))
        models = {"host": model(example), "app": model(example)}
        supervisor = running.enter_context(Supervisor.start(settings, models=models, servers=[ledger]))
        run(supervisor)
        listener = running.enter_context(socket.create_server(("127.0.0.1", 0)))
        config = uvicorn.Config(
            app(supervisor, person=lambda _: PERSON), log_level="warning", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)


def save(page: Page, name: str, **options: Any) -> None:
    """Save the visible part of a page with few colors."""
    page.evaluate(PICTURES)
    image = Image.open(io.BytesIO(page.screenshot(**options))).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(DOCS / f"console_{name}.png", optimize=True)


def take(page: Page, address: str) -> None:
    """Take the pictures."""
    page.goto(f"{address}/")
    expect(page.locator("tbody tr")).to_have_count(len(LEDGER) + 2)
    expect(page.locator("#waiting-count")).to_have_text("2")
    save(page, "tasks")
    page.goto(f"{address}/tasks/{SALES}")
    page.locator("a[data-run]").nth(3).click()
    expect(page.locator(".machine")).to_be_visible()
    page.locator("#work").evaluate("(heading) => heading.scrollIntoView()")
    save(page, "task")
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}/tasks/{ORDER}")
    page.get_by_text("step 3, CONTINUE").click()
    page.locator("#history").evaluate("(heading) => heading.scrollIntoView()")
    save(page, "steps")
    page.emulate_media(color_scheme="light")
    page.goto(f"{address}/waiting")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    save(page, "waiting")


def main() -> None:
    """Run the tasks, and take the pictures."""
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), chromium_sandbox=not IS_ROOT)
        page = browser.new_page(viewport=SIZE, locale="en-GB", timezone_id="UTC", color_scheme="light")
        take(page, address)
        browser.close()


if __name__ == "__main__":
    main()
