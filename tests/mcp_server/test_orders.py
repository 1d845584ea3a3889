"""Tasks of callers, narrowed by their rights, and attacks by their arguments."""

from __future__ import annotations

import contextlib

import pytest

from callboard.config import CallerRights, Settings
from callboard.mcp_server._callers import LABEL, Caller
from callboard.mcp_server._orders import Order, RefusedOrderError, task_of
from callboard.messages import Routine
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import MemoryServer


@pytest.fixture
def ordered(workspace):
    """Make the task of an order, with the targets of the workspace."""
    settings = Settings.load(documents={"workspace": workspace})
    targets = DocumentSurface(workspace).targets()

    subtask = {"target": "${source}", "kind": "app", "request": "read", "steps": [{"status": "FINISH"}]}
    parameters = {"source": {"value": "a.docx", "document": True}}
    routine = Routine.model_validate(
        {"routine": "monthly", "request": "read it", "parameters": parameters, "subtasks": [subtask]}
    )

    def order(arguments, **rights):
        caller = Caller("ann", CallerRights(**rights))
        return task_of(Order(**{"request": "do it", **arguments}), caller, settings, targets, {"monthly": routine})

    return order


def test_only_named_routines_are_repeated_for_callers_with_all_targets(ordered):
    task = ordered({"routine": "monthly", "parameters": {"source": "b.docx"}})
    assert (task.routine.routine, task.parameters) == ("monthly", {"source": "b.docx"})
    with pytest.raises(RefusedOrderError, match="there is no routine '/etc/passwd'"):
        ordered({"routine": "/etc/passwd"})
    with pytest.raises(RefusedOrderError, match="ann has no routines"):
        ordered({"routine": "monthly"}, **ONE)
    with pytest.raises(RefusedOrderError, match="belong to a routine"):
        ordered({"parameters": {"source": "b.docx"}})


ONE = {"targets": ("sub/*",)}


def test_an_order_becomes_a_task_in_the_namespace_of_its_caller(ordered):
    task = ordered({"key": "k", "documents": ["prices.csv"]})
    assert (task.key, task.labels) == ("mcp:ann:k", {LABEL: "ann"})
    assert task.id.startswith("mcp-ann-")
    assert task.request == "do it\n\nDocuments: prices.csv"
    assert (task.target, task.may_change, task.secrets) == (None, (), {})


def test_one_document_is_the_target_of_a_caller_with_some_targets(ordered):
    task = ordered({"documents": ["sub/costs.csv"]}, **ONE)
    assert task.target == "sub/costs.csv"


OUTSIDE = ["../secret.csv", "/etc/passwd", "~/x.csv", "sub/../../secret.csv", "link.csv", "sub\\costs.csv", "c:x.csv"]
OUTSIDE += ["", ".", "sub", "./prices.csv", "prices.csv\n", "prices.csv\0", "none.csv", "sub//costs.csv"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("argument", ["documents", "may_change"])
def test_a_path_out_of_the_workspace_is_no_document(ordered, name, argument):
    with pytest.raises(RefusedOrderError, match="there is no document"):
        ordered({argument: [name]}, may_change=("*",))


def test_a_document_of_others_is_unknown(ordered):
    for arguments in ({"documents": ["prices.csv"]}, {"target": "prices.csv"}):
        with pytest.raises(RefusedOrderError, match="there is no") as refused:
            ordered(arguments, **ONE)
        assert "prices" not in str(refused.value).replace("prices.csv'", "")


def test_a_caller_with_some_targets_names_one(ordered):
    with pytest.raises(RefusedOrderError, match=r"name one target: ann has the targets sub/costs\.csv"):
        ordered({}, **ONE)


def test_only_named_documents_may_be_overwritten_without_an_approval(ordered):
    assert ordered({"may_change": ["prices.csv"]}, may_change=("pri*",)).may_change == ("prices.csv",)
    for rights in ({}, {"may_change": ("sub/*",)}):
        with pytest.raises(RefusedOrderError, match="may not overwrite prices"):
            ordered({"may_change": ["prices.csv"]}, **rights)


READS = [
    {"program": "audit"},
    {"command": "ls", "equals": ""},
    {"tool": "read_file", "equals": ""},
    {"tool": "read", "target": "elsewhere", "equals": ""},
    {"cells": "x.xlsx!A1", "same_as": {"command": "cat /etc/passwd"}},
    {"text": "prices.csv", "contains": "${secret:pin}"},
    {"table": "prices.csv", "args": {"decimal": "${secret:pin}"}, "exists": True},
]


@pytest.mark.parametrize("check", READS)
def test_a_check_that_runs_something_or_quotes_a_secret_is_refused(ordered, check):
    with pytest.raises(RefusedOrderError):
        ordered({"checks": [check]})


FOREIGN = [
    {"text": "prices.csv", "contains": "pen"},
    {"file": "prices.csv"},
    {"unchanged": ["sub/costs.csv", "prices.csv"]},
    {"only": ["sub/costs.csv"]},
    {"page": {"url": "*"}},
    {"tool": "read", "target": "sub/costs.csv", "equals": ""},
    {"control": {"target": "prices.csv", "name": "a"}, "exists": True},
    {"text": "sub/costs.csv", "same_as": {"text": "prices.csv"}},
]


@pytest.mark.parametrize("check", FOREIGN)
def test_a_check_reads_only_targets_of_its_caller(ordered, check):
    with pytest.raises(RefusedOrderError, match="the check"):
        ordered({"target": "sub/costs.csv", "checks": [check]}, **ONE)


def test_missing_file_that_stays_unchanged_names_no_other_file(ordered):
    with pytest.raises(
        RefusedOrderError, match=r"there is no document 'sub/price\.csv': name it by its path"
    ) as refused:
        ordered({"target": "sub/costs.csv", "checks": [{"unchanged": "sub/price.csv"}]}, **ONE)
    assert "prices" not in str(refused.value)


def test_title_of_a_window_is_no_name_in_a_check_of_some_targets(workspace):
    """A page sets its title, which may be the id of another caller's target."""
    window = MemoryServer.window().model_copy(update={"name": "prices.csv"})
    caller = Caller("ann", CallerRights(targets=(window.id,)))
    settings = Settings.load(documents={"workspace": workspace})
    for name, is_taken in ((window.id, True), ("prices.csv", False)):
        check = {"control": {"target": name, "name": "a"}, "exists": True}
        order = Order(request="do it", target=window.id, checks=(check,))
        with (
            contextlib.nullcontext() if is_taken else pytest.raises(RefusedOrderError, match="name a target by its id")
        ):
            assert task_of(order, caller, settings, [window], {}).checks


def test_a_check_of_its_own_targets_is_taken(ordered):
    checks = [{"text": "sub/costs.csv", "contains": "pen"}, {"unchanged": "sub/costs.csv"}]
    assert len(ordered({"target": "sub/costs.csv", "checks": checks}, **ONE).checks) == 2
    with pytest.raises(RefusedOrderError, match="may have no checks"):
        ordered({"checks": checks}, checks=False)


SCHEMAS = [
    {"type": "string", "pattern": "(a+)+$"},
    {"patternProperties": {"(a+)+$": {}}},
    {"$ref": "https://evil.example/schema"},
    {"enum": ["x" * 30_000]},
    {"const": "${secret:pin}"},
    {"type": "nonsense"},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_that_is_slow_large_or_foreign_is_refused(ordered, schema):
    with pytest.raises(RefusedOrderError):
        ordered({"output_schema": schema})


def test_a_schema_becomes_that_of_the_task(ordered):
    assert ordered({"output_schema": {"type": "integer"}}).output_schema == {"type": "integer"}
