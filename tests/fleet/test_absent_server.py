"""Supervisors whose server of NATS is absent for a time."""

from __future__ import annotations

import asyncio

import pytest

from callboard import Outcome, Settings, Supervisor
from callboard.fleet import NatsEngine, set_up
from callboard.messages import UnknownTargetError
from callboard.testing import MemoryServer
from support import ASK, FINISH, PATIENCE, lone, wait_for


@pytest.fixture
def member(nats_server, monkeypatch):
    """Start supervisors that serve."""
    monkeypatch.setattr("callboard.fleet._fleet_link.OPEN_SECONDS", 0.5)
    running = []

    def start(name):
        supervisor = Supervisor.start(
            Settings.load(fleet={"url": nats_server.url, "name": name}),
            models={"app": lambda request: ASK if request.request == "ask" else {**FINISH, "Result": name}},
            servers=[MemoryServer(MemoryServer.window(name))],
        )
        running.append(supervisor)
        supervisor.serve()
        return supervisor

    yield start
    for supervisor in running:
        supervisor.stop()


def submitted(supervisor, task):
    """Submit a task once its target is known."""

    def attempt():
        try:
            return supervisor.submit(task)
        except UnknownTargetError:
            return None

    return wait_for(attempt)


def test_supervisor_stops_when_its_server_is_absent(nats_server, member):
    asyncio.run(set_up(nats_server.url))
    there = member("finance-3")
    nats_server.stop()
    assert there.stop() == ()


def test_supervisor_that_never_reached_its_server_stops(nats_server, member):
    nats_server.stop()
    assert member("finance-3").stop() == ()


def test_supervisors_that_start_without_their_server_find_each_other(nats_server, member):
    asyncio.run(set_up(nats_server.url))
    nats_server.stop()
    here = member("desk")
    member("finance-3")
    nats_server.start()
    result = submitted(here, lone("finance-3:memo:finance-3")).result(PATIENCE)
    assert (result.ok, result.output) == (True, "finance-3")


def test_supervisor_that_started_without_its_server_is_told_of_a_cancel(nats_server, member):
    asyncio.run(set_up(nats_server.url))
    nats_server.stop()
    here = member("desk")
    member("finance-3")
    nats_server.start()
    handle = submitted(here, lone("finance-3:memo:finance-3", request="ask"))
    wait_for(handle.questions)
    handle.cancel("enough")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_task_is_done_across_restarts_of_the_server(nats_server, member):
    asyncio.run(set_up(nats_server.url))
    here = member("desk")
    member("finance-3")
    for _ in range(2):
        handle = submitted(here, lone("finance-3:memo:finance-3"))
        nats_server.stop()
        nats_server.start()
        assert handle.result(PATIENCE).output == "finance-3"


async def test_engine_that_was_never_open_closes():
    await NatsEngine("nats://127.0.0.1:1", "finance-3").close()
