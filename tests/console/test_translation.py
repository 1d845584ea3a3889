"""Pages and reports in another language."""

from __future__ import annotations

import random
import re
import string
from html.parser import HTMLParser
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

import callboard.console
from callboard import PlanStep, Task
from callboard.config import ENGLISH, Language, speaking
from callboard.console import ConsoleServer, report
from callboard.console._pages import SCRIPT_TEXTS, STATIC
from callboard.history import (
    agent_label,
    calls_of,
    described_event,
    expectation,
    judged_event,
    lines_of,
    lines_of_reply,
    proposals,
    status_words,
    used,
    verdict,
)
from callboard.journal import JournalReader
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    Cancel,
    CommandResult,
    Event,
    EventName,
    Hazard,
    Note,
    Outcome,
    Pause,
    Phase,
    Probe,
    Question,
    Recovered,
    RequestExpired,
    ResultStatus,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
    TaskResult,
    Usage,
    Verdict,
)
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

SCRIPT = Path(callboard.console.__file__).parent / "static" / "console.js"


def marked(pattern: str) -> str:
    """Put marks around the words of a text, and leave its values as they are."""
    parts = []
    for words, value, form, conversion in string.Formatter().parse(pattern):
        escaped = words.replace("{", "{{").replace("}", "}}")
        field = (
            ""
            if value is None
            else "".join(("{", value, f"!{conversion}" * bool(conversion), f":{form}" * bool(form), "}"))
        )
        parts.append(f"⟦{escaped}⟧{field}" if words else field)
    return "".join(parts)


MARKED = Language(
    {
        name: marked(english) if isinstance(english, str) else [*map(marked, english)]
        for name, english in ENGLISH.items()
        if name not in {"plural", "language"}
    }
)
"""A translation that marks its words: what it does not mark is no text of ours, or is missing in the catalog."""


def unmarked(shown: str) -> str:
    """Take the texts of the translation away."""
    return re.sub(r"⟦[^⟦⟧]*⟧", " ", shown)


def words_in(shown: str) -> list[str]:
    """List the words that were not translated, without names of states."""
    return re.findall(r"[^\W\d_]{2,}", re.sub(r"zq\d+|\b[A-Z_]{4,}\b", " ", unmarked(shown)))


# Lines of histories, from messages that are made at random: each of their texts is `zq` with a number.


class Maker:
    """Makes messages, with any values of their fields' types."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - test data

    def make(self, annotation: Any, depth: int = 0) -> Any:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.make(arguments[0], depth)
        if origin is Literal:
            return self._random.choice(arguments)
        if origin in {Union, UnionType}:
            return self.make(self._random.choice(arguments), depth)
        if origin is tuple:
            return tuple(self.make(arguments[0], depth + 1) for _ in range(self._random.randrange(3 - min(depth, 2))))
        if origin is dict:
            return {self._word(): self._word() for _ in range(self._random.randrange(2))}
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.instance(annotation, depth + 1)
        if isinstance(annotation, type) and hasattr(annotation, "__members__"):
            return self._random.choice(list(annotation))
        if annotation in {int, float}:
            return self._random.randrange(1, 5)
        return {bool: self._random.random() < 0.5, bytes: b"", NoneType: None}.get(annotation, self._word())

    def instance(self, model: type[BaseModel], depth: int = 0) -> Any:
        fields = {
            name: self.make(field.annotation, depth) for name, field in model.model_fields.items() if name != "kind"
        }
        return model.model_construct(**fields)

    def _word(self) -> str:
        return f"zq{self._random.randrange(10_000)}"


MESSAGES = [
    ApprovalRequest,
    Assign,
    Cancel,
    Note,
    Pause,
    Question,
    Recovered,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
]
REPLIES = [None, Answer, ApprovalAnswer, RequestExpired]


@pytest.mark.parametrize("kind", [*MESSAGES, SubtaskEnding], ids=lambda kind: kind.__name__)
def test_lines_of_a_message_are_texts_of_the_translation(kind):
    shown = []
    with speaking(MARKED):
        for seed in range(300):
            message, reply = Maker(seed).instance(kind), REPLIES[seed % 4]
            shown += [line for line, _ in lines_of(message)]
            if isinstance(message, ApprovalRequest | Question):
                shown += [line for line, _ in lines_of_reply(message, reply and Maker(seed).instance(reply))]
            if isinstance(message, ApprovalRequest):
                shown += calls_of(message)
    assert any("⟦" in line for line in shown)
    assert [line for line in shown if words_in(line)] == []


CHECK = {"reading": "zq0", "name": "zq1", "expected": {"exists": True}, "found": 3, "source": "model"}
EVENTS = [
    *({"name": EventName.COMMAND_IN_DOUBT, "data": {"tool": "zq1", "probe": probe.value}} for probe in Probe),
    {"name": EventName.POLICY_DECIDED, "data": {"tool": "zq1", "reason": "zq2", "may_change": ["zq3"]}},
    {"name": EventName.RUN_RECOVERED, "data": {}},
]


def test_lines_of_events_are_texts_of_the_translation():
    answers = [{"question": "zq1", "answer": word, "reason": "zq2"} for word in ("yes", "no", "unsure")]
    with speaking(MARKED):
        shown = [line for event in EVENTS for line, _ in lines_of(Event.model_construct(**event))]
        checks = [
            Event.model_construct(name=name, data={"check": CHECK})
            for name in (EventName.CHECK_PASSED, EventName.CHECK_FAILED)
        ]
        shown += map(described_event, checks)
        shown.append(judged_event(Event.model_construct(data={"answers": answers})))
    assert [line for line in shown if words_in(line)] == []


@pytest.mark.parametrize(
    "expected",
    [
        *({name: flag} for name in ("exists", "is_empty", "changed") for flag in (True, False)),
        *({name: "zq1"} for name in ("equals", "returns", "approx", "contains", "count", "same_as")),
        {"same_as": "zq1", "value": "zq2"},
        {"between": [1, 2]},
        {"one_of": [1, "zq2"]},
        {"changed": []},
        {"changed": ["zq1"]},
    ],
    ids=str,
)
def test_expectation_is_a_text_of_the_translation(expected):
    with speaking(MARKED):
        assert words_in(expectation(expected)) == []


def test_results_and_usage_are_texts_of_the_translation():
    shown = []
    with speaking(MARKED):
        for seed in range(300):
            result = Maker(seed).instance(TaskResult)
            shown += [verdict(result), proposals(result), used(Maker(seed).instance(Usage))]
            shown.append(status_words(Maker(seed).instance(CommandResult)))
    assert [line for line in shown if words_in(line)] == []


@pytest.mark.parametrize(
    ("group", "terms"),
    [
        ("outcome", Outcome),
        ("status", ResultStatus),
        ("verdict", Verdict),
        ("phase", Phase),
        ("probe", Probe),
        ("hazard", Hazard),
    ],
)
def test_every_term_has_a_word(group, terms):
    assert {name for name in ENGLISH if name.startswith(f"{group}_")} == {f"{group}_{term.value}" for term in terms}


# Pages


class Shown(HTMLParser):
    """The texts of a page that people see or hear."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in {"style", "script"}
        heard = {"alt", "aria-label", "title", "placeholder", "data-sure"}
        self.texts += [value for name, value in attrs if name in heard and value]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"style", "script"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def strings_in(value: Any) -> set[str]:
    """List the texts of a message, without those of enumerations."""
    match value:
        case BaseModel():
            return set().union(*(strings_in(getattr(value, name)) for name in type(value).model_fields))
        case dict():
            return set().union(*map(strings_in, (*value, *value.values())))
        case list() | tuple() | set() | frozenset():
            return set().union(*map(strings_in, value))
        case str() if type(value) is str:
            return {value}
        case _:
            return set()


TERMS = {
    words
    for name, words in ENGLISH.items()
    if re.match(r"(outcome|status|verdict|phase|probe|judge|server|budget)_", name)
}


def found_words(shown: list[str], data: set[str]) -> list[str]:
    """List the words on a page that are neither of the translation nor of the data."""
    texts = sorted((words for words in data if re.search(r"\w{2}", words)), key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(words)}(?!\w)" for words in texts if words not in TERMS))
    return [rest for part in shown if words_in(rest := pattern.sub(" ", unmarked(part)))]


class Reader:
    """A person at the console in the marked language."""

    def __init__(self, office: Any, server: ConsoleServer, data: set[str]) -> None:
        self._office, self.data, self.journal = office, data, office.journal
        office.server = server
        self._headers = office.sign_in()

    def findings(self, path: str, *, body: Any = None, signed_in: bool = True) -> list[str]:
        """Open a page, and list its words that are in no catalog."""
        headers = self._headers if signed_in else {}
        method = "GET" if body is None else "POST"
        _, html, answered = self._office.ask(path, method=method, body=body, headers=headers)
        assert "⟦" in html, (path, html)
        shown = Shown(html).texts if "html" in answered["content-type"] else [html]
        return found_words(shown, self.data)


def works(request: Any) -> Any:
    """Append, ask, fail or finish, by the request."""
    match request.request:
        case "ask":
            return ASK
        case "fail":
            return {"Status": "FAIL", "Comment": "zq7"}
        case _:
            return append("zq8") if request.step == 1 else {**FINISH, "Comment": "zq9", "Result": "zq10"}


RULES = [{"verdict": "approve", "tool": "append", "arguments": {"text": "zq11"}, "reason": "zq12"}]
DATA = {
    "root",
    "memory",
    "memo",
    "callboard",
    "replay",
    "show",
    "callboard-root",
    "window",
    "append",
    "field-1",
    "app/memo",
}
"""Names that are the same in all languages: commands, surfaces, tools."""


@pytest.fixture
def translated(office, tmp_path):
    """Give the console of a supervisor that has worked, and waits, in the marked language."""
    started = office(
        app=lambda request: append("zq11") if request.request == "nod" else works(request),
        policy=RULES,
        windows=("one", "two"),
        budget={"daily": [{"labels": {"zq13": "zq14"}, "steps": 50}]},
    )
    tasks = {
        "ended": lone(id="zq-ended", request="zq15 " * 60, labels={"zq13": "zq14"}),
        "failed": lone(id="zq-failed", request="fail"),
        "both": Task(
            id="zq-both",
            request="zq17",
            plan=[PlanStep(target="memo:one", request="zq18"), PlanStep(target="memo:two", request="zq19", after=(1,))],
        ),
    }
    for task in tasks.values():
        started.supervisor.submit(task).result(PATIENCE)
    asks = started.supervisor.submit(lone(id="zq-ask", request="ask"))
    wait_for(asks.questions)
    nod = started.supervisor.submit(lone("memo:two", id="zq-nod", request="nod"))
    wait_for(nod.approvals)
    cancelled = started.supervisor.submit(lone(id="zq-cancelled", request="zq20"))
    cancelled.cancel("zq21")
    cancelled.result(PATIENCE)
    server = ConsoleServer(started.journal, started.supervisor, port=0, language=MARKED)
    server.start()
    own_server = started.server
    with JournalReader.open(started.journal, pictures=False) as reader:
        rows = [row for line in reader.page().tasks for row in reader.rows(line.id)]
    data = set().union(
        DATA, *(strings_in(row.message) for row in rows), {str(started.journal), str(started.journal.resolve())}
    )
    yield Reader(started, server, data | set(map(agent_label, data)))
    server.stop()
    started.server = own_server


def test_pages_of_a_console_are_texts_of_the_translation(translated):
    ids = ["zq-ended", "zq-failed", "zq-both", "zq-ask", "zq-nod", "zq-cancelled"]
    paths = ["/", "/?outcome=failed&q=zq", "/?label=zq", "/waiting", "/health"]
    paths += [part for task_id in ids for part in (f"/tasks/{task_id}", f"/tasks/{task_id}/replay")]
    assert {path: found for path in paths if (found := translated.findings(path))} == {}
    assert translated.findings("/", signed_in=False) == []


def test_answers_of_a_console_are_texts_of_the_translation(translated):
    rules = {"rules": "[{verdict: deny, tool: append, resource: ['zq*']}, {verdict: allow}]"}
    assert translated.findings("/tasks/zq-ended/policy", body=rules) == []
    assert translated.findings("/tasks/zq-failed/policy", body={"rules": "x" * 60_000}) == []
    assert translated.findings("/tasks/nothing") == []
    assert translated.findings("/tasks/nothing/pause", body={}, signed_in=False) == []
    assert translated.findings("/session", body={"link": "x"}) == []


def test_script_gets_the_texts_that_it_uses():
    script = (STATIC / "console.js").read_text(encoding="utf-8")
    used = {*re.findall(r"\btexts\.(\w+)", script), "said_approve", "said_reject", "said_answer"}
    assert used == set(SCRIPT_TEXTS)


def test_report_in_another_language_is_made_of_its_texts(translated):
    html = report(translated.journal, "zq-ended", language=MARKED)
    assert found_words(Shown(html).texts, translated.data) == []
    markdown = report(translated.journal, "zq-failed", markdown=True, language=MARKED)
    lines = [line for line in markdown.replace("`", " ").splitlines() if line.strip() != "text"]
    assert found_words(lines, translated.data) == []
