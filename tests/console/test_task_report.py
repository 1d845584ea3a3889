"""Reports of tasks: files that need nothing else, whatever texts are in them."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt
from PIL import Image

from callboard import Settings, Supervisor, Task
from callboard.config import install_command
from callboard.console import report
from callboard.errors import UnknownTaskError
from callboard.journal import JournalFile, Row
from callboard.messages import Cause, JournalError, Outcome, TaskResult
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, command_line, lone, wait_for

HOSTILE = (
    "<img src=http://elsewhere.test/a><script>document.title='owned'</script> \u202egnp.exe {{7*7}}\n"
    "```\n# owned\n````\n![a](http://elsewhere.test/b) [c](javascript:d) http://elsewhere.test/e @everyone\n"
    "</style></title><meta http-equiv=refresh content=0;http://elsewhere.test/f> `` ` \u2028- owned\n    ~~~\n"
)
SIDE = 180
"""Pixels: a picture of noise has about 100,000 bytes."""


class PicturedServer(MemoryServer):
    """Windows with a picture, which changes with the text."""

    def observe(self, target, look=None):
        observation = super().observe(target)
        noise = random.Random(observation.fingerprint).randbytes(3 * SIDE * SIDE)  # noqa: S311 - a picture
        file = io.BytesIO()
        Image.frombytes("RGB", (SIDE, SIDE), noise).save(file, "PNG")
        return observation.model_copy(update={"picture": file.getvalue()})


def steps(count, text="x"):
    """Make a model that appends a text in all steps but the last."""
    return lambda request: append(text) if request.step < count else {**FINISH, "Comment": text, "Result": text}


THREE_STEPS = steps(3)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def ran(journal):
    """Run a task, and give its id: ``ran(lone(), app=model)``."""

    def run(task: Task, *, server=MemoryServer, app=THREE_STEPS, **settings) -> str:
        loaded = Settings.load(journal={"path": journal}, **settings)
        with Supervisor.start(loaded, models={"app": app}, servers=[server(MemoryServer.window("one"))]) as supervisor:
            supervisor.submit(task).result(PATIENCE)
        return task.id

    return run


@pytest.fixture
def visited(page):
    """Open a report in the browser; give the page with the addresses that it asked for."""

    def visit(text: str) -> SimpleNamespace:
        asked = []
        page.context.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto("http://report.test/")
        return SimpleNamespace(page=page, asked=asked)

    return visit


def test_report_asks_for_nothing_and_shows_pictures(ran, journal, visited):
    visit = visited(report(journal, ran(lone(), server=PicturedServer)))
    pictures = visit.page.locator("img")
    assert pictures.count() == 3
    assert all(picture.evaluate("image => image.decode().then(() => image.naturalWidth)") for picture in pictures.all())
    assert [url for url in visit.asked if not url.startswith("data:")] == ["http://report.test/"]
    assert visit.page.locator("script, link, button, form, iframe, [onerror]").count() == 0
    links = [link.get_attribute("href") for link in visit.page.locator("a").all()]
    assert links
    assert all(visit.page.locator(link).count() == 1 for link in links)


def test_hostile_texts_stay_texts_in_html(ran, journal, visited):
    task = lone(request=HOSTILE, labels={"<b>": HOSTILE[:100]})
    visit = visited(report(journal, ran(task, app=steps(3, HOSTILE))))
    assert visit.page.title().startswith("<img src=http://elsewhere.test/a>")
    assert visit.page.locator("h1").inner_text().startswith("<img src=http://elsewhere.test/a>")
    text = visit.page.locator("main").inner_text()
    assert r"\u202egnp.exe {{7*7}}" in text
    assert "\u202e" not in text
    assert visit.page.locator("img, script, main meta").count() == 0
    assert visit.asked == ["http://report.test/"]
    blocked = "() => fetch('http://elsewhere.test/').then(() => 'loaded', () => 'blocked')"
    assert visit.page.evaluate(blocked) == "blocked"


def test_hostile_texts_stay_code_in_markdown(ran, journal):
    task = lone(request=HOSTILE, labels={"<b>": HOSTILE[:100]})
    text = report(journal, ran(task, app=steps(3, HOSTILE)), markdown=True)
    blocks = MarkdownIt("commonmark").parse(text)
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline", "html_block", "code_block"}
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2", "h2", "h2"]
    bare = "".join(token.content for token in tokens if token.type == "text")
    assert not re.search(r"owned|elsewhere|everyone|gnp", bare)
    fences = [token.content for token in tokens if token.type == "fence"]
    assert any("# owned" in fence and "````" in fence for fence in fences)
    assert "\u202e" not in text
    assert "\u2028" not in text


@pytest.mark.parametrize("markdown", [False, True])
def test_long_lists_of_a_result_are_cut(journal, markdown):
    causes = tuple(Cause(reason="because " * 1_000) for _ in range(2_000))
    result = TaskResult(task_id="t", outcome=Outcome.FAILED, causes=causes, changed=tuple(map(str, range(2_000))))
    with contextlib.closing(JournalFile.open(journal)) as file:
        file.write([Row(at=1.0, task_id="t", run_id="", message=message) for message in (lone(id="t"), result)])
        file.commit()
    text = report(journal, "t", markdown=markdown)
    assert len(text) < 5_000_000
    assert "3,600 causes, checks and files of the result are left out" in text


def test_times_have_their_zone(ran, journal):
    task_id = ran(lone())
    for markdown in (False, True):
        times = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(.{10})", report(journal, task_id, markdown=markdown))
        assert times
        assert all(re.fullmatch(r" UTC[+-]\d\d:\d\d", zone) for zone in times)


def test_latest_pictures_that_fit_are_shown(ran, journal):
    task_id = ran(lone(), server=PicturedServer, app=steps(6))
    complete = report(journal, task_id)
    assert complete.count("<img ") == 6
    assert "left out" not in complete
    small = report(journal, task_id, picture_megabytes=0.25)
    assert small.count("<img ") == 2
    assert "4 pictures are left out" in small
    assert small.rindex("<img ") > small.rindex("step 4")
    assert len(small) < 400_000
    without = report(journal, task_id, picture_megabytes=0)
    assert "<img " not in without
    assert "6 pictures are left out" in without
    assert "6 pictures are in a report in HTML only" in report(journal, task_id, markdown=True)


def test_lost_pictures_are_told(ran, journal):
    task_id = ran(lone(), server=PicturedServer)
    for file in journal.parent.glob("journal.db.pictures/*/*.png"):
        file.unlink()
    text = report(journal, task_id)
    assert "3 pictures are lost" in text
    assert "<img " not in text


def test_long_texts_and_histories_are_cut(ran, journal, monkeypatch):
    monkeypatch.setattr("callboard.console._task_report._MOST_CHARACTERS", 60_000)
    task_id = ran(lone(), app=steps(12, "y" * 20_000))
    for markdown in (False, True):
        text = report(journal, task_id, markdown=markdown)
        assert len(text) <= 60_000
        assert "earlier entries of the history are left out" in text
        assert "y" * 10_000 in text
        assert "y" * 10_001 not in text


def test_secrets_are_redacted(ran, journal):
    task_id = ran(
        lone(request="use hunter2-hunter2"), app=steps(3, "hunter2-hunter2"), secrets={"pw": "hunter2-hunter2"}
    )
    assert "hunter2" not in report(journal, task_id)
    assert "hunter2" not in report(journal, task_id, markdown=True)


def test_open_approval_is_shown_while_the_journal_is_in_use(journal):
    rules = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]
    settings = Settings.load(journal={"path": journal}, policy=rules)
    surface = MemoryServer(MemoryServer.window("one"))
    with Supervisor.start(settings, models={"app": THREE_STEPS}, servers=[surface]) as supervisor:
        handle = supervisor.submit(lone())
        wait_for(handle.approvals)
        html, text = report(journal, handle.task_id), report(journal, handle.task_id, markdown=True)
        handle.cancel("enough")
    assert "unfinished" in html
    assert "asks for approval: appended text stays" in html
    assert "Outcome: unfinished" in text
    assert "`asks for approval: appended text stays`" in text


def test_unknown_task_is_told(ran, journal):
    ran(lone())
    with pytest.raises(UnknownTaskError):
        report(journal, "nothing")


def test_command_writes_a_file_that_it_never_overwrites(ran, journal, tmp_path, monkeypatch):
    task_id = ran(lone())
    monkeypatch.chdir(tmp_path)
    result = command_line("report", task_id[:8], journal)
    assert (result.exit_code, result.output) == (0, f"report  {task_id}.html\n")
    file = tmp_path / f"{task_id}.html"
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("mine")
    result = command_line("report", task_id, journal)
    assert result.exit_code == 2
    assert "already exists; give the report another name" in " ".join(result.output.split())
    assert file.read_text() == "mine"
    assert command_line("report", task_id, journal, "-o", "page.md").exit_code == 0
    assert command_line("report", task_id, journal, "--markdown").exit_code == 0
    for name in ("page.md", f"{task_id}.md"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("# ")
    assert sorted(path.name for path in tmp_path.glob(".callboard*")) == []


def test_report_into_a_folder_that_is_not_there_is_refused(ran, journal, tmp_path):
    result = command_line("report", ran(lone()), journal, "-o", tmp_path / "nowhere" / "report.html")
    assert result.exit_code == 2
    assert f"{tmp_path}/nowhere: there is no such folder; give the report another place" in result.stderr


def test_file_of_another_kind_is_refused(ran, journal, tmp_path):
    result = command_line("report", ran(lone()), journal, "-o", tmp_path / "report.pdf")
    assert result.exit_code == 2
    assert "a report is a file of HTML or Markdown" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("missing", "message"),
    [("jinja2", f"a report needs more packages: {install_command('console')}"), ("starlette", "report  page.html")],
)
def test_report_needs_jinja_alone(missing, message, ran, journal, tmp_path):
    program = f"import sys; sys.modules['{missing}'] = None; from callboard.terminal import app; app()"
    command = [sys.executable, "-c", program, "report", ran(lone()), str(journal), "-o", "page.html"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.strip().endswith(message)


def test_report_of_facts_that_no_version_writes_is_refused(journal):
    settings = Settings.load(journal={"path": journal})
    server = MemoryServer(MemoryServer.window())
    with Supervisor.start(settings, models={"app": steps(2)}, servers=[server]) as supervisor:
        supervisor.submit(lone(id="t-1")).result(PATIENCE)
    with contextlib.closing(sqlite3.connect(journal)) as database, database:
        changed = database.execute(
            "UPDATE rows SET body = replace(body, '\"target\"', '\"t\"') WHERE body LIKE '%\"source\"%'"
        )
        assert changed.rowcount
    with pytest.raises(JournalError, match=r"has facts of t-1 that can't be shown: KeyError"):
        report(journal, "t-1")
    with pytest.raises(UnknownTaskError):
        report(journal, "t-2")
