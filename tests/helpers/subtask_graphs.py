"""Random groups of subtasks, and a model of their ends in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from callboard import Outcome

MOST = 5
"""The most subtasks of one group."""
ROWS = 7
"""The number of rows of the journal for each subtask among which lives end; one that works leaves some more."""


@dataclass(frozen=True)
class Member:
    """A subtask of a group, with its predecessors and its outcome."""

    after: frozenset[int] = frozenset()
    """Places in its group, from 1."""
    after_any: frozenset[int] = frozenset()
    finishes: bool = True
    breaks: bool = False
    """Whether its model raises an error instead of ending it."""
    asks: bool = False
    """Whether it asks a person first."""
    crashes: bool = False
    """Whether its agent crashes once."""
    pauses: int = 0
    """Turns of the event loop that its model takes."""
    waits_for: int = 0
    """A subtask whose model its own waits for; 0 for none."""


@dataclass(frozen=True)
class Kill:
    """A row of the journal at which a life ends."""

    when: str
    """``before`` or ``after``."""
    nth: int


@dataclass(frozen=True)
class Case:
    """Groups that are assigned one after the other, and the kills of the lives before the last one."""

    groups: tuple[tuple[Member, ...], ...]
    width: int = 4
    stops: bool = False
    planned: bool = False
    """Whether its one group is a plan with an order, without a HostAgent's model."""
    kills: tuple[Kill, ...] = ()


@dataclass(frozen=True)
class Ending:
    """The end of a subtask."""

    number: int
    outcome: Outcome
    reason: str
    """Its first cause; empty if it finished."""
    output: str | None
    """None if it did not finish."""


@st.composite
def graphs(draw, *, planned=False):
    """Draw a group; each member may come after earlier ones."""
    group = []
    for place in range(1, draw(st.integers(2, MOST)) + 1):
        earlier = st.frozensets(st.sampled_from(range(1, place)), max_size=2) if place > 1 else st.just(frozenset())
        end = draw(st.sampled_from(["finish"] * 7 + ["fail"] * 2 + ["break"]))
        extra = draw(st.sampled_from([""] * 6 + ["ask", "crash"]))
        member = Member(
            after=draw(earlier),
            finishes=end != "fail",
            breaks=end == "break",
            asks=extra == "ask",
            crashes=extra == "crash",
            pauses=draw(st.integers(0, 4)),
        )
        group.append(member if planned else replace(member, after_any=draw(earlier) - member.after))
    return tuple(group)


@st.composite
def cases(draw):
    """Draw one or two groups, or a plan, and up to three kills."""
    planned = draw(st.integers(0, 3)) == 0
    groups = draw(st.lists(graphs(planned=planned), min_size=1, max_size=1 if planned else 2))
    rows = ROWS * sum(map(len, groups))
    kill = st.builds(Kill, st.sampled_from(["before", "after"]), st.integers(1, rows))
    return Case(
        groups=tuple(groups),
        width=draw(st.sampled_from([4, 2, 8, 1, 3, 5, 6, 7])),
        stops=not planned and draw(st.integers(0, 3)) == 0,
        planned=planned,
        kills=tuple(draw(st.lists(kill, min_size=draw(st.integers(0, 2)), max_size=3))),
    )


def endings_of(case):
    """Work out the ends of all subtasks, in order; those that a failure stops only if they work one after the other."""
    endings = []
    for group in case.groups:
        first = len(endings)
        for place, member in enumerate(group, 1):
            endings.append(_ending(case, member, first + place, endings[first:]))
        if any(ending.outcome is Outcome.ERROR for ending in endings):
            break
    return endings


def _ending(case, member, number, earlier):
    """Work out the end of a subtask: one that comes after a failure, or is stopped by it, never begins."""
    unfinished = [ending for ending in earlier if ending.outcome is not Outcome.FINISHED]
    if case.stops and unfinished:
        return Ending(number, Outcome.CANCELLED, stop_reason(unfinished[0]), None)
    first = number - len(earlier) - 1
    before = next((ending for ending in unfinished if ending.number - first in member.after), None)
    if before is None:
        return own_ending(member, number)
    reason = f"it comes after subtask {before.number}, which ended as {before.outcome.value}"
    return Ending(number, Outcome.CANCELLED, reason, None)


def own_ending(member, number):
    """Give the end of a subtask that works to its end."""
    if member.breaks:
        return Ending(number, Outcome.ERROR, f"the model gave no usable answer: broken {number}", None)
    if member.finishes:
        return Ending(number, Outcome.FINISHED, "", f"result {number}")
    return Ending(number, Outcome.FAILED, "the model said FAIL", None)


def stop_reason(failure):
    """Give the cause of a subtask that a failure stops."""
    return f"subtask {failure.number} ended as {failure.outcome.value}, which stops its group"


def outcome_of(case, endings):
    """Work out a task's outcome: an error ends it; a plan ends as its first step that did not finish."""
    outcomes = [ending.outcome for ending in endings if ending.outcome is not Outcome.FINISHED]
    if Outcome.ERROR in outcomes:
        return Outcome.ERROR
    return outcomes[0] if case.planned and outcomes else Outcome.FINISHED


def reasons_of(case, endings):
    """Work out a task's first causes: the open failures of its last group, and the cause of the one that decides."""
    outcome = outcome_of(case, endings)
    if outcome is Outcome.FINISHED:
        return []
    last = case.groups[0] if len(endings) == len(case.groups[0]) else case.groups[-1]
    failures = [ending for ending in endings[-len(last) :] if ending.outcome is not Outcome.FINISHED]
    deciding = next(ending for ending in failures if ending.outcome is outcome)
    return [*(f"the subtask t~{failed.number} ended as {failed.outcome.value}" for failed in failures), deciding.reason]


def visible_to(case, number):
    """Give the subtasks that one sees: all before its group, and those of it that it comes after, directly or not."""
    first = 0
    for group in case.groups:
        if number <= first + len(group):
            break
        first += len(group)
    ancestors = []
    for member in group:
        parents = member.after | member.after_any
        ancestors.append(parents.union(*(ancestors[place - 1] for place in parents)))
    return [*range(1, first + 1), *sorted(first + place for place in ancestors[number - first - 1])]
