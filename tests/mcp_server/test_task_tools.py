"""The tools, called by a client of the MCP library."""

from __future__ import annotations

import json

import pytest

from callboard.messages import ApprovalRequest
from support import ASK, FINISH, PATIENCE, append, wait_for

RUN = {"request": "write it", "target": "memo:one"}


async def call(client, tool, **arguments):
    """Call a tool that must succeed, and give its report."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client, tool, **arguments):
    """Call a tool that must fail, and give the reason."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.content[0].text


async def test_a_task_runs_and_its_report_is_honest(desk):
    async with desk(app=[append("x", "FINISH")]).client() as client:
        report = await call(client, "run_task", **RUN)
    assert (report["status"], report["outcome"], report["verified"]) == ("completed", "finished", None)
    assert report["summary"] == "finished, and not verified: it has no checks"
    assert report["changed"] == ["memo:one"]


@pytest.mark.parametrize(
    ("check", "status", "verified"),
    [pytest.param("x", "completed", True, id="held"), pytest.param("y", "failed", False, id="not-held")],
)
async def test_a_report_is_verified_only_if_all_checks_held(desk, check, status, verified):
    checks = [{"control": {"target": "memo:one", "name": "field-1"}, "path": "/detail/text", "equals": check}]
    opened = desk(app=lambda _: append("x", "FINISH"), limits={"check_retries": 0})
    async with opened.client() as client:
        report = await call(client, "run_task", **RUN, checks=checks)
    assert (report["status"], report["verified"]) == (status, verified)
    assert [entry["held"] for entry in report["checks"]] == [verified]


def nested(levels):
    """Make lists within each other."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


WRONG = [
    ("run_task", {"dryrun": True}, "dryrun: unknown key; did you mean 'dry_run'?"),
    ("run_task", {"policy": []}, "policy: unknown key"),
    ("run_task", {"x" * 100_000: 1}, "unknown key"),
    ("run_task", {"key": "k" * 101}, "key: must have at most 100 characters"),
    ("run_task", {"checks": [{"file": "a.csv", "x" * 100_000: 1}]}, "unknown key"),
    ("run_task", {"output_schema": {"const": nested(150)}}, "nested in more than 64 levels"),
    ("run_task", {"checks": [{"file": "a.csv", "args": {"a": nested(150)}}]}, "nested in more than 64 levels"),
    ("run_task", {"output_schema": {"const": "\ud800"}}, r"the text '\ud800' has half of a character"),
    ("list_tasks", {"before": 2**63}, "before: must be at most"),
    ("task_status", {"task_id": "x", "read": 0}, "read: unknown key; did you mean 'read_from'?"),
]


@pytest.mark.parametrize(("tool", "arguments", "reason"), WRONG)
async def test_wrong_argument_is_refused_with_a_short_reason(desk, tool, arguments, reason):
    async with desk(app=[append("x", "FINISH")]).client() as client:
        text = await refused(client, tool, **(RUN if tool == "run_task" else {}), **arguments)
        assert reason in text
        assert len(text) < 2_100
        assert "pydantic" not in text
        assert not (await call(client, "list_tasks"))["tasks"]
        listed = (await client.list_tools()).tools
    assert all(listed_tool.input_schema["additionalProperties"] is False for listed_tool in listed)


async def test_progress_is_told_while_a_call_waits(desk):
    told = []

    async def progress(number, _total, text):
        told.append((number, text))

    async with desk(app=[append("x"), FINISH]).client() as client:
        await client.call_tool("run_task", RUN, progress_callback=progress)
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    assert any("step started" in text for _, text in told)


async def test_a_call_ends_before_its_task(desk):
    opened = desk(app=[ASK, FINISH])
    async with opened.client() as client:
        report = await call(client, "run_task", **RUN, wait_seconds=0)
        assert (report["outcome"], report["task_id"][:10]) == (None, "mcp-local-")
        report = await call(client, "wait_for_task", task_id=report["task_id"], wait_seconds=50)
        assert report["status"] == "input_required"


async def test_a_caller_answers_the_question_of_an_agent(desk):
    opened = desk(app=[ASK, FINISH])
    async with opened.client() as client:
        report = await call(client, "run_task", **RUN, wait_seconds=50)
        (waiting,) = report["waiting_for"]
        assert (waiting["kind"], waiting["text"]) == ("question", "which one?")
        await call(client, "answer_question", task_id=report["task_id"], question_id=waiting["id"], answers=["this"])
        report = await call(client, "wait_for_task", task_id=report["task_id"], wait_seconds=50)
    assert report["outcome"] == "finished"


async def test_a_caller_can_not_approve_for_itself(desk):
    opened = desk(app=lambda _: append("a"), policy=[{"verdict": "approve"}])
    async with opened.client() as client:
        report = await call(client, "run_task", **RUN, wait_seconds=50)
        (waiting,) = report["waiting_for"]
        assert (report["status"], waiting["kind"]) == ("input_required", "approval")
        assert "at the front desk" in waiting["answered_by"]
        reason = await refused(
            client, "answer_question", task_id=report["task_id"], question_id=waiting["id"], answers=["approve"]
        )
    assert reason.endswith("this is a request for a person (approval): at the front desk")
    assert opened.supervisor.status().approvals


async def test_a_caller_can_not_raise_its_own_limit(desk):
    opened = desk(app=lambda _: append("x"), budget={"task": {"steps": 1}, "at_limit": "ask"})
    async with opened.client() as client:
        report = await call(client, "run_task", **RUN, wait_seconds=50)
        (waiting,) = report["waiting_for"]
        assert waiting["kind"] == "limit"
        answer = {"task_id": report["task_id"], "question_id": waiting["id"], "answers": ["100"]}
        assert "for a person (limit)" in await refused(client, "answer_question", **answer)


async def test_no_elicitation_without_the_right_of_the_caller(desk):
    asked = []

    async def elicited(_context, params):
        asked.append(params)
        raise AssertionError

    opened = desk(app=lambda _: append("a"), policy=[{"verdict": "approve"}])
    async with opened.client(elicitation_callback=elicited) as client:
        report = await call(client, "run_task", **RUN, wait_seconds=50)
    assert (report["waiting_for"][0]["kind"], asked) == ("approval", [])


async def test_a_cancelled_task_says_so(desk):
    async with desk(app=[ASK]).client() as client:
        report = await call(client, "run_task", **RUN, wait_seconds=50)
        report = await call(client, "cancel_task", task_id=report["task_id"])
        assert (report["status"], report["outcome"]) == ("cancelled", "cancelled")
        assert "cancelled by the caller local" in report["others_texts"]["causes"][0]


async def test_the_same_key_is_the_same_task(desk):
    async with desk(app=lambda _: append("x", "FINISH")).client() as client:
        ids = {(await call(client, "run_task", **RUN, key="k"))["task_id"] for _ in range(2)}
        assert len(ids) == 1
        assert "was used before" in await refused(client, "run_task", **{**RUN, "request": "other"}, key="k")
        assert len((await call(client, "list_tasks"))["tasks"]) == 1


async def test_a_long_result_is_cut_and_read_on(desk):
    output = "ä" * 50_000
    async with desk(app=lambda _: {**append("x", "FINISH"), "Result": output}).client() as client:
        report = await call(client, "run_task", **RUN)
        assert (report["cut"], report["others_texts"]["output"]) == (True, None)
        assert len(report["others_texts"]["output_part"]) == 20_000
        text, offset = "", 0
        while offset is not None:
            part = (await call(client, "task_status", task_id=report["task_id"], read_from=offset))["result_part"]
            text, offset = text + part["text"], part["next_offset"]
    assert json.loads(text)["others_texts"]["output"] == output


async def test_a_secret_is_redacted_in_reports(desk):
    secrets = {"pin": {"value": "9876-5432"}}
    async with desk(
        app=lambda _: {**append("x", "FINISH"), "Result": "it is 9876-5432"}, secrets=secrets
    ).client() as c:
        report = await call(c, "run_task", **RUN)
        whole = await call(c, "task_status", task_id=report["task_id"], read_from=0)
        lines = await call(c, "list_tasks")
    assert "9876-5432" not in json.dumps([report, whole, lines])


async def test_a_dry_run_lists_its_actions(desk):
    async with desk(app=[append("x", "FINISH")]).client() as client:
        report = await call(client, "run_task", **RUN, dry_run=True)
    assert report["summary"].endswith("a dry run, so nothing was changed")
    assert report["others_texts"]["would_do"]


async def test_another_callers_task_is_unknown(desk):
    opened = desk({"ann": {}, "bob": {}}, app=lambda _: append("x", "FINISH"))
    async with opened.client("ann") as ann, opened.client("bob") as bob:
        task_id = (await call(ann, "run_task", **RUN, key="k"))["task_id"]
        unknown = (await refused(bob, "task_status", task_id="mcp-ann-none")).replace("mcp-ann-none", task_id)
        for tool in ("task_status", "wait_for_task", "cancel_task"):
            assert (await refused(bob, tool, task_id=task_id)).split(":", 1)[1] == unknown.split(":", 1)[1]
        own_id = (await call(bob, "run_task", **RUN, key="k"))["task_id"]
        assert own_id != task_id
        assert [entry["task_id"] for entry in (await call(bob, "list_tasks"))["tasks"]] == [own_id]
        program_task = opened.supervisor.submit(
            opened.supervisor.handle(task_id).task.model_copy(update={"id": "own", "key": None, "labels": {}})
        )
        program_task.result(PATIENCE)
        assert "there is no task" in await refused(ann, "task_status", task_id="own")


async def test_a_caller_has_a_number_of_open_tasks(desk):
    opened = desk({"ann": {"tasks": 2}}, app=lambda _: ASK)
    async with opened.client("ann") as client:
        first = await call(client, "run_task", **RUN, key="1", wait_seconds=0)
        await call(client, "run_task", **RUN, key="2", wait_seconds=0)
        assert "2 of your tasks are not over" in await refused(client, "run_task", **RUN, key="3", wait_seconds=0)
        again = await call(client, "run_task", **RUN, key="1", wait_seconds=0)
    assert again["task_id"] == first["task_id"]


async def test_key_of_an_ended_task_is_that_task_in_any_case(desk, workspace):
    """Open tasks are at their limit, the document is gone, and the operator has changed the rights."""
    run = {"request": "read it", "documents": ["prices.csv"], "target": "prices.csv", "key": "1"}
    given = {"documents": {"workspace": workspace}, "app": lambda request: FINISH if "read" in request.request else ASK}
    opened = desk({"ann": {"tasks": 1}}, **given)
    async with opened.client("ann") as client:
        first = await call(client, "run_task", **run)
        assert first["outcome"] == "finished"
        opened.supervisor.stop()
    (workspace / "prices.csv").unlink()
    opened = desk({"ann": {"tasks": 1, "budget": {"steps": 3}, "targets": ["sub/*"]}}, **given)
    async with opened.client("ann") as client:
        other = {"request": "ask", "target": "sub/costs.csv"}
        await call(client, "run_task", **other, key="2", wait_seconds=0)
        assert "1 of your tasks are not over" in await refused(client, "run_task", **other, key="3")
        assert (await call(client, "run_task", **run))["task_id"] == first["task_id"]
        for change in (
            {"request": "ask"},
            {"dry_run": True},
            {"target": "sub/costs.csv"},
            {"checks": [{"cells": "x"}]},
        ):
            assert "was used before" in await refused(client, "run_task", **(run | change))


async def test_rights_of_a_caller_narrow_its_tasks(desk):
    rights = {"policy": [{"verdict": "deny", "tool": "append"}], "budget": {"steps": 2}, "limits": {"steps": 10_000}}
    opened = desk({"ann": rights}, app=lambda _: append("x"))
    async with opened.client("ann") as client:
        report = await call(client, "run_task", **RUN)
    task = opened.supervisor.handle(report["task_id"]).task
    assert (report["actions"], report["steps"]) == (0, 2)
    assert task.limits.steps == opened.supervisor.settings.limits.steps


async def test_a_killed_supervisor_resumes_the_task_of_a_key(desk):
    opened = desk(app=[ASK, FINISH])
    async with opened.client() as client:
        first = await call(client, "run_task", **RUN, key="k", wait_seconds=50)
    opened.supervisor.stop()
    opened = desk(app=[ASK, FINISH])
    async with opened.client() as client:
        again = await call(client, "run_task", **RUN, key="k", wait_seconds=50)
        assert (again["task_id"], again["waiting_for"]) == (first["task_id"], first["waiting_for"])
    assert not isinstance(wait_for(lambda: opened.supervisor.status().questions)[0], ApprovalRequest)
