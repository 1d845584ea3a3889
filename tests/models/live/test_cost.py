"""The usage of calls without an answer, or with partial counts of the provider."""

from __future__ import annotations

import functools
import json

import pytest

from callboard import EventName, FunctionModel, Outcome, Settings, Task
from callboard.config import Provider
from callboard.messages import AgentKind, ModelError, Usage
from callboard.models import Expected, Model, RecordedModel, named_models, recorder
from callboard.models.live._connection import Connection
from callboard.testing import MemoryServer, VirtualClock
from support import PATIENCE, full_answer

PRICED = {"input_price": 1000, "output_price": 1000}
FREE = {"input_price": 0, "output_price": 0}


@pytest.fixture
def run(run):
    """Run a task without retries."""
    return functools.partial(run, retries=0)


def took(usage):
    return usage.input_tokens, usage.output_tokens, round(usage.cost, 6), usage.unpriced_calls


def test_a_refusal_that_the_provider_counted_is_paid_for(run, provider):
    provider.refuses("no")
    handle = run(**PRICED)
    assert took(handle.result(PATIENCE).usage) == (700, 30, 0.73, 0)
    failed = next(event.data for event in handle.events() if event.name is EventName.MODEL_FAILED)
    assert (failed["input_tokens"], failed["output_tokens"], failed["cost"]) == (700, 30, 0.73)


def test_a_refusal_before_a_fallbacks_answer_is_paid_for(run, provider):
    provider.refuses("no")
    provider.says(full_answer())
    handle = run(fallbacks=["local:large"], **PRICED)
    result = handle.result(PATIENCE)
    assert (result.outcome, took(result.usage)) == (Outcome.FINISHED, (1400, 60, 1.46, 0))
    answered = next(event.data for event in handle.events() if event.name is EventName.MODEL_ANSWERED)
    assert (answered["input_tokens"], answered["cost"]) == (1400, 1.46)


def test_refusals_of_all_are_paid_for(run, provider):
    provider.refuses("no")
    assert took(run(fallbacks=["local:large"], **PRICED).result(PATIENCE).usage) == (1400, 60, 1.46, 0)


def test_an_error_before_a_fallbacks_answer_is_a_call_of_unknown_price(run, provider):
    provider.fails(500)
    provider.says(full_answer())
    assert took(run(fallbacks=["local:large"], **PRICED).result(PATIENCE).usage) == (700, 30, 0.73, 1)


def test_an_error_of_a_free_model_before_a_fallbacks_answer_has_a_price(run, provider):
    provider.fails(500)
    provider.says(full_answer())
    assert took(run(fallbacks=["local:large"], **FREE).result(PATIENCE).usage) == (700, 30, 0, 0)


@pytest.mark.parametrize("fallbacks", [[], ["local:large"]], ids=["alone", "fallback"])
def test_errors_of_free_models_have_a_price_where_none_answers(run, provider, fallbacks):
    provider.fails(500)
    assert took(run(fallbacks=fallbacks, **FREE).result(PATIENCE).usage) == (0, 0, 0, 0)


@pytest.mark.parametrize(("price", "unpriced"), [(1000, 1), (0, 0), (None, 1)], ids=["priced", "free", "unpriced"])
def test_call_without_known_usage_has_an_unknown_price(run, provider, price, unpriced):
    provider.hangs()
    clock = VirtualClock()
    handle = run(clock=clock, limits={"model_seconds": 30}, input_price=price, output_price=price)
    assert provider.asked.wait(PATIENCE)
    clock.advance(31)
    assert took(handle.result(PATIENCE).usage) == (0, 0, 0, unpriced)


@pytest.mark.parametrize(
    ("order", "outcome"), [("refuses", Outcome.FINISHED), ("cuts", Outcome.OUT_OF_BUDGET)], ids=["known", "unknown"]
)
def test_reserved_cost_stays_spent_when_the_actual_cost_is_unknown(run, provider, order, outcome):
    """A call may cost about 7: the cost before the first answer leaves, or does not leave, enough for a second."""
    getattr(provider, order)(*["no"] if order == "refuses" else [])
    provider.says("no JSON")
    provider.says(full_answer())
    result = run(budget={"task": {"cost": 10}}, max_tokens=5000, fallbacks=["local:large"], **PRICED).result(PATIENCE)
    assert result.outcome is outcome, result.causes


@pytest.mark.parametrize(
    ("counted", "tokens", "cost"),
    [((700, 0), (700, None), None), ((0, 30), (None, 30), None), ((700, 30), (700, 30), 0.73)],
    ids=["prompt", "answer", "both"],
)
async def test_tokens_are_estimated_when_the_provider_does_not_count_them(provider, asks, counted, tokens, cost):
    provider.usage = dict(zip(("prompt_tokens", "completion_tokens"), counted, strict=True), total_tokens=sum(counted))
    provider.says(full_answer())
    settings = Settings(models={"app": "local:small"}, providers={"local": {"url": provider.url, **PRICED}})
    model = named_models(settings)[AgentKind.APP]
    given = await model.answer(asks())
    await model.close()
    for said, expected in zip((given.input_tokens, given.output_tokens), tokens, strict=True):
        assert said == expected if expected is not None else said > 3
    assert given.cost == pytest.approx(cost or (given.input_tokens + given.output_tokens) / 1000)


async def test_recording_keeps_the_usage_of_a_call_without_an_answer(asks, tmp_path):
    class Refusing(Model):
        async def answer(self, request):
            msg = "no"
            raise ModelError(msg, Usage(input_tokens=7, cost=0.5))

    path = tmp_path / "run.jsonl"
    settings = Settings(models={"record": path})
    recording = recorder(settings)(Refusing())
    with pytest.raises(ModelError):
        await recording.answer(asks())
    assert json.loads(path.read_text())["usage"] == {"input_tokens": 7, "cost": 0.5}
    with pytest.raises(ModelError) as raised:
        await RecordedModel.load(path, settings.base).answer(asks())
    assert raised.value.usage == Usage(input_tokens=7, cost=0.5)


def test_a_function_model_may_say_what_a_call_without_an_answer_took(start):
    def model(request):
        msg = "no"
        raise ModelError(msg, Usage(input_tokens=7, cost=0.5))

    app = FunctionModel(model, expects=lambda _: Expected(tokens=100, cost=2))
    supervisor = start(servers=[MemoryServer(MemoryServer.window())], app=app)
    assert took(supervisor.submit(Task(request="write", target="memo:one")).result(PATIENCE).usage) == (7, 0, 0.5, 0)


@pytest.fixture
def openai(monkeypatch):
    """Make the connection to OpenAI; keywords are its settings."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    return lambda **options: Connection("openai", Provider(**options))


def test_at_the_providers_own_address_the_list_price_holds(openai):
    assert openai().prices.cost("gpt-5", 1_000_000, 0) == pytest.approx(1.25)
    assert openai(url="https://api.openai.com/v1").prices.cost("gpt-5", 1_000_000, 0) == pytest.approx(1.25)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "https://api.openai.com.example.org/v1"])
def test_at_an_address_from_the_environment_no_list_price_holds(openai, monkeypatch, url):
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert openai().prices.cost("gpt-5", 1_000_000, 0) is None


def test_where_a_provider_has_several_addresses_its_list_price_holds(monkeypatch):
    monkeypatch.setenv("MOONSHOTAI_API_KEY", "k-very-secret")
    assert Connection("moonshotai", Provider()).prices.cost("kimi-k2-0905-preview", 1000, 1000) > 0


def test_price_list_without_token_prices_gives_no_price(monkeypatch):
    monkeypatch.setenv("CEREBRAS_API_KEY", "k-very-secret")
    assert Connection("cerebras", Provider()).prices.cost("qwen-3-coder-480b", 1000, 1000) is None


def test_free_model_costs_nothing(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-very-secret")
    assert Connection("openrouter", Provider()).prices.cost("qwen/qwq-32b:free", 1000, 1000) == 0
