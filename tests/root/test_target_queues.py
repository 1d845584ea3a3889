"""The lease book: one target, one lease, first in first out."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.root._target_queues import LeaseBook
from callboard.actors.runtime import Leases
from callboard.messages import Assign, Target, TargetKind

ONE, TWO = "app/memo/one", "app/memo/two"


def assign(number, address=ONE):
    return Assign(task_id="task-1", run_id=f"task-1~{number}", address=address, number=number, request="work")


@pytest.fixture
def leases():
    return Leases()


@pytest.fixture
def book(leases):
    return LeaseBook(leases)


def test_a_free_target_is_granted_at_once_with_a_valid_lease(book, leases):
    granted, _ = book.request(assign(1))
    assert granted == assign(1).model_copy(update={"token": granted.token})
    assert leases.get(granted.token).valid
    assert leases.get(granted.token).target == ONE


def test_a_taken_target_is_waited_for_and_the_wait_is_counted(book):
    book.request(assign(1))
    assert [book.request(assign(number)) for number in (2, 3)] == [(None, 1), (None, 2)]


def test_targets_are_granted_side_by_side(book):
    assert book.request(assign(1))[0] is not None
    assert book.request(assign(2, TWO))[0] is not None


def test_a_target_that_is_given_back_goes_to_the_one_who_waited_longest(book, leases):
    first, _ = book.request(assign(1))
    for number in (2, 3):
        book.request(assign(number))
    abandoned, second = book.free(first.token)
    assert (abandoned, second.number) == (None, 2)
    assert not leases.get(first.token).valid
    assert leases.get(second.token).valid


def test_a_void_lease_still_takes_its_target(book, leases):
    granted, _ = book.request(assign(1))
    book.void(granted.token)
    assert not leases.get(granted.token).valid
    assert book.request(assign(2)) == (None, 1)


def test_a_target_is_given_back_once(book):
    first, _ = book.request(assign(1))
    book.request(assign(2))
    book.request(assign(3))
    _, second = book.free(first.token)
    assert second.number == 2
    assert book.free(first.token) == (None, None)
    assert book.request(assign(4)) == (None, 2)


def test_unknown_token_frees_and_abandons_no_target(book):
    assert book.free(99) == (None, None)
    assert book.abandon(99) is None
    book.void(99)
    assert book.abandoned == ()


def test_an_abandoned_target_is_named_until_it_is_given_back(book):
    granted, _ = book.request(assign(1))
    assert book.abandon(granted.token) == ONE
    assert book.abandoned == (ONE,)
    assert book.request(assign(2)) == (None, 1)
    freed, second = book.free(granted.token)
    assert (freed, second.number) == (ONE, 2)
    assert book.abandoned == ()
    assert book.free(second.token) == (None, None)


def test_a_call_stuck_after_its_target_was_freed_abandons_nothing(book):
    granted, _ = book.request(assign(1))
    book.free(granted.token)
    assert book.abandon(granted.token) is None
    assert book.abandoned == ()


def test_a_withdrawn_request_is_not_granted_and_later_ones_move_up(book):
    first, _ = book.request(assign(1))
    book.request(assign(2))
    book.request(assign(3))
    book.withdraw(assign(2))
    assert book.free(first.token)[1].number == 3


def test_unused_target_leaves_no_record(book):
    first, _ = book.request(assign(1))
    book.free(first.token)
    assert book._slots == {}
    assert book._keys == {}


def test_targets_of_one_group_are_leased_one_after_the_other(book):
    def on_desktop(number, address):
        target = Target(
            id=address, name=address, kind=TargetKind.WINDOW, address=address, server="x", group="desktop:0"
        )
        return assign(number, address).model_copy(update={"target": target})

    first, _ = book.request(on_desktop(1, ONE))
    assert book.request(on_desktop(2, TWO)) == (None, 1)
    assert book.abandon(first.token) == ONE
    assert book.abandoned == (ONE,)
    abandoned, second = book.free(first.token)
    assert (abandoned, second.address) == (ONE, TWO)


@given(st.lists(st.tuples(st.sampled_from(["request", "free", "withdraw", "abandon"]), st.sampled_from([ONE, TWO]))))
def test_each_target_has_at_most_one_lease_and_its_queue_keeps_its_order(turns):
    leases = Leases()
    book = LeaseBook(leases)
    holder, stuck = {}, set()
    queues = {ONE: collections.deque(), TWO: collections.deque()}
    for number, (turn, address) in enumerate(turns, 1):
        granted = None
        if turn == "request":
            granted, ahead = book.request(assign(number, address))
            queues[address].append(number)
            assert granted is not None or ahead == len(queues[address])
        elif turn == "withdraw" and queues[address]:
            book.withdraw(assign(queues[address].pop(), address))
        elif turn == "abandon" and address in holder:
            assert book.abandon(holder[address]) == address
            stuck.add(address)
        elif turn == "free" and address in holder:
            freed, granted = book.free(holder.pop(address))
            assert freed == (address if address in stuck else None)
            stuck.discard(address)
        if granted is not None:
            assert granted.address not in holder
            assert granted.number == queues[granted.address].popleft()
            holder[granted.address] = granted.token
        assert (address in holder) or not queues[address]
        assert set(book.abandoned) == stuck
    assert all(leases.get(token).valid for token in holder.values())
