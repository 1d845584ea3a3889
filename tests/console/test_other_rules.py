"""Other rules over recorded actions: their verdicts, and the limits of a record."""

from __future__ import annotations

import re

import pytest

from callboard import Settings, Supervisor
from callboard.console._other_rules import UnreadableRulesError, other_rulings, rules_in
from callboard.history import history_of
from callboard.journal import JournalReader
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, lone


@pytest.fixture
def ruled(tmp_path):
    """Run a task that appends, under rules; give the verdicts of others: ``ruled(yaml, policy=[...])``."""

    def rule(text, *, policy=(), request="hello"):
        journal = tmp_path / "journal.db"
        settings = Settings.load(journal={"path": journal}, policy=list(policy))
        models = {"app": lambda asked: append(asked.request) if asked.step == 1 else FINISH}
        with Supervisor.start(
            settings, models=models, servers=[MemoryServer(MemoryServer.window("one"))]
        ) as supervisor:
            supervisor.submit(lone(id="t", request=request)).result(PATIENCE)
        with JournalReader.open(journal) as reader:
            history = history_of(reader.rows("t"))
        return [(found.recorded, found.other, found.other_reason) for found in other_rulings(history, rules_in(text))]

    return rule


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("[]", ("allow", "no rule matches")),
        ("[{verdict: deny, tool: append, reason: no texts}]", ("deny", "no texts")),
        ("policy: [{verdict: approve, tool: 'app*'}]", ("approve", "rule 1")),
        ("[{verdict: deny, tool: write}]", ("allow", "no rule matches")),
        ("[{verdict: deny, arguments: {text: 'hel*'}}]", ("deny", "rule 1")),
        ("[{verdict: deny, arguments: {text: 'other'}}]", ("allow", "no rule matches")),
        ("[{verdict: deny, agent: 'linux/*'}, {verdict: approve, agent: 'app/*'}]", ("approve", "rule 2")),
        (
            "[{verdict: deny, resource: 'file:*', reason: files}]",
            ("", "files: the record does not have the resources of this call"),
        ),
    ],
)
def test_other_rules_give_their_verdict_on_a_recorded_action(ruled, text, other):
    assert ruled(text) == [("allow", *other)]


def test_the_verdicts_equal_those_of_a_run_under_the_same_rules(ruled):
    rules = [{"verdict": "allow", "tool": "append", "reason": "texts may grow"}]
    assert ruled("[{verdict: allow, tool: append, reason: texts may grow}]", policy=rules) == [
        ("allow", "allow", "texts may grow")
    ]


def test_arguments_that_were_cut_are_not_guessed(ruled):
    (found,) = ruled("[{verdict: deny, arguments: {text: '*secret*'}, reason: words}]", request="x" * 100_000)
    assert found == ("allow", "", "words: the record has only the beginning of the arguments")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "the text of the rules: is not valid YAML: "),
        ("[{tool: a, tool: b}]", "the text of the rules: the key 'tool' appears twice"),
        ("[{verdict: maybe}]", "the rules can't be read: 0.verdict"),
        ("[{verdict: deny, tol: x}]", "the rules can't be read: 0.tol: unknown key; did you mean 'tool'?"),
        ("{a: 1}", "the rules can't be read"),
        ("!!python/object:os.system x", "the text of the rules: is not valid YAML: "),
        ("2001-99-99", "the text of the rules: is not valid YAML: "),
        ("!!timestamp x", "the text of the rules: is not valid YAML: "),
        ("[" * 20_000, "the text of the rules: is not valid YAML: "),
        ("x" * 60_000, "the rules have more than 50,000 characters"),
    ],
)
def test_text_that_is_no_list_of_rules_is_refused(text, problem):
    with pytest.raises(UnreadableRulesError, match=re.escape(problem)):
        rules_in(text)
