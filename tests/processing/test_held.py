"""Held actions do not overwrite changes made meanwhile: after a pause, a stop, or an approval."""

from __future__ import annotations

import threading

import pytest
from openpyxl import Workbook, load_workbook

from callboard import EventName, Task
from callboard.actors.runtime import Jobs
from callboard.testing import Faults, assert_replays
from support import HELD, PATIENCE

CELLS = ("A1", "A2")
PERSON = {"A1": "a person wrote this", "A2": "and this", "B1": "and that"}
SECOND = {"tool": "write_range", "arguments": {"cell": "A2"}}


def app(request):
    """Write two cells, one after the other, then finish."""
    calls = [
        {"function": "write_range", "arguments": {"sheet": "Sheet", "cell": cell, "values": [[f"new {cell}"]]}}
        for cell in CELLS
    ]
    decided = any(not record.resumed for record in request.memory)
    return {"Status": "FINISH"} if decided else {"Status": "CONTINUE", "Actions": calls}


def cells(path):
    return {cell.coordinate: cell.value for row in load_workbook(path).active for cell in row if cell.value}


def write(path, values):
    """Be a person who writes into the file; with no values, one who leaves it alone."""
    if not values:
        return
    workbook = load_workbook(path)
    for cell, value in values.items():
        workbook.active[cell] = value
    workbook.save(path)


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.xlsx"
    Workbook().save(path)
    return path


@pytest.fixture
def stage(start, tmp_path):
    """Begin supervisors on the folder and its journal; at the end all that they did is replayed."""
    begun = []

    def begin(**sections):
        given = {"policy": [{"verdict": "allow", "tool": "*"}], "journal": {"path": tmp_path / "journal.db"}}
        begun.append(start(servers=[], documents={"workspace": tmp_path}, **{"app": app, **given, **sections}))
        return begun[-1]

    yield begin
    for supervisor in begun:
        supervisor.stop()
    assert_replays(tmp_path / "journal.db")


def begin_list(supervisor, faults):
    """Submit a task, and hold its first write up; return the handle, and an event that lets it go on."""
    begun, go = threading.Event(), threading.Event()

    def hold():
        begun.set()
        assert go.wait(HELD)

    faults.before("effect", hold)
    handle = supervisor.submit(Task(id="t", request="do it", target="book.xlsx"))
    assert begun.wait(PATIENCE)
    return handle, go


@pytest.mark.parametrize("meanwhile", [PERSON, {}], ids=["somebody wrote", "nobody wrote"])
@pytest.mark.parametrize("by", ["pause", "stop"])
def test_the_rest_of_a_list_that_was_held_in_its_middle(stage, book, until, monkeypatch, by, meanwhile):
    supervisor = stage()
    with Faults() as faults:
        handle, go = begin_list(supervisor, faults)
        if by == "pause":
            handle.pause()
            go.set()
            until(handle, EventName.STEP_ENDED)
        else:
            drain = Jobs.drain  # is waited for once the intake is closed, and all is suspended

            def let_go(jobs, timeout):
                go.set()
                return drain(jobs, timeout)

            monkeypatch.setattr(Jobs, "drain", let_go)
            assert supervisor.stop() == ()
    assert cells(book) == {"A1": "new A1"}
    write(book, meanwhile)
    if by == "pause":
        handle.resume()
    else:
        handle = stage().handle("t")
    assert handle.result(PATIENCE).ok
    assert cells(book) == (meanwhile or {"A1": "new A1", "A2": "new A2"})


@pytest.mark.parametrize("meanwhile", [PERSON, {}], ids=["somebody wrote", "nobody wrote"])
def test_a_list_that_was_held_before_it_began(stage, book, until, meanwhile):
    asked, go = threading.Event(), threading.Event()

    def slow(request):
        asked.set()
        assert go.wait(HELD)
        return app(request)

    handle = stage(app=slow).submit(Task(request="do it", target="book.xlsx"))
    assert asked.wait(PATIENCE)
    handle.pause()
    go.set()
    until(handle, EventName.STEP_ENDED)
    write(book, meanwhile)
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert cells(book) == (meanwhile or {"A1": "new A1", "A2": "new A2"})


@pytest.mark.parametrize("meanwhile", [PERSON, {}], ids=["somebody wrote", "nobody wrote"])
@pytest.mark.parametrize("stopped", [False, True], ids=["at once", "in the next process"])
def test_the_rest_of_a_list_that_waited_for_its_approval(stage, book, until, stopped, meanwhile):
    rules = [{"verdict": "approve", **SECOND}, {"verdict": "allow", "tool": "*"}]
    supervisor = stage(policy=rules)
    handle = supervisor.submit(Task(id="t", request="do it", target="book.xlsx"))
    until(handle, EventName.APPROVAL_REQUESTED)
    if stopped:
        supervisor.stop()
    assert cells(book) == {"A1": "new A1"}
    write(book, meanwhile)
    if stopped:
        handle = stage(policy=rules).handle("t")
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert cells(book) == (meanwhile or {"A1": "new A1", "A2": "new A2"})


def test_reads_continue_although_another_program_wrote(stage, book, until):
    asked, go = threading.Event(), threading.Event()

    def reads(request):
        asked.set()
        assert go.wait(HELD)
        read = {"function": "read_range", "arguments": {"sheet": "Sheet", "cells": "A1:A2"}}
        return {"Status": "FINISH"} if request.memory else {"Status": "CONTINUE", "Actions": [read]}

    handle = stage(app=reads).submit(Task(request="read it", target="book.xlsx"))
    assert asked.wait(PATIENCE)
    handle.pause()
    go.set()
    until(handle, EventName.STEP_ENDED)
    write(book, PERSON)
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert EventName.LIST_CUT not in {event.name for event in handle.events()}
