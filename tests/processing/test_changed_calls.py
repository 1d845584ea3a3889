"""Approvals hold for the hazards, resources and recipient that were shown."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome, Task, tool
from callboard.messages import ActionFacts, Effect, Hazard
from callboard.testing import MemoryServer, assert_replays
from support import FINISH, PATIENCE

APPROVE_ALL = [{"verdict": "approve", "tool": "send"}]
BY_RESOURCE = [{"verdict": "approve", "resource": "site:*"}]
SEND = {"Status": "CONTINUE", "Function": "send", "Args": {"text": "a"}}


class Site(MemoryServer):
    """A window whose calls become other ones while a person decides."""

    resource_kinds = ("site",)

    def __init__(self):
        super().__init__(self.window())
        self.facts = ActionFacts(hazards=(Hazard.SENDS,), resources=("site:shop",), recipient="the shop")
        self.next_recipient = ""

    def become(self, **facts):
        self.facts = self.facts.model_copy(update=facts)

    def hazards(self, target, tool, arguments, made):
        return set(self.facts.hazards)

    def resources(self, target, tool, arguments):
        return self.facts.resources

    def recipient(self, target, tool, arguments):
        return self.facts.recipient

    @tool(effect=Effect.ONCE)
    def send(self, target: str, text: str) -> str:
        """Send a text."""
        self.effects.append((target, self.facts.recipient, text))
        self.become(recipient=self.next_recipient or self.facts.recipient)
        return "sent"

    @property
    def sent(self):
        return [(text, recipient) for _, recipient, text in self.effects]


@pytest.fixture
def site():
    return Site()


@pytest.fixture
def begin(start, site, tmp_path):
    """Begin supervisors on one journal; at the end all that they did is replayed."""
    begun = []

    def submit(*answers, policy=APPROVE_ALL, **options):
        settings = {"app": [*answers, FINISH], "policy": policy, "journal": {"path": tmp_path / "journal.db"}}
        begun.append(start(servers=[site], **settings | options))
        return begun[-1]

    yield submit
    for supervisor in begun:
        supervisor.stop()
    assert_replays(tmp_path / "journal.db")


def submitted(supervisor):
    return supervisor.submit(Task(id="t", request="x", target="memo:one"))


def asked(handle, number):
    """Wait until a person was asked so many times, and give the last request."""
    requests = (event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    for _ in range(number):
        request_id = next(requests).data["request"]["id"]
    (request,) = handle.approvals()
    assert request.id == request_id
    return request


def times_asked(handle):
    return [event.name for event in handle.events()].count(EventName.APPROVAL_REQUESTED)


OTHERS = {
    "recipient": {"recipient": "somebody else"},
    "no recipient": {"recipient": ""},
    "another hazard": {"hazards": (Hazard.SENDS, Hazard.SPENDS)},
}


@pytest.mark.parametrize("policy", [APPROVE_ALL, BY_RESOURCE])
@pytest.mark.parametrize("others", [*OTHERS.values(), {"resources": ("site:shop", "site:other")}])
def test_call_that_becomes_another_one_is_asked_about_again(begin, site, others, policy):
    handle = submitted(begin(SEND, policy=policy))
    first = asked(handle, 1)
    site.become(**others)
    handle.approve(first.id)
    if policy is APPROVE_ALL and "resources" in others:  # no rule asks for them
        assert handle.result(PATIENCE).ok
        return
    second = asked(handle, 2)
    assert site.sent == []
    assert second.reason.startswith("it has changed since it was approved: ")
    assert second.actions[0].facts == site.facts.model_copy(
        update={"resources": site.facts.resources if policy is BY_RESOURCE else ()}
    )
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [("a", site.facts.recipient)]


def test_second_request_can_be_rejected(begin, site):
    handle = submitted(begin(SEND))
    first = asked(handle, 1)
    site.become(recipient="somebody else")
    handle.approve(first.id)
    second = asked(handle, 2)
    assert "it would send to somebody else" in second.reason
    handle.reject(second.id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert site.sent == []


def test_call_with_fewer_hazards_runs_as_approved(begin, site):
    site.become(hazards=(Hazard.SENDS, Hazard.SPENDS))
    handle = submitted(begin(SEND))
    first = asked(handle, 1)
    site.become(hazards=(Hazard.SPENDS,))
    handle.approve(first.id)
    assert handle.result(PATIENCE).ok
    assert (times_asked(handle), len(site.sent)) == (1, 1)


def test_approval_of_a_model_s_own_request_holds_for_its_facts(begin, site):
    handle = submitted(begin({**SEND, "Status": "CONFIRM", "Comment": "may I?"}))
    first = asked(handle, 1)
    assert first.reason == "may I?; rule 1 of the policy (send sends); it would send to the shop"
    site.become(recipient="somebody else")
    handle.approve(first.id)
    second = asked(handle, 2)
    assert site.sent == []
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [("a", "somebody else")]


def test_later_action_of_an_approved_list_is_compared_too(begin, site):
    site.next_recipient = "the next one"
    handle = submitted(begin({"Status": "CONTINUE", "Actions": [SEND, {**SEND, "Args": {"text": "b"}}]}))
    handle.approve(asked(handle, 1).id)
    second = asked(handle, 2)
    assert [action.arguments["text"] for action in second.actions] == ["b"]
    assert site.sent == [("a", "the shop")]
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [("a", "the shop"), ("b", "the next one")]


@pytest.mark.parametrize("others", [{}, {"recipient": "somebody else"}])
def test_approval_in_the_next_process_holds_for_what_was_shown(begin, site, others):
    supervisor = begin(SEND)
    handle = submitted(supervisor)
    asked(handle, 1)
    supervisor.stop()
    site.become(**others)
    handle = begin(SEND).handle("t")
    handle.approve(handle.approvals()[0].id)
    if others:
        second = asked(handle, 2)
        assert site.sent == []
        handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [("a", site.facts.recipient)]


def test_second_request_stays_open_in_the_next_process(begin, site):
    supervisor = begin(SEND)
    handle = submitted(supervisor)
    first = asked(handle, 1)
    site.become(recipient="somebody else")
    handle.approve(first.id)
    second = asked(handle, 2)
    supervisor.stop()
    handle = begin(SEND).handle("t")
    assert [request.id for request in handle.approvals()] == [second.id]
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [("a", "somebody else")]


@pytest.mark.parametrize("restarted", [False, True])
def test_approval_for_the_task_holds_for_what_was_shown(begin, site, restarted):
    def app(request):
        if len(site.sent) == 2 and site.facts.recipient == "the shop":
            site.become(recipient="somebody else")
        return SEND if len(site.sent) < 3 else FINISH

    supervisor = begin(app=app)
    handle = submitted(supervisor)
    handle.approve(asked(handle, 1).id, remember=True)
    second = asked(handle, 2)
    assert site.sent == [("a", "the shop")] * 2
    if restarted:
        supervisor.stop()
        handle = begin(app=app).handle("t")
    handle.approve(second.id)
    assert handle.result(PATIENCE).ok
    assert site.sent == [*[("a", "the shop")] * 2, ("a", "somebody else")]


def test_call_that_changes_at_each_approval_is_given_up(begin, site):
    handle = submitted(begin(SEND))
    for number in range(1, 5):
        request = asked(handle, number)
        site.become(recipient=f"recipient {number}")
        handle.approve(request.id)
    assert handle.result(PATIENCE).ok
    assert (times_asked(handle), site.sent) == (4, [])
    errors = [event.data.get("error", "") for event in handle.events()]
    assert "not done: each time that a person had approved send, it had changed" in errors


SHOWN = ActionFacts(hazards=(Hazard.SENDS,), resources=("site:shop",), recipient="the shop")


@pytest.mark.parametrize(
    ("current", "covered"),
    [
        (SHOWN, True),
        (ActionFacts(), True),
        (ActionFacts(recipient="somebody else"), True),
        (SHOWN.model_copy(update={"recipient": ""}), False),
        (SHOWN.model_copy(update={"hazards": (Hazard.SPENDS,)}), False),
        (SHOWN.model_copy(update={"resources": ("site:other",)}), False),
    ],
)
def test_facts_cover_equal_and_fewer_ones(current, covered):
    assert SHOWN.covers(current) is covered
