"""The recipes: each program runs as the page shows it."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

import forks
from support import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "recipes"
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")


def section(title):
    """Give the code blocks of one section of the page."""
    return re.findall(r"```python\n(.*?)```", PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0], re.DOTALL)


def run(name, folder):
    done = forks.run([sys.executable, "-W", "error", str(RECIPES / name)], timeout=PATIENCE, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
async def browser():
    spec = importlib.util.spec_from_file_location("fastapi_app", RECIPES / "fastapi_app.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fastapi_app"] = module  # FastAPI reads the annotations of its functions from their module
    spec.loader.exec_module(module)
    transport = httpx2.ASGITransport(app=module.app)
    async with module.lifespan(module.app), httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
        yield client
    del sys.modules["fastapi_app"]


async def first_approval(browser, task):
    """Wait for a task's first approval request, and return its path."""
    for _ in range(int(PATIENCE * 100)):
        for waiting in (await browser.get(f"/tasks/{task}/approvals")).json():
            return f"/tasks/{task}/approvals/{waiting['id']}"
        await asyncio.sleep(0.01)
    pytest.fail("no approval was requested")


async def test_a_task_is_submitted_approved_and_followed_over_http(browser):
    task = (await browser.post("/tasks", json={"request": "hello"})).json()["id"]
    followed = asyncio.create_task(browser.get(f"/tasks/{task}/events"))
    where = await first_approval(browser, task)
    assert (await browser.post(where, json={"approve": True, "by": "ada"})).status_code == 204
    assert (await browser.post(where, json={"approve": True, "by": "bob"})).status_code == 409
    stream = (await followed).text
    names = re.findall(r"^event: (\S+)", stream, re.MULTILINE)
    assert (names[0], names[-1]) == ("task.submitted", "task.ended")
    assert "approval.requested" in names
    assert (await browser.get(f"/tasks/{task}")).json()["outcome"] == "finished"


async def test_a_rejected_a_cancelled_and_an_unknown_task_over_http(browser):
    rejected, cancelled = [(await browser.post("/tasks", json={"request": "hello"})).json()["id"] for _ in range(2)]
    where = await first_approval(browser, rejected)
    answer = {"approve": False, "by": "ada", "reason": "not today"}
    assert (await browser.post(where, json=answer)).status_code == 204
    assert (await browser.get(f"/tasks/{rejected}")).json()["outcome"] == "rejected"
    assert (await browser.delete(f"/tasks/{cancelled}")).status_code == 204
    assert (await browser.get(f"/tasks/{cancelled}")).json()["outcome"] == "cancelled"
    assert (await browser.get("/tasks/nothing")).status_code == 404
    assert (await browser.get("/health")).status_code == 200


def test_two_hundred_tasks_finish(tmp_path):
    assert run("many_tasks.py", tmp_path) == ["{'finished':", "200}"]


def test_a_nightly_job_does_its_work_once_a_day(tmp_path):
    first, second = run("nightly.py", tmp_path), run("nightly.py", tmp_path)
    assert first[1] == "finished"
    assert second == first


@pytest.fixture
def serve(tmp_path):
    """Run the service until it has taken the files with these texts; return its log."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()

    def serve(**texts):
        for name, text in texts.items():
            (inbox / f"{name}.part").write_bytes(text)
            (inbox / f"{name}.part").rename(inbox / f"{name}.txt")
        command = [sys.executable, str(RECIPES / "service.py"), str(inbox)]
        log = tmp_path / "service.log"
        with (
            log.open("wb") as errors,
            forks.Program(command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", cwd=tmp_path) as program,
        ):
            assert program.stdout.readline() == "ready\n"
            end = time.monotonic() + PATIENCE
            while list(inbox.glob("*.txt")) and time.monotonic() < end:
                time.sleep(0.02)
            program.send_signal(signal.SIGTERM)
            assert program.stdout.read() == "stopped\n"
            assert program.wait(PATIENCE) == 0
        return log.read_text("utf-8")

    return serve


def tasks_of_the_service(folder):
    command = [sys.executable, "-m", "callboard", "tasks", str(folder / "service.db"), "--json"]
    return forks.run(command, timeout=PATIENCE).stdout


def test_service_ends_at_sigterm_and_continues_at_the_next_start(serve, tmp_path):
    serve(one=b"one", two=b"two")
    serve()
    listed = tasks_of_the_service(tmp_path)
    assert listed.count('"one"') == listed.count('"two"') == 1


def test_a_service_moves_a_file_that_it_can_not_submit_and_continues(serve, tmp_path):
    serve(known=b"one")
    log = serve(empty=b"", known=b"other", latin=b"\xe9", valid=b"two")
    failed = {file.name: file.read_bytes() for file in (tmp_path / "inbox" / "failed").iterdir()}
    assert failed == {"empty.txt": b"", "known.txt": b"other", "latin.txt": b"\xe9"}
    assert all(f"'{name}' was moved to " in log for name in failed)
    assert "the key 'known.txt' was used before" in log
    listed = tasks_of_the_service(tmp_path)
    assert (listed.count('"one"'), listed.count('"two"'), listed.count('"other"')) == (1, 1, 0)


async def test_the_cells_of_the_notebook_run_in_a_loop_of_their_own():
    names = {"__name__": "notebook"}
    for cell in section("A notebook"):
        code = compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        running = eval(code, names)  # noqa: S307 - our own text
        if inspect.isawaitable(running):
            await running
    assert names["result"].ok
    assert names["memo"].effects == [("memo:one", "field-1", "hello")]


def test_the_test_of_the_page_passes(tmp_path):
    (source,) = section("A test with pytest")
    (tmp_path / "test_page.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]
    done = forks.run(command, timeout=PATIENCE, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
