"""Targets that are offered to several kinds of agents."""

from __future__ import annotations

import pytest

from callboard.messages import Target, TargetKind

WINDOW = Target(
    id="w1",
    name="Report",
    kind=TargetKind.WINDOW,
    kinds=("app", "operator"),
    address="app/word/1",
    server="s",
    binds={"path": "a"},
)


def test_a_further_kind_sees_a_target_of_its_own():
    own, further = WINDOW.offers({"app", "operator"})
    assert own is WINDOW
    assert (further.id, further.address, further.binds) == ("operator:w1", "operator/word/1", WINDOW.binds)


@pytest.mark.parametrize("group", ["", "desktop"])
def test_all_kinds_lease_a_target_together_and_servers_know_it(group):
    window = WINDOW.model_copy(update={"group": group})
    own, further = window.offers({"app", "operator"})
    assert own.lease_key == further.lease_key
    assert further.native == window
    assert own.native is own


def test_a_kind_that_there_is_not_is_offered_nothing():
    assert WINDOW.offers({"host", "app"}) == (WINDOW,)


def test_a_target_may_be_for_a_further_kind_alone():
    window = WINDOW.model_copy(update={"kinds": ("operator",)})
    assert [each.id for each in window.offers({"app", "operator"})] == ["operator:w1"]


def test_a_derived_target_can_be_written_and_read():
    further = WINDOW.offers({"operator"})[0]
    assert Target.model_validate_json(further.model_dump_json()) == further
