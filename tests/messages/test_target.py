"""Targets that are offered to several kinds of agents, and the control at a point of their pictures."""

from __future__ import annotations

import pytest

from callboard.messages import Box, Control, Observation, Target, TargetKind
from support import PNG

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
def test_all_kinds_lease_a_target_together_and_surfaces_know_it(group):
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


def part(name, x, y, width, height, **more):
    return Control(id=name, name=name, kind="part", box=Box(x=x, y=y, width=width, height=height), **more)


def test_control_at_a_point_is_the_smallest_visible_one_there():
    parts = (
        part("window", 0, 0, 100, 100),
        part("pane", 0, 0, 50, 50),
        part("button", 10, 10, 20, 20),
        part("its label", 10, 10, 20, 20),
        part("hidden", 12, 12, 2, 2, visible=False),
        Control(id="placeless", name="", kind="part"),
    )
    for given in (parts, parts[::-1]):
        seen = Observation(controls=given)
        assert seen.at(12, 12).id in {"button", "its label"}
        assert [seen.at(*point).id for point in ((30, 30), (49, 0), (50, 0), (99, 99))] == [
            "pane",
            "pane",
            "window",
            "window",
        ]
    assert Observation(controls=parts).at(12, 12).id == "its label"
    assert Observation(controls=parts).at(100, 0) is None


@pytest.mark.parametrize(("picture", "size"), [(None, None), (b"", None), (b"GIF89a" * 9, None), (PNG, (1, 1))])
def test_the_size_of_a_picture_is_read_from_its_head(picture, size):
    assert Observation(picture=picture).picture_size == size
