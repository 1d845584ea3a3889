"""Several subtasks in one answer are offered where they may work side by side, by schema and words alike."""

from __future__ import annotations

import json

import pytest

from callboard.actors.processing import MACHINES
from callboard.messages import AgentKind, Observation
from callboard.models.prompt._answer_schema import answer_schema
from callboard.models.prompt._system import system_of
from callboard.testing import MemoryServer

ONE, TWO = (MemoryServer.window(name) for name in ("one", "two"))
SAME_DESKTOP = tuple(target.model_copy(update={"group": "desktop:0"}) for target in (ONE, TWO))


@pytest.mark.parametrize(
    ("targets", "most", "short", "is_offered"),
    [
        ((ONE, TWO), 16, False, True),
        ((ONE,), 16, False, False),
        (SAME_DESKTOP, 16, False, False),
        ((ONE, TWO), 0, False, False),
        ((ONE, TWO), 16, True, False),
    ],
    ids=["two targets", "one target", "one desktop", "one at a time", "a short prompt"],
)
def test_several_subtasks_are_offered_for_targets_of_different_leases(asks, targets, most, short, is_offered):
    request = asks(
        kind=AgentKind.HOST,
        status="CONTINUE",
        statuses=MACHINES[AgentKind.HOST].offered("CONTINUE"),
        observation=Observation(targets=targets),
        most_subtasks=most,
    )
    assert ("Sub-Tasks" in json.dumps(answer_schema(request, short=short))) is is_offered
    assert ("Sub-Tasks" in system_of(request, short=short)) is is_offered
