"""A provider's model as a judge, and as a HostAgent that proposes checks."""

from __future__ import annotations

import json

import pytest

from callboard import Outcome, Task
from callboard.messages import Judge
from support import ASSIGN, FINISH, PATIENCE, call

READ = {"tool": "read", "target": "memo:one", "args": {"control_id": "field-1"}, "equals": "hello"}
WRITES = call("write", "FINISH", control_id="field-1", text="hello")


@pytest.fixture
def settings(provider):
    return {"models": {"host": "local:small"}, "providers": {"local": {"url": provider.url}}}


@pytest.mark.parametrize("short", [False, True])
def test_a_providers_model_judges_by_the_evidence(start, provider, settings, short):
    settings["providers"]["local"]["short"] = short
    provider.says("Surely.")
    provider.says({"Answers": [{"Reason": "It shows.", "Answer": "no"}]})
    provider.says({"Answers": [{"Reason": "It shows.", "Answer": "yes"}]})
    supervisor = start(app=[WRITES, FINISH], **settings)
    handle = supervisor.submit(Task(request="Say hello", target="memo:one", judge=Judge(question="ok?")))
    result = handle.result(PATIENCE)
    assert (result.outcome, [each.answer for each in result.judged]) == (Outcome.FINISHED, ["yes"])
    assert (result.usage.model_calls, result.usage.input_tokens) == (5, 2100)
    first = json.dumps(provider.requests[0])
    assert "You judge whether work" in first
    assert "1. ok?" in first
    assert "Your last answer was sent back" in json.dumps(provider.requests[1])


def test_a_providers_model_proposes_checks(start, provider, settings):
    provider.says({**ASSIGN, "Plan": ["write"], "Checks": [READ]})
    provider.says(FINISH)
    supervisor = start(app=[WRITES], system={"propose_checks": True}, **settings)
    result = supervisor.submit(Task(request="Say hello")).result(PATIENCE)
    assert [(check.source, check.held) for check in result.checks] == [("model", True)]
    first, last = (json.dumps(request["response_format"]) for request in provider.requests)
    assert '"same_as"' in first
    assert '"same_as"' not in last
