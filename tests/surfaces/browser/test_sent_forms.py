"""Forms that a page may send after an action."""

from __future__ import annotations

import pytest

from callboard.surfaces.browser._sent_forms import SentForms

SHOP, OTHER = "https://shop.example", "https://other.example"
CLICK = ("click", '{"control_id": "b1"}')


@pytest.fixture
def forms():
    """Give the forms of a tab in whose first document a press is done that sends to the shop."""
    sent = SentForms()
    sent.begin(frozenset({SHOP}), 1, CLICK)
    return sent


def test_page_sends_nothing_before_an_action():
    assert not SentForms().admit(SHOP, 1, in_frame=False)


def test_page_sends_one_form_and_one_into_a_frame(forms):
    assert not forms.admit(OTHER, 1, in_frame=False)
    assert forms.admit(SHOP, 1, in_frame=True)
    assert forms.admit(SHOP, 1, in_frame=False)
    assert not forms.admit(SHOP, 1, in_frame=False)
    assert not forms.admit(SHOP, 1, in_frame=True)


def test_each_later_document_sends_one_form_anywhere(forms):
    assert [forms.admit(OTHER, document, in_frame=False) for document in (2, 2, 3)] == [True, False, True]


def test_next_action_may_send_one_form_again(forms):
    assert forms.admit(SHOP, 1, in_frame=False)
    forms.begin(frozenset({SHOP}), 1, CLICK)
    assert forms.admit(SHOP, 1, in_frame=False)
    forms.begin(frozenset(), 1, CLICK)
    assert not forms.admit(SHOP, 2, in_frame=False)


def test_page_sends_all_forms_without_a_policy(forms):
    forms.begin(None, 1, None)
    assert all(forms.admit(OTHER, 1, in_frame=False) for _ in range(3))


def test_stopped_form_is_kept_with_its_call(forms):
    assert (
        forms.stop(OTHER)
        .partition(" (A click")[0]
        .endswith(
            "If the last click was meant to send it, repeat it with the same arguments: it is ruled on as such then."
        )
    )
    assert forms.stopped == {CLICK: {OTHER}}
    forms.begin(frozenset(), 1, None)
    assert forms.stop(SHOP).endswith("by itself; it was stopped.")
