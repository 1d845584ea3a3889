"""Providers that speak another protocol than OpenAI's, over HTTP: here, on this machine, and misbehaving on order."""

from __future__ import annotations

import http.server
import io
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from callboard import EventName, FunctionModel, Outcome, Server, Settings, Supervisor, Task, tool
from callboard.messages import AgentKind, Effect, ModelError, Observation, Target, TargetKind
from callboard.models import ToolInfo, named_models
from callboard.models.live import _live, _rate_limit
from callboard.testing import MemoryServer
from support import HELD, PATIENCE, action, full_answer, lone

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "sales_report"
KEY = "sk-very-secret"
GIVEN, ANSWERED = 700, 30
"""Tokens of each prompt and each answer."""


class Protocol:
    """The names of one protocol."""

    kind: str
    model: str
    key_header: tuple[str, str]

    def message(self, text: str) -> dict[str, Any]:
        """Answer with a text."""
        raise NotImplementedError

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer with the call of the tool that stands for an answer."""
        raise NotImplementedError

    def refused(self) -> dict[str, Any]:
        """Refuse, as the model does."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Give the body of an error response."""
        raise NotImplementedError

    def prompt(self, sent: dict[str, Any]) -> tuple[str, str]:
        """Give the instructions and the rest of the request."""
        raise NotImplementedError

    def schema(self, sent: dict[str, Any]) -> dict[str, Any] | None:
        """Give the schema that the answer is held to by the protocol itself."""
        raise NotImplementedError

    def pictures(self, sent: dict[str, Any]) -> int:
        """Count the pictures that were sent."""
        raise NotImplementedError


class Anthropic(Protocol):
    kind = "anthropic"
    model = "claude-haiku-4-5"
    key_header = ("authorization", f"Bearer {KEY}")

    def message(self, text):
        return self._body([{"type": "text", "text": text}])

    def call(self, arguments):
        return self._body([{"type": "tool_use", "id": "1", "name": "answer", "input": arguments}], "tool_use")

    def refused(self):
        return self._body([], "refusal")

    def error(self, status, message):
        return {"type": "error", "error": {"type": "api_error", "message": message}}

    def prompt(self, sent):
        return json.dumps(sent["system"]), json.dumps(sent["messages"])

    def schema(self, sent):
        return sent.get("output_config", {}).get("format", {}).get("schema")

    def pictures(self, sent):
        return sum(part["type"] == "image" for part in sent["messages"][0]["content"])

    def _body(self, content, why="end_turn"):
        usage = {"input_tokens": GIVEN, "output_tokens": ANSWERED}
        shared = {"id": "1", "type": "message", "role": "assistant", "model": self.model, "stop_sequence": None}
        return {**shared, "content": content, "stop_reason": why, "usage": usage}


GOOGLES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    529: "UNKNOWN",
}
"""Google's names of errors, by HTTP status."""


class Google(Protocol):
    kind = "google"
    model = "gemini-3-pro"
    key_header = ("x-goog-api-key", KEY)

    def message(self, text):
        return self._body([{"text": text}])

    def call(self, arguments):
        return self._body([{"functionCall": {"name": "answer", "args": arguments}}])

    def refused(self):
        return self._body([], "SAFETY")

    def error(self, status, message):
        return {"error": {"code": status, "message": message, "status": GOOGLES[status]}}

    def prompt(self, sent):
        return json.dumps(sent["systemInstruction"]), json.dumps(sent["contents"])

    def schema(self, sent):
        return sent["generationConfig"].get("responseJsonSchema")

    def pictures(self, sent):
        return sum("inlineData" in part for part in sent["contents"][0]["parts"])

    def _body(self, parts, why="STOP"):
        usage = {
            "promptTokenCount": GIVEN,
            "candidatesTokenCount": ANSWERED,
            "totalTokenCount": GIVEN + ANSWERED,
        }
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": why, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": "1"}


class OpenAI(Protocol):
    """OpenAI's `/responses`."""

    kind = "openai"
    model = "gpt-5"
    key_header = ("authorization", f"Bearer {KEY}")

    def message(self, text):
        return self._said({"type": "output_text", "text": text, "annotations": []})

    def call(self, arguments):
        call = {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "answer", "status": "completed"}
        return self._body({**call, "arguments": json.dumps(arguments)})

    def refused(self):
        return self._said({"type": "refusal", "refusal": "no"})

    def error(self, status, message):
        return {"error": {"message": message, "type": "error", "code": None}}

    def prompt(self, sent):
        return json.dumps(sent.get("instructions", "")), json.dumps(sent["input"])

    def schema(self, sent):
        return sent.get("text", {}).get("format", {}).get("schema")

    def pictures(self, sent):
        return json.dumps(sent["input"]).count('"type": "input_image"')

    def _said(self, part):
        return self._body({"type": "message", "id": "1", "role": "assistant", "status": "completed", "content": [part]})

    def _body(self, output):
        usage = {"input_tokens": GIVEN, "output_tokens": ANSWERED, "total_tokens": GIVEN + ANSWERED}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        shared = {"id": "1", "object": "response", "created_at": 1, "status": "completed", "model": self.model}
        choices = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {**shared, **choices, "output": [output], "usage": {**usage, **details}}


class Provider:
    """Answers each call as it was told, in order; of calls past the orders, the last order holds."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.orders: list[tuple[int, str, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked, self.release = threading.Event(), threading.Event()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                provider.headers.append({name.lower(): value for name, value in self.headers.items()})
                number = min(len(provider.requests), len(provider.orders)) - 1
                provider.give(self, *provider.orders[number])

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def give(
        self, handler: http.server.BaseHTTPRequestHandler, status: int, text: str, headers: dict[str, str]
    ) -> None:
        """Send an answer; a status of 0 waits, and one below 0 cuts the connection in the middle."""
        if status == 0:
            self.asked.set()
            self.release.wait(HELD)
            handler.close_connection = True
            return
        content = text.encode()
        handler.send_response(abs(status))
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) // 2] if status < 0 else content)
        handler.close_connection = status < 0

    def says(self, content: Any) -> None:
        """Answer with a text, or an object as JSON."""
        text = content if isinstance(content, str) else json.dumps(content)
        self.speaks(json.dumps(self.protocol.message(text)))

    def calls(self, arguments: dict[str, Any]) -> None:
        """Answer with the call of a tool."""
        self.speaks(json.dumps(self.protocol.call(arguments)))

    def refuses(self) -> None:
        """Refuse."""
        self.speaks(json.dumps(self.protocol.refused()))

    def speaks(self, text: str) -> None:
        """Send a body as it is."""
        self.orders.append((200, text, {}))

    def fails(self, status: int, message: str = "no", **headers: str) -> None:
        """Send an HTTP error."""
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        self.orders.append((status, json.dumps(self.protocol.error(status, message)), shown))

    def cuts(self) -> None:
        """Close the connection in the middle of an answer."""
        self.orders.append((-200, json.dumps(self.protocol.message("{}")), {}))

    def hangs(self) -> None:
        """Say nothing."""
        self.orders.append((0, "", {}))


@pytest.fixture
def make_other() -> Iterator[Callable[[Protocol], Provider]]:
    """Start providers; all are stopped."""
    with ExitStack() as running:

        def make(protocol: Protocol) -> Provider:
            provider = Provider(protocol)
            thread = threading.Thread(target=provider.http.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            running.callback(thread.join)
            running.callback(provider.http.server_close)
            running.callback(provider.http.shutdown)
            running.callback(provider.release.set)
            return provider

        yield make


@pytest.fixture(params=[Anthropic(), Google(), OpenAI()], ids=lambda protocol: protocol.kind)
def provider(request, make_other, monkeypatch) -> Provider:
    """A provider of each protocol; nothing of the environment leads to a real one."""
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_rate_limit, "FIRST_PAUSE", 0.001)
    return make_other(request.param)


@pytest.fixture
def settings(provider):
    """Write the settings' entry of the provider."""
    return lambda **options: {provider.protocol.kind: {"url": provider.url, "api_key": KEY, **options}}


@pytest.fixture
def run(on_window, provider, settings):
    """Run a task on ``memo:one`` with the provider's model; keywords are the provider's settings."""

    def begin(*, surface=None, more=None, budget=None, **options):
        named = f"{provider.protocol.kind}:{provider.protocol.model}"
        sections = {"providers": {**settings(**options), **(more or {})}, "budget": budget or {}}
        return on_window(surface, models={"app": named}, **sections)

    return begin


@pytest.fixture
async def asked(provider, settings, asks):
    """Ask the provider's model once, and give its answer."""

    async def ask(options=None, **fields):
        protocol = provider.protocol
        named = Settings(models={"app": f"{protocol.kind}:{protocol.model}"}, providers=settings(**(options or {})))
        model = named_models(named)[AgentKind.APP]
        try:
            return await model.answer(asks(**fields))
        finally:
            await model.close()

    return ask


def causes(result):
    return " / ".join(cause.reason for cause in result.causes)


def reasons(handle):
    return [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]


def test_a_model_does_a_task_and_its_tokens_and_cost_are_in_the_result(run, provider):
    provider.says(full_answer("CONTINUE", action("write", "field-1", text="hello")))
    provider.says(full_answer(Actions=[], Result="it is written"))
    surface = MemoryServer(MemoryServer.window())
    result = run(surface=surface, input_price=10, output_price=100).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "it is written"), causes(result)
    assert surface.effects == [("memo:one", "field-1", "hello")]
    usage = result.usage
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens) == (2, 2 * GIVEN, 2 * ANSWERED)
    assert usage.cost == pytest.approx(2 * (GIVEN * 10 + ANSWERED * 100) / 1_000_000)
    assert usage.unpriced_calls == 0


def test_price_of_a_custom_address_is_unknown(run, provider):
    provider.says(full_answer())
    usage = run().result(PATIENCE).usage
    assert (usage.cost, usage.unpriced_calls) == (0.0, 1)


def test_the_tokens_count_against_the_budget(run, provider):
    for number in range(30):
        provider.says(full_answer("CONTINUE", action("write", "field-1", text=f"line {number}")))
    result = run(max_tokens=100, budget={"task": {"tokens": 10_000}}).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert 1 < result.usage.model_calls < 10_000 / GIVEN


async def test_the_prompt_and_the_schema_of_this_step_are_sent(provider, asked):
    provider.says(full_answer())
    given = await asked({"temperature": 0.0, "max_tokens": 500})
    assert json.loads(given.content)["Status"] == "FINISH"
    assert (given.input_tokens, given.output_tokens, given.model) == (GIVEN, ANSWERED, provider.protocol.model)
    sent = provider.requests[0]
    instructions, rest = provider.protocol.prompt(sent)
    assert "Work." in instructions
    assert "make a chart" in rest
    schema = provider.protocol.schema(sent)
    assert schema is not None
    assert "FINISH" in json.dumps(schema)
    assert "500" in json.dumps(sent)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("kind", "model", "sent"),
    [
        ("openai", "gpt-5", False),
        ("openai", "gpt-5.1", True),
        ("openai", "gpt-4o", True),
        ("anthropic", "claude-haiku-4-5", True),
        ("anthropic", "claude-opus-4-7", False),
    ],
)
async def test_a_temperature_is_sent_to_models_that_take_one(make_other, asks, kind, model, sent):
    provider = make_other({"openai": OpenAI(), "anthropic": Anthropic()}[kind])
    provider.says(full_answer())
    entry = {"url": provider.url, "api_key": KEY, "temperature": 0.0}
    live = named_models(Settings(models={"app": f"{kind}:{model}"}, providers={kind: entry}))[AgentKind.APP]
    await live.answer(asks())
    await live.close()
    assert ("temperature" in provider.requests[0]) is sent


@pytest.mark.parametrize(
    ("efforts", "flag", "takes"),
    [({"none", "low"}, False, True), ({"low"}, True, False), (None, True, True), (None, False, False)],
)
def test_the_efforts_a_profile_lists_count_more_than_its_flag(efforts, flag, takes):
    profile = {"openai_supports_reasoning": True, "openai_supports_reasoning_effort_none": flag}
    listed = {} if efforts is None else {"openai_reasoning_efforts": frozenset(efforts)}
    assert _live._takes_temperature(SimpleNamespace(profile={**profile, **listed})) is takes


async def test_a_model_may_answer_by_a_tool(provider, asked):
    provider.calls(full_answer(Result="by the tool"))
    given = await asked({"output": "tool"})
    content = json.loads(given.content) if isinstance(given.content, str) else given.content
    assert content["Result"] == "by the tool"
    assert provider.protocol.schema(provider.requests[0]) is None
    assert '"name": "answer"' in json.dumps(provider.requests[0]["tools"])


async def test_a_model_may_be_held_to_the_form_by_the_prompt_alone(provider, asked):
    provider.says(full_answer())
    await asked({"output": "prompted"})
    assert provider.protocol.schema(provider.requests[0]) is None
    assert "additionalProperties" in json.dumps(provider.requests[0])


@pytest.fixture(scope="module")
def examples_requests(tmp_path_factory):
    """The requests to the example's models."""
    place = Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "it"))
    settings = Settings.load(place / "callboard.yaml")
    scripted, asked = named_models(settings), []

    def noting(kind):
        async def decide(request):
            asked.append(request)
            return await scripted[kind].answer(request)

        return FunctionModel(decide)

    with Supervisor.start(settings, models={kind.value: noting(kind) for kind in scripted}) as supervisor:
        task = Task(request="Extract the sales table from Word and create a bar chart in Excel")
        assert supervisor.submit(task).result(PATIENCE).outcome is Outcome.FINISHED
    return asked


async def test_every_request_of_the_example_is_within_what_a_provider_takes(provider, settings, examples_requests):
    provider.says(full_answer())
    named = f"{provider.protocol.kind}:{provider.protocol.model}"
    model = named_models(Settings(models={"app": named}, providers=settings()))[AgentKind.APP]
    for request in examples_requests:
        await model.answer(request)
    await model.close()
    assert {request.kind for request in examples_requests} == {AgentKind.HOST, AgentKind.APP}
    assert len(provider.requests) == len(examples_requests)
    assert all(provider.protocol.schema(sent) for sent in provider.requests)


QUERY = ToolInfo(
    name="query",
    description="Look it up.",
    schema={"type": "object", "properties": {"filter": {"type": "object"}}, "required": ["filter"]},
    effect=Effect.READ,
)


READ = ToolInfo(name="read", description="Read it.", schema={"type": "object"}, effect=Effect.READ)


async def test_arguments_of_any_form_are_never_made_empty_ones(provider, asked):
    provider.calls(full_answer())
    await asked(tools=(QUERY,))
    sent = provider.requests[0]
    assert '"additionalProperties": true' in json.dumps(sent)
    assert (provider.protocol.schema(sent) is None) is isinstance(provider.protocol, Anthropic)


async def test_a_schema_refused_as_too_complex_is_sent_as_that_of_a_tool(provider, asked):
    provider.fails(400, "Schema is too complex.")
    provider.calls(full_answer(Result="by the tool"))
    given = await asked({"retries": 0})
    content = json.loads(given.content) if isinstance(given.content, str) else given.content
    assert content["Result"] == "by the tool"
    first, second = provider.requests
    assert provider.protocol.schema(first) is not None
    assert provider.protocol.schema(second) is None


def test_an_answer_with_more_actions_than_are_taken_at_a_time_goes_back(run, provider):
    provider.says(
        full_answer(
            "CONTINUE",
            action("write", "field-1", text="a"),
            action("write", "field-1", text="b"),
            action("write", "field-1", text="c"),
        )
    )
    provider.says(full_answer("FAIL"))
    surface = MemoryServer(MemoryServer.window())
    handle = run(surface=surface, actions=2)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert surface.effects == []
    assert reasons(handle) == ["the answer has 3 actions, and at most 2 actions are taken at a time"]


@pytest.mark.parametrize(("short", "effects"), [(True, []), (False, [("memo:one", "field-1", "<Its new text>")])])
def test_a_placeholder_of_a_short_prompts_example_goes_back(run, provider, short, effects):
    provider.says(full_answer("CONTINUE", action("write", "field-1", text="<Its new text>")))
    provider.says(full_answer("FAIL"))
    surface = MemoryServer(MemoryServer.window())
    handle = run(surface=surface, short=short)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert surface.effects == effects
    found = ["Args has <Its new text> of the example: put in what your subtask says in place of it"]
    assert reasons(handle) == (found if short else [])


@pytest.mark.parametrize(("output", "told"), [("native", False), ("tool", True), ("prompted", True)])
async def test_the_prompt_states_the_action_limit_unless_strict_mode_bounds_it(provider, asked, output, told):
    (provider.calls if output == "tool" else provider.says)(full_answer())
    await asked({"actions": 1, "output": output}, tools=(READ,))
    rest = provider.protocol.prompt(provider.requests[0])[1]
    assert ("Put at most 1 action into it." in rest) is told


async def test_with_strict_mode_only_a_refused_schema_is_an_error(provider, asked):
    provider.fails(400, "Schema is too complex.")
    with pytest.raises(ModelError, match="Schema is too complex"):
        await asked({"output": "native"})
    assert len(provider.requests) == 1


@pytest.mark.parametrize("sees", [True, False])
async def test_a_picture_is_sent_to_a_model_that_sees_and_to_no_other(provider, asked, sees):
    provider.says(full_answer())
    await asked({"pictures": sees}, observation=Observation(picture=b"\x89PNG picture"))
    assert provider.protocol.pictures(provider.requests[0]) == int(sees)


def test_the_key_is_sent_and_shown_nowhere(run, provider):
    provider.fails(401, f"no such key: {KEY}")
    handle = run()
    result = handle.result(PATIENCE)
    name, value = provider.protocol.key_header
    assert provider.headers[0][name] == value
    assert KEY not in result.model_dump_json() + "".join(event.model_dump_json() for event in handle.events())
    assert "HTTP 401, no such key: **********" in causes(result)


def test_a_key_of_the_environment_that_is_quoted_is_shown_nowhere(run, provider, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    provider.fails(401, f"no such key: {KEY}")
    handle = run(api_key=None)
    result = handle.result(PATIENCE)
    assert "HTTP 401, no such key: **********" in causes(result)
    assert KEY not in result.model_dump_json() + "".join(event.model_dump_json() for event in handle.events())


def test_headers_of_the_settings_are_sent(run, provider):
    provider.says(full_answer())
    run(headers={"X-Team": "night"}).result(PATIENCE)
    assert provider.headers[0]["x-team"] == "night"


def test_a_call_that_came_too_fast_is_repeated(run, provider):
    provider.fails(429, "too fast", Retry_After="0")
    provider.says(full_answer())
    assert run().result(PATIENCE).outcome is Outcome.FINISHED
    assert len(provider.requests) == 2


def test_a_provider_that_asks_for_too_long_a_wait_is_given_up(run, provider):
    provider.fails(429, "come back tomorrow", Retry_After="80000")
    result = run().result(PATIENCE)
    assert (result.outcome, len(provider.requests)) == (Outcome.ERROR, 1)
    assert "HTTP 429, come back tomorrow" in causes(result)


@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_provider_error_is_retried_as_often_as_the_settings_say(run, provider, status):
    provider.fails(status, "out of order")
    result = run(retries=2).result(PATIENCE)
    assert (result.outcome, len(provider.requests)) == (Outcome.ERROR, 3)
    assert f"gave no answer after 2 repetitions: HTTP {status}, out of order" in causes(result)


@pytest.mark.parametrize("status", [403, 404])
def test_a_call_that_can_never_be_answered_is_not_repeated(run, provider, status):
    provider.fails(status)
    assert run().result(PATIENCE).outcome is Outcome.ERROR
    assert len(provider.requests) == 1


def test_a_connection_that_is_cut_is_repeated(run, provider):
    provider.cuts()
    provider.says(full_answer())
    assert run().result(PATIENCE).outcome is Outcome.FINISHED


@pytest.mark.parametrize("body", ['"hello"', "{}", "[", ""], ids=["a text", "empty", "cut", "nothing"])
def test_invalid_message_is_an_error_of_the_task(run, provider, body):
    provider.speaks(body)
    result = run(retries=0).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    said = "gave no answer", "the answer is empty"  # an empty answer is one, for some of the providers' packages
    assert any(each in causes(result) for each in said)


def test_a_prompt_that_google_blocks_is_a_refusal(start, make_other):
    provider = make_other(Google())
    usage = {"promptTokenCount": GIVEN, "totalTokenCount": GIVEN}
    provider.speaks(json.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}))
    named = f"google:{Google.model}"
    supervisor = start(models={"app": named}, providers={"google": {"url": provider.url, "api_key": KEY}})
    result = supervisor.submit(Task(request="write", target="memo:one")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert f"{named} refuses to answer" in causes(result)


def test_refusal_is_an_error_that_names_the_model(run, provider):
    provider.refuses()
    result = run().result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert f"{provider.protocol.kind}:{provider.protocol.model} refuses to answer" in causes(result)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"Status": ', "the answer is not JSON"),
        ("I have finished.", "the answer is not JSON"),
        (full_answer("PERHAPS"), "Status: 'PERHAPS' is not legal now"),
        (full_answer("CONTINUE", {"Function": "erase", "Args": {}}), "there is no tool 'erase'"),
    ],
    ids=["cut", "words", "status", "tool"],
)
def test_an_answer_that_can_not_be_used_goes_back_with_the_reason(run, provider, said, why):
    provider.says(said)
    provider.says(full_answer())
    handle = run()
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert [why in reason for reason in reasons(handle)] == [True]
    assert why in provider.protocol.prompt(provider.requests[1])[1].replace('\\"', '"')


def test_a_cancel_in_the_middle_of_a_call_ends_the_task(run, provider):
    provider.hangs()
    handle = run()
    assert provider.asked.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_a_fallback_of_another_protocol_is_asked_when_the_first_fails(run, provider, make_other):
    other = next(kind() for kind in (Anthropic, Google) if kind.kind != provider.protocol.kind)
    second = make_other(other)
    provider.fails(500, "broken")
    second.says(full_answer(Result="from the second"))
    named = f"{other.kind}:{other.model}"
    handle = run(retries=0, fallbacks=[named], more={other.kind: {"url": second.url, "api_key": KEY}})
    assert handle.result(PATIENCE).output == "from the second"
    answered = next(event for event in handle.events() if event.name is EventName.MODEL_ANSWERED)
    assert answered.data["answered_by"] == named


def test_a_list_price_is_known_for_a_known_model(provider, asks, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    known = {"anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-pro", "openai": "gpt-5"}[provider.protocol.kind]
    model = named_models(Settings(models={"app": f"{provider.protocol.kind}:{known}"}))[AgentKind.APP]
    assert 0 < model.estimate(asks()).cost < 1


COMPUTER, COMPUTER_TOOLSET = "computer_20250124", "computer_toolset_20260801"
_CALL = {"type": "tool_use", "id": "1"}


def calling(*calls, text="", answer=None):
    """Make a response of the protocol: calls of the computer tool, words, and a call of the answering tool."""
    content = [{"type": "text", "text": text}] if text else []
    content += [{**_CALL, "id": str(place), "name": name, "input": given} for place, (name, given) in enumerate(calls)]
    content += [{**_CALL, "id": "a", "name": "answer", "input": answer}] if answer is not None else []
    return Anthropic()._body(content, "tool_use")


class Pad(Server):
    """A picture that is larger than the one sent, and notes the actions on it."""

    name = "pads"
    pictures = True

    def __init__(self):
        self.effects = []

    def targets(self):
        window = {"kind": TargetKind.WINDOW, "kinds": ("operator",), "server": self.name}
        return (Target(id="pad", name="Pad", address="operator/pads/pad", **window),)

    def observe(self, target, look):
        file = io.BytesIO()
        Image.new("RGB", (2000, 1000)).save(file, "PNG")
        return Observation(picture=file.getvalue() if look.picture else None, fingerprint=str(self.effects))

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.OPERATOR,))
    def click_at(self, x: int, y: int, count: int = 1) -> None:
        """Click a point."""
        self.effects.append((x, y, count))

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.OPERATOR,))
    def type_text(self, text: str) -> None:
        """Type."""
        self.effects.append(text)


@pytest.fixture
def other(make_other, monkeypatch):
    """A provider of Anthropic's protocol."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    return make_other(Anthropic())


@pytest.fixture
def operate(start, other):
    """Run a task of an operator whose model has a version of Anthropic's computer tool."""

    def begin(version, *responses):
        for response in responses:
            other.speaks(json.dumps(response))
        entry = {"url": other.url, "api_key": KEY, "computer_tool": version}
        pad = Pad()
        given = {"models": {"operator": "anthropic:claude-haiku-4-5"}, "providers": {"anthropic": entry}}
        result = start(servers=[pad], **given).submit(lone("pad")).result(PATIENCE)
        assert result.ok, result.causes
        return pad, result

    return begin


DONE = {"Decision": {"Plan": [], "Status": "FINISH", "Result": "sent"}, "Comment": "It is sent."}


def test_calls_of_the_tool_are_done_in_the_targets_pixels(operate, other):
    act = calling(
        ("computer", {"action": "double_click", "coordinate": [758, 379]}),
        ("computer", {"action": "type", "text": "hello"}),
        text="The field is in the middle.",
    )
    pad, result = operate(COMPUTER, act, calling(answer=DONE))
    assert pad.effects == [(1000, 500, 2), "hello"]
    assert result.output == "sent"
    sent, after = other.requests
    own, answer = sent["tools"]
    assert own == {"type": COMPUTER, "name": "computer", "display_width_px": 1516, "display_height_px": 758}
    assert (answer["name"], answer["input_schema"]["type"]) == ("answer", "object")
    assert sent["tool_choice"]["type"] == "any"
    assert "computer-use-2025-01-24" in other.headers[0]["anthropic-beta"]
    assert sum(part["type"] == "image" for part in sent["messages"][0]["content"]) == 1
    assert "Act with your computer tool" in json.dumps(sent["messages"])
    assert "click_at: Click" not in json.dumps(sent)
    assert "The field is in the middle." in json.dumps(after["messages"])


def test_the_toolset_offers_what_the_target_has_and_needs_no_beta(operate, other):
    pad, _ = operate(COMPUTER_TOOLSET, calling(("left_click", {"coordinate": [0, 757]})), calling(answer=DONE))
    assert pad.effects == [(0, 999, 1)]
    own = other.requests[0]["tools"][0]
    assert own["type"] == COMPUTER_TOOLSET
    off = {member for member, how in own["configs"].items() if how == {"enabled": False}}
    assert {"scroll", "zoom", "hold_key", "key"} <= off
    assert not {"left_click", "triple_click", "type", "screenshot"} & off
    assert "computer-use" not in other.headers[0].get("anthropic-beta", "")


def test_a_call_that_can_not_be_done_goes_back_with_the_reason(operate, other):
    zoom = calling(("computer", {"action": "zoom", "region": [0, 0, 10, 10]}))
    outside = calling(("computer", {"action": "left_click", "coordinate": [1999, 1]}))
    pad, _ = operate(COMPUTER, zoom, outside, calling(answer=DONE), calling(answer=DONE))
    assert pad.effects == []
    sent = [json.dumps(request["messages"]) for request in other.requests]
    assert "there is no tool 'zoom'; there are: click_at, type_text" in sent[1]
    assert "the point 1999, 1 is not in the picture, which has 1516 x 758 pixels" in sent[2]
