"""The library's own threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from callboard.actors.runtime import mark_own_thread, refuse_own_thread
from callboard.messages import WouldDeadlockError
from support import PATIENCE


def test_a_thread_of_the_host_program_may_block():
    refuse_own_thread("stop")
    assert threading.current_thread() is threading.main_thread()


def test_thread_of_ours_may_not_block_and_the_error_names_it():
    def ours():
        mark_own_thread()
        refuse_own_thread("result")

    with (
        ThreadPoolExecutor(1, thread_name_prefix="ours") as pool,
        pytest.raises(WouldDeadlockError, match="result blocks, but was called on ours"),
    ):
        pool.submit(ours).result(PATIENCE)


def test_marking_one_thread_does_not_mark_others():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(mark_own_thread).result(PATIENCE)
    refuse_own_thread("stop")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(refuse_own_thread, "stop").result(PATIENCE)
