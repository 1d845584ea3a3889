"""People at the console of a supervisor that works."""

from __future__ import annotations

import getpass
import threading

import pytest
from playwright.sync_api import expect

from callboard import Outcome, Task
from callboard.console import ConsoleServer
from callboard.journal import JournalReader
from callboard.messages import Answer, ApprovalAnswer
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

NOD = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]
HOSTILE = (
    "<img src=x onerror=document.title='owned'><script>document.title='owned'</script> \u202egnp.exe\u202c {{7*7}}"
)

expect.set_options(timeout=PATIENCE * 1000)


def appends(request):
    """Append the request, and finish."""
    return append(request.request) if request.step == 1 else FINISH


def asks_people(request):
    """Ask a question, or append once or more often, by the request."""
    if request.request == "ask":
        parts = [{"text": "Which year?", "choices": ["last", "this"]}, "And why?"]
        return {"Status": "PENDING", "Questions": parts} if request.step == 1 else FINISH
    times = 3 if request.request == "again" else 1
    return append(request.request) if request.step <= times else FINISH


def replies(office, handle, kind):
    """Read the answers of people to a task from the journal."""
    with JournalReader.open(office.journal) as reader:
        rows = list(reader.rows(handle.task_id))
    return [row.message for row in rows if isinstance(row.message, kind)]


@pytest.fixture
def opened(office, page):
    """Start an office, and open its console: ``opened("/waiting", app=model)``."""

    def start(path="/", **given):
        started = office(**given)
        page.goto(started.server.link().replace("/#", f"{path}#"))
        expect(page.locator("main h1")).to_be_visible()
        return started

    return start


@pytest.fixture(scope="module")
def shared_desk(shared_office, shared_page):
    """Open the page of what waits, once for all tests that answer there."""
    started = shared_office(app=asks_people, policy=NOD)
    shared_page.goto(started.server.link().replace("/#", "/waiting#"))
    return started


@pytest.fixture
def desk(shared_desk, shared_page):
    """Give the office whose page of what waits is open, with nothing on it."""
    expect(shared_page.get_by_text("Nothing waits")).to_be_visible()
    yield shared_desk
    for task in shared_desk.supervisor.status().tasks:
        shared_desk.supervisor.handle(task.task_id).cancel("the test is over")


def test_link_signs_in_and_leaves_the_address(opened, page):
    office = opened(app=appends)
    assert page.url == f"{office.origin}/"
    page.reload()
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    other_tab = page.context.new_page()
    other_tab.goto(office.origin)
    expect(other_tab.get_by_role("main")).to_contain_text("You are not signed in here")


def test_used_link_is_told(opened, page):
    office = opened(app=appends)
    link = office.server.link()
    office.ask("/session", method="POST", body={"link": link.partition("#")[2]}, headers={"origin": office.origin})
    fresh = page.context.browser.new_context()
    tab = fresh.new_page()
    tab.goto(link)
    expect(tab.get_by_role("main")).to_contain_text("This link was used")
    fresh.close()


def test_list_follows_new_tasks_and_finds_them(opened, page):
    office = opened(app=appends)
    expect(page.get_by_text("No task fits")).to_be_visible()
    office.supervisor.submit(lone(request="sum the sales", labels={"team": "east"})).result(PATIENCE)
    office.supervisor.submit(lone(request="write the letter")).result(PATIENCE)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("write the letter")
    expect(rows.first).to_contain_text("finished")
    page.get_by_label("Find in requests and results").fill("lett")
    page.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(1)
    assert page.url.endswith("/?q=lett")
    page.get_by_role("link", name="Clear").click()
    expect(rows).to_have_count(2)
    page.get_by_label("Label").fill("team=east")
    page.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(1)
    page.go_back()
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="sum the sales").click()
    expect(page.get_by_role("heading", name="sum the sales")).to_be_visible()


def test_list_has_pages(opened, page):
    office = opened(app=lambda _: FINISH)
    handles = office.supervisor.submit_all(lone(request=f"task {number}") for number in range(60))
    for handle in handles:
        handle.result(PATIENCE)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Older").press("Enter")
    expect(rows).to_have_count(10)
    page.get_by_role("button", name="Newest").press("Enter")
    expect(rows).to_have_count(50)


def test_approval_is_given_in_the_name_of_the_person(desk, shared_page):
    handle = desk.supervisor.submit(lone(request="the text"))
    expect(shared_page.get_by_text("appended text stays")).to_be_visible()
    expect(shared_page.get_by_role("link", name="the text")).to_be_visible()
    expect(shared_page.locator("#waiting-count")).to_have_text("1")
    expect(shared_page.locator(".ask pre")).to_contain_text('"text": "the text"')
    shared_page.get_by_role("button", name="Approve").click()
    expect(shared_page.get_by_role("alert")).to_have_text("You approved it.")
    assert handle.result(PATIENCE).ok
    expect(shared_page.get_by_text("Nothing waits")).to_be_visible()
    (answer,) = replies(desk, handle, ApprovalAnswer)
    assert (answer.approved, answer.by, answer.remember) == (True, getpass.getuser(), False)


def test_approval_is_rejected_with_a_reason(desk, shared_page):
    effects = list(desk.surface.effects)
    handle = desk.supervisor.submit(lone())
    shared_page.get_by_label("Reason, if you reject it").fill("not today")
    shared_page.get_by_role("button", name="Reject").click()
    handle.result(PATIENCE)
    (answer,) = replies(desk, handle, ApprovalAnswer)
    assert (answer.approved, answer.reason) == (False, "not today")
    assert desk.surface.effects == effects


def test_remembered_approval_is_not_asked_again(desk, shared_page):
    handle = desk.supervisor.submit(lone(request="again"))
    shared_page.get_by_label("Approve it again in this task without asking").check()
    shared_page.get_by_role("button", name="Approve").click()
    assert handle.result(PATIENCE).usage.commands == 2
    assert [answer.remember for answer in replies(desk, handle, ApprovalAnswer)] == [True]


def test_question_is_answered_by_a_choice_and_a_text(desk, shared_page):
    handle = desk.supervisor.submit(lone(request="ask"))
    shared_page.get_by_label("this").check()
    shared_page.get_by_label("Answer").fill("for the audit")
    shared_page.get_by_role("button", name="Answer").click()
    assert handle.result(PATIENCE).ok
    (answer,) = replies(desk, handle, Answer)
    assert (answer.texts, answer.by) == (("this", "for the audit"), getpass.getuser())


def test_keys_move_and_approve(desk, shared_page):
    handle = desk.supervisor.submit(lone())
    expect(shared_page.get_by_role("button", name="Approve")).to_be_enabled()
    shared_page.keyboard.press("j")
    shared_page.keyboard.press("a")
    assert handle.result(PATIENCE).ok


def test_button_that_moved_just_now_is_not_pressed(desk, shared_page):
    handle = desk.supervisor.submit(lone())
    approve = shared_page.get_by_role("button", name="Approve")
    expect(approve).to_be_enabled()
    state = shared_page.evaluate(
        """async () => {
            const heading = document.querySelector("h1");
            const button = document.querySelector("button[value=approve]");
            heading.style.setProperty("margin-bottom", "200px");
            button.click();
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            const isDisabled = button.disabled;
            button.click();
            return isDisabled;
        }"""
    )
    assert state is True
    expect(approve).to_be_enabled()
    handle.cancel("enough")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_request_that_was_answered_elsewhere_leaves_the_page(desk, shared_page):
    handle = desk.supervisor.submit(lone())
    expect(shared_page.get_by_role("button", name="Approve")).to_be_visible()
    (ask,) = handle.approvals()
    handle.approve(ask.id, by="ann")
    expect(shared_page.get_by_text("Nothing waits")).to_be_visible()
    path = f"/tasks/{handle.task_id}/requests/{ask.id}"
    status, body, _ = desk.ask(path, method="POST", body={"verdict": "reject"}, headers=desk.sign_in())
    assert (status, body) == (409, "It is no longer open.")


def test_task_is_paused_resumed_and_cancelled(opened, page):
    entered, gate = threading.Event(), threading.Event()

    def model(request):
        entered.set()
        gate.wait(PATIENCE)
        return append("x") if request.step < 9 else FINISH

    office = opened(app=model)
    handle = office.supervisor.submit(lone(request="long work"))
    assert entered.wait(PATIENCE)
    page.get_by_role("link", name="long work").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    gate.set()
    page.get_by_role("button", name="Resume").click()
    page.on("dialog", lambda dialog: dialog.accept())
    entered.clear()
    gate.clear()
    gate.set()
    assert handle.result(PATIENCE).ok
    entered.clear()
    gate.clear()
    second = office.supervisor.submit(lone(request="longer work"))
    assert entered.wait(PATIENCE)
    page.goto(f"{office.origin}/tasks/{second.task_id}")
    page.get_by_role("button", name="Cancel").click()
    gate.set()
    result = second.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert result.causes[0].reason == f"cancelled by {getpass.getuser()} in the console"
    expect(page.locator(".facts")).to_contain_text("cancelled")


def test_task_shows_its_steps_calls_and_states(opened, page):
    office = opened(app=appends)
    handle = office.supervisor.submit(lone(request="the text"))
    handle.result(PATIENCE)
    page.goto(f"{office.origin}/tasks/{handle.task_id}")
    page.get_by_text("step 1, CONTINUE").click()
    expect(page.locator(".call").first).to_contain_text("append")
    page.get_by_role("link", name="app/memo/one").click()
    expect(page.locator(".machine .present")).to_contain_text("FINISH")
    slider = page.locator("#slider")
    slider.fill("1")
    expect(page.locator("[data-entry]:visible")).to_have_count(1)


def test_other_rules_are_tried_on_recorded_actions(opened, page):
    office = opened(app=appends)
    handle = office.supervisor.submit(lone(request="the text"))
    handle.result(PATIENCE)
    page.goto(f"{office.origin}/tasks/{handle.task_id}")
    page.get_by_text("What would other rules have said?").click()
    page.get_by_role("textbox").fill("- {verdict: deny, tool: append, reason: no texts}")
    page.get_by_role("button", name="Show their verdicts").click()
    expect(page.locator(".rulings tbody tr")).to_contain_text("no texts")
    page.get_by_role("textbox").fill("[")
    page.get_by_role("button", name="Show their verdicts").click()
    expect(page.get_by_role("alert")).to_contain_text("the text of the rules: is not valid YAML")


def test_page_goes_on_after_the_server_was_restarted(opened, office, page):
    started = opened(app=appends)
    started.server.stop()
    expect(page.locator("#connection")).to_have_text("No connection. It is tried again.")
    started.supervisor.submit(lone(request="meanwhile")).result(PATIENCE)
    started.server = ConsoleServer(started.journal, started.supervisor, port=started.server.port)
    started.server.start()
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("tbody tr")).to_contain_text("meanwhile")
    started.supervisor.submit(lone(request="later")).result(PATIENCE)
    expect(page.locator("tbody tr")).to_have_count(2)


def test_texts_of_others_are_shown_and_never_run(opened, page):
    office = opened(app=lambda request: {**FINISH, "Comment": HOSTILE, "Thought": HOSTILE, "Result": {"k": HOSTILE}})
    task = Task(request=HOSTILE, target="memo:one", labels={"name": HOSTILE[:60]})
    result = office.supervisor.submit(task).result(PATIENCE)
    assert result.ok
    expect(page.locator("tbody tr")).to_contain_text("<img src=x")
    page.locator("tbody a").click()
    expect(page.locator("h1")).to_contain_text("<script>")
    expect(page.locator("h1")).to_contain_text("\\u202egnp.exe\\u202c {{7*7}}")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert "owned" not in page.title().split(" · ")[-1]
    assert page.evaluate("document.title").startswith("<img")


def test_long_texts_stay_in_a_narrow_window(opened, page):
    long_text = "/srv/" + "unbroken_path_without_spaces_" * 20

    def model(request):
        if "ask" in request.request:
            return {"Status": "PENDING", "Questions": [{"text": long_text, "choices": [long_text, "b"]}]}
        return {"Status": "FAIL", "Comment": long_text}

    page.set_viewport_size({"width": 400, "height": 800})
    office = opened(app=model, windows=("one", "two"))
    task = lone(id="t", request=f"fail {long_text}", labels={"folder": long_text[:60]})
    office.supervisor.submit(task).result(PATIENCE)
    office.supervisor.submit(lone("memo:two", request="ask"))
    for path, text in (("/", "fail /srv/"), ("/tasks/t", "Why"), ("/waiting", "asks"), ("/health", "Targets")):
        page.goto(office.origin + path)
        expect(page.locator("main")).to_contain_text(text)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
    page.goto(f"{office.origin}/tasks/t")
    expect(page.locator("h1")).to_contain_text("…")
    page.get_by_text("The whole request").click()
    expect(page.get_by_text(f"fail {long_text}", exact=True).first).to_be_visible()


def test_a_thousand_tasks_are_listed_while_a_hundred_work(opened, page):
    ended, live = 900, 100
    windows = [f"w{number}" for number in range(live)]
    office = opened("/waiting", app=lambda request: ASK if "live" in request.request else FINISH, windows=windows)
    tasks = [lone(f"memo:{windows[number % live]}", request=f"old {number}") for number in range(ended)]
    for handle in office.supervisor.submit_all(tasks):
        handle.result(PATIENCE)
    handles = office.supervisor.submit_all(lone(f"memo:{name}", request=f"live {name}") for name in windows)
    expect(page.locator("[data-ask]")).to_have_count(live)
    expect(page.locator("#waiting-count")).to_have_text(str(live))
    page.get_by_role("link", name="Tasks").click()
    expect(page.locator("tbody tr")).to_have_count(50)
    expect(page.get_by_role("status").filter(has_text="tasks")).to_contain_text(f"{ended + live:,} tasks")
    handles[-1].cancel("enough")
    expect(page.locator("tbody tr").first).to_contain_text("cancelled")
    page.get_by_label("Outcome").select_option("unfinished")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("status").filter(has_text="task")).to_contain_text(f"{live - 1} task")
    for handle in handles:
        handle.cancel("enough")


def test_health_shows_surfaces_and_targets(opened, page):
    office = opened("/health", app=appends)
    expect(page.locator(".health")).to_contain_text("Accepts tasks")
    expect(page.locator("main")).to_contain_text("memo:one")
    assert str(office.journal) in page.locator("main").inner_text()


def test_health_shows_leases_queues_and_budgets(opened, page):
    office = opened(app=lambda _request: ASK, budget={"daily": [{"labels": {"project": "invoices"}, "steps": 7}]})
    for _ in range(2):
        office.supervisor.submit(lone(labels={"project": "invoices"}))
    wait_for(lambda: office.supervisor.health().queued)
    page.get_by_role("link", name="Health").click()
    expect(page.locator("main")).to_contain_text("app/memo/one, and after it app/memo/one")
    expect(page.locator("table")).to_contain_text("project=invoices")
    expect(page.locator("table")).to_contain_text("1 / 7")


def test_theme_is_kept(opened, page):
    opened(app=appends)
    page.get_by_role("button", name="Theme").click()
    chosen = page.evaluate("document.documentElement.className")
    page.reload()
    wait_for(lambda: page.evaluate("document.documentElement.className") == chosen)
    assert chosen in {"dark", "light"}
