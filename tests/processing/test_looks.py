"""The calls of a step to its surface: one picture, and a fingerprint per action with effect once."""

from __future__ import annotations

import pytest

from callboard import Server, tool
from callboard.messages import Control, Effect, Observation, Target, TargetKind
from support import FINISH, PATIENCE, PNG, action, actions, lone

ONCE = 5


class Page(Server):
    """A page that counts how it is looked at, and changes with each click."""

    name = "pages"
    pictures = True

    def __init__(self, loading=0):
        self.clicks = self.pictured = self.looks = self.fingerprints = 0
        self.loading = loading
        self.left = 0

    def targets(self):
        page = Target(id="page", name="Page", kind=TargetKind.WINDOW, address="app/pages/page", server=self.name)
        return (page,)

    def observe(self, target, look):
        self.looks += 1
        self.pictured += look.picture
        controls = (Control(id="more", name="More", kind="button"),)
        text = "" if self.left else f"clicked {self.clicks} times"
        return Observation(
            controls=controls,
            text=text,
            picture=PNG if look.picture else None,
            fingerprint=f"{self.clicks} {bool(self.left)}",
        )

    @tool(effect=Effect.ONCE)
    def press(self) -> None:
        """Press a key."""
        self._act()

    @tool(effect=Effect.ONCE)
    def click(self, control_id: str) -> None:
        """Click on a control."""
        self._act()

    def _act(self):
        self.clicks += 1
        self.left = self.loading


class Cheap(Page):
    """The same, with a fingerprint that costs no look."""

    def fingerprint(self, target):
        self.fingerprints += 1
        return f"{self.clicks} {bool(self.left)}"


class Loading(Cheap):
    """A page that looks finished for a while before the result of a click comes."""

    def busy(self, target):
        self.left = max(0, self.left - 1)
        return self.left > 0


def run(start, page, *answers):
    """Run a task on a page; give the texts and pictures that the model was shown."""
    shown = []

    def app(request):
        shown.append((request.observation.text, request.observation.picture))
        return answers[request.call - 1]

    result = start(app=app, servers=[page]).submit(lone("page")).result(PATIENCE)
    assert result.ok, result.causes
    return shown


def test_a_list_of_actions_takes_one_picture_and_a_fingerprint_each(start):
    page = Cheap()
    run(start, page, actions(*[action("press")] * ONCE, status="FINISH"))
    assert page.clicks == ONCE
    assert (page.looks, page.pictured) == (1, 1)
    assert page.fingerprints <= ONCE + 1


def test_a_control_that_did_not_change_is_found_without_a_look(start):
    page = Cheap()
    run(start, page, actions(action("click", "more"), status="FINISH"))
    assert (page.looks, page.pictured, page.fingerprints) == (1, 1, 1)


@pytest.mark.parametrize("kind", [Page, Cheap])
def test_controls_are_found_again_in_one_look_an_action_without_a_picture(start, kind):
    page = kind()
    run(start, page, actions(*[action("click", "more")] * ONCE, status="FINISH"))
    assert page.clicks == ONCE
    assert page.pictured == 1
    assert page.looks <= ONCE + 1


@pytest.mark.parametrize("kind", [Page, Cheap])
def test_each_step_takes_one_picture_also_of_a_surface_that_settles(start, kind):
    page = kind()
    shown = run(start, page, actions(action("press")), actions(action("press")), FINISH)
    assert shown == [(f"clicked {count} times", PNG) for count in range(3)]
    assert page.pictured == len(shown)


def test_busy_page_is_waited_for(start):
    page = Loading(loading=4)  # equal fingerprints alone would end the wait at once
    shown = run(start, page, actions(action("press")), FINISH)
    assert [text for text, _ in shown] == ["clicked 0 times", "clicked 1 times"]
    assert page.pictured == len(shown)
