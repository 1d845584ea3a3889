"""Leases and effects: the effects that may still commit."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from callboard.actors.runtime import Lease, Leases
from callboard.messages import LeaseVoidError
from callboard.surfaces import EffectGuard, committing, foresee
from support import HELD, PATIENCE


@pytest.fixture
def lease():
    return Lease("app/memo/one", 7)


@pytest.fixture
def guard(lease):
    return EffectGuard(lease)


def test_a_effect_under_a_valid_lease_commits_and_its_files_are_noted_once(guard):
    with guard.active():
        for name in ("a.docx", "b.xlsx", "a.docx"):
            with committing(Path(name)):
                pass
    assert guard.artifacts == ["a.docx", "b.xlsx"]


def test_a_effect_under_a_void_lease_is_refused_before_it_begins(lease, guard):
    lease.void()
    lease.void()
    assert not lease.valid
    refusal = pytest.raises(LeaseVoidError, match=r"lease 7 on 'app/memo/one' is void")
    with guard.active(), refusal, committing(Path("a.docx")):
        pytest.fail("the body ran")
    assert guard.artifacts == []


def test_a_void_effect_is_refused_and_other_effect_of_its_lease_are_not(lease, guard):
    other = EffectGuard(lease)
    guard.void()
    with pytest.raises(LeaseVoidError), guard.committing():
        pytest.fail("the body ran")
    with other.committing():
        done = True
    assert done


@pytest.mark.parametrize("what", ["lease", "effect"])
def test_void_lease_or_effect_foresees_no_change(lease, what):
    kept = []
    guard = EffectGuard(lease, keeper=SimpleNamespace(foresee=lambda *note: kept.append(note)))
    with guard.active():
        foresee(Path("a.docx"), "", "1", "answer")
        {"lease": lease, "effect": guard}[what].void()
        with pytest.raises(LeaseVoidError):
            foresee(Path("a.docx"), "1", "2", "answer")
    assert kept == [("a.docx", "", "1", "answer")]


def test_a_commit_that_fails_notes_no_file_and_lets_the_lease_go(lease, guard):
    with guard.active(), pytest.raises(LookupError), committing(Path("a.docx")):
        raise LookupError
    assert guard.artifacts == []
    lease.void()
    assert not lease.valid


def test_without_a_lease_a_tool_is_not_restricted():
    with committing(Path("a.docx")):
        done = True
    assert done


def test_a_effect_is_asked_only_while_it_is_active(lease, guard):
    with guard.active():
        pass
    lease.void()
    with committing():
        done = True
    assert done


def test_a_effect_is_asked_in_a_thread_that_copies_its_context(lease, guard):
    lease.void()
    with guard.active():
        context = contextvars.copy_context()

    def commit():
        with committing():
            pytest.fail("the body ran")

    with ThreadPoolExecutor(1) as pool, pytest.raises(LeaseVoidError):
        pool.submit(context.run, commit).result(PATIENCE)


@pytest.mark.parametrize("what", ["lease", "effect"])
def test_void_lets_no_commit_through_after_it_returned(lease, guard, what):
    inside, let_go, voided = threading.Event(), threading.Event(), threading.Event()

    def commit():
        with guard.committing():
            inside.set()
            assert let_go.wait(HELD)
            return voided.is_set()

    def void():
        (lease if what == "lease" else guard).void()
        voided.set()

    with ThreadPoolExecutor(2) as pool:
        committed = pool.submit(commit)
        assert inside.wait(PATIENCE)
        voiding = pool.submit(void)
        let_go.set()
        assert committed.result(PATIENCE) is False
        voiding.result(PATIENCE)
    with pytest.raises(LeaseVoidError), guard.committing():
        pytest.fail("the body ran")


def test_a_nested_commit_of_the_same_call_does_not_wait_for_itself(guard):
    def commit_twice():
        with guard.committing(), guard.committing():
            return True

    done = []
    thread = threading.Thread(target=lambda: done.append(commit_twice()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert done == [True]


def test_a_granted_lease_is_found_by_its_token_until_it_is_dropped():
    leases = Leases()
    lease = leases.grant("app/memo/one")
    assert leases.get(lease.token) is lease
    leases.drop(lease.token)
    leases.drop(lease.token)
    assert not lease.valid
    assert not leases.get(lease.token).valid


def test_a_token_that_was_never_granted_is_a_void_lease():
    assert not Leases().get(3).valid


def test_no_two_leases_share_a_token_whatever_thread_asks():
    leases = Leases()
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: leases.grant("app/memo/one").token, range(500)))
    assert len(set(tokens)) == 500
    assert 0 not in tokens


def test_a_file_that_was_not_there_before_was_made_by_the_call(guard, tmp_path):
    old, new = tmp_path / "old.docx", tmp_path / "new.docx"
    old.touch()
    with guard.active():
        for path in (old, new, new):
            with committing(path):
                path.touch()
    assert guard.artifacts == [str(old), str(new)]
    assert guard.new_artifacts == [str(new)]


def test_a_lease_is_not_void_while_a_message_is_kept_under_it(lease):
    voiding = threading.Thread(target=lease.void, daemon=True)
    with lease.order:
        voiding.start()
        while lease.lock.acquire(blocking=False):  # until the thread has it, and waits for the other
            lease.lock.release()
        assert lease.valid
    voiding.join(PATIENCE)
    assert not lease.valid
