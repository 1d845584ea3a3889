"""Models of a provider, over HTTP, through the public interface. The provider is on this machine and misbehaves."""

from __future__ import annotations

import json
import re
import sys

import pytest

from callboard import EventName, Outcome, Settings, Supervisor, Task
from callboard.config import install_command
from callboard.messages import AgentKind, ModelError, Observation, SettingsError
from callboard.models import named_models, unused_providers
from callboard.models.live import _rate_limit
from callboard.models.live._rate_limit import RateLimit
from callboard.testing import MemoryServer, VirtualClock
from support import PATIENCE, PNG, Unread, action, full_answer


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Wait for repetitions as briefly as can be, where the provider does not say how long."""
    monkeypatch.setattr(_rate_limit, "FIRST_PAUSE", 0.001)


def causes(result):
    return " / ".join(cause.reason for cause in result.causes)


def reasons(handle):
    return [event.data["reason"] for event in handle.events() if event.name is EventName.MODEL_REPAIRED]


def test_a_model_of_a_provider_does_a_task(run, provider):
    provider.says(full_answer("CONTINUE", action("write", "field-1", text="hello")))
    provider.says(full_answer(Actions=[], Result="it is written"))
    surface = MemoryServer(MemoryServer.window())
    result = run(surface=surface).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "it is written")
    assert surface.effects == [("memo:one", "field-1", "hello")]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (1400, 60)


def test_finish_with_an_open_plan_is_sent_back_once(run, provider):
    for said in (full_answer(Plan=["Write hello", " ", "Save it"]), full_answer(Plan=["Save it"], Result="done")):
        provider.says(said)
    handle = run()
    assert handle.result(PATIENCE).output == "done"
    (reason,) = reasons(handle)
    assert reason.startswith("it says FINISH, and Plan tells what is still to be done: Write hello; Save it. Do that")


@pytest.mark.parametrize("plan", [[], [""], [" ", "\n"], None])
def test_finish_is_accepted_with_an_empty_plan(run, provider, plan):
    provider.says(full_answer(Plan=plan))
    handle = run()
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert reasons(handle) == []


def test_a_small_model_gets_a_short_prompt(run, provider):
    provider.says(full_answer("CONTINUE", action("write", "field-1", text="hello")))
    provider.says(full_answer())
    run(short=True).result(PATIENCE)
    _, second = (request["messages"][1]["content"] for request in provider.requests)
    assert "I do it." not in second  # its thought
    assert '- step 1:\n    write on "field-1" {"text": "hello"} → returned' in second


def test_request_holds_the_prompt_and_the_schema_of_the_step(run, provider):
    provider.says(full_answer())
    run("write hello", max_tokens=500, temperature=0.0, headers={"X-Team": "night"}).result(PATIENCE)
    sent = provider.requests[0]
    assert (sent["model"], sent["temperature"]) == ("small", 0.0)
    assert 500 in {sent.get("max_tokens"), sent.get("max_completion_tokens")}
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    form = sent["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["$defs"]["Control"]["enum"] == ["field-1"]
    assert provider.headers[0]["x-team"] == "night"


def test_the_key_is_sent_and_shown_nowhere(run, provider):
    provider.fails(401, "no such key: sk-very-secret")
    handle = run(api_key="sk-very-secret")
    result = handle.result(PATIENCE)
    assert provider.headers[0]["authorization"] == "Bearer sk-very-secret"
    told = result.model_dump_json() + "".join(event.model_dump_json() for event in handle.events())
    assert "sk-very-secret" not in told
    assert "HTTP 401" in causes(result)


def test_a_headers_value_that_a_provider_quotes_is_shown_nowhere(run, provider):
    provider.fails(401, "wrong keys: tk-very-secret, Bearer tk-bearer, tk-bearer")
    handle = run(headers={"X-Team-Key": "tk-very-secret", "Authorization": "Bearer tk-bearer"})
    result = handle.result(PATIENCE)
    told = result.model_dump_json() + "".join(event.model_dump_json() for event in handle.events())
    assert "tk-" not in told
    assert "HTTP 401, wrong keys: **********, **********, **********" in causes(result)


def test_rate_limited_call_is_repeated_after_the_provider_s_delay(run, provider):
    provider.fails(429, retry_after_ms="20")
    provider.says(full_answer())
    assert run().result(PATIENCE).outcome is Outcome.FINISHED
    assert len(provider.requests) == 2


def test_a_provider_that_asks_for_too_long_a_wait_is_given_up(run, provider):
    provider.fails(429, "come back tomorrow", Retry_After="80000")
    result = run().result(PATIENCE)
    assert (result.outcome, len(provider.requests)) == (Outcome.ERROR, 1)
    assert "HTTP 429, come back tomorrow" in causes(result)


@pytest.mark.parametrize(
    ("options", "held"), [({"retries": 0}, 7), ({"retry_seconds": 3}, 3)], ids=["no repetitions", "too long"]
)
async def test_a_rate_limited_provider_is_left_alone_by_the_next_call_too(provider, asks, monkeypatch, options, held):
    waits = []
    monkeypatch.setattr(RateLimit, "hold", lambda _, seconds: waits.append(seconds))
    provider.fails(429, "slow down", Retry_After="7")
    settings = Settings(models={"app": "local:x"}, providers={"local": {"url": provider.url, **options}})
    model = named_models(settings)[AgentKind.APP]
    with pytest.raises(ModelError, match="HTTP 429"):
        await model.answer(asks())
    await model.close()
    assert (waits, len(provider.requests)) == ([held], 1)


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_provider_error_is_retried_as_often_as_the_settings_say(run, provider, status):
    provider.fails(status, "out of order")
    result = run(retries=3).result(PATIENCE)
    assert (result.outcome, len(provider.requests)) == (Outcome.ERROR, 4)
    assert f"local:small gave no answer after 3 repetitions: HTTP {status}, out of order" in causes(result)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_call_that_can_never_be_answered_is_not_repeated(run, provider, status):
    provider.fails(status)
    assert run().result(PATIENCE).outcome is Outcome.ERROR
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [400, 422])
def test_a_rejected_call_is_repeated_once_without_a_response_format(run, provider, status):
    provider.fails(status, "this does not suit us")
    result = run().result(PATIENCE)
    assert ["response_format" in request for request in provider.requests] == [True, False]
    assert f"HTTP {status}, this does not suit us; {provider.url}/ was called: " in causes(result)
    assert "change providers.local.output" in causes(result)


@pytest.mark.parametrize("words", ["This response_format type is unavailable now", "Unrecognized request argument"])
def test_a_server_without_response_formats_answers_by_a_tool(run, provider, words):
    provider.fails(400, words)
    provider.calls("answer", full_answer(Result="done"))
    assert run().result(PATIENCE).output == "done"


def test_a_connection_that_is_cut_is_repeated(run, provider):
    provider.cuts()
    provider.says(full_answer())
    assert run().result(PATIENCE).outcome is Outcome.FINISHED


def test_a_provider_that_is_not_there_is_an_error_of_the_task(run, provider):
    result = run(url="http://127.0.0.1:9/v1").result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "local:small gave no answer after 2 repetitions" in causes(result)


def test_invalid_completion_is_an_error_of_the_task(run, provider):
    provider.speaks('"hello"')
    result = run().result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "local:small gave no answer" in causes(result)


@pytest.mark.parametrize("failure", ["says", "fails"], ids=["another protocol", "not found"])
def test_error_of_a_server_without_responses_suggests_openai_chat(run, provider, failure):
    getattr(provider, failure)(full_answer() if failure == "says" else 404)
    result = run(kind="openai", api_key="sk-very-secret").result(PATIENCE)
    assert "; it was asked by /responses: set providers.local.kind to openai-chat" in causes(result)
    assert ("what came can't be read (TypeError" in causes(result)) == (failure == "says")


def test_server_without_responses_is_called_by_openai_chat(run, provider):
    provider.says(full_answer())
    assert run(kind="openai-chat", api_key="sk-very-secret").result(PATIENCE).outcome is Outcome.FINISHED


def test_refusal_is_an_error_with_the_refusal_text(run, provider):
    provider.refuses("I can't help with that.")
    result = run().result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "local:small refuses to answer: I can't help with that." in causes(result)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"Status": ', "the answer is not JSON"),
        ("I have finished.", "the answer is not JSON"),
        ('<think>Perhaps {"Status": "FAIL"}, but', "its thoughts are not closed"),
        (json.dumps(full_answer("PERHAPS")), "Status: 'PERHAPS' is not legal now"),
        (json.dumps(full_answer("CONTINUE", action("write", "field-7", text="x"))), "there is no control 'field-7'"),
        (json.dumps(full_answer("CONTINUE", {"Function": "erase", "Args": {}})), "there is no tool 'erase'"),
        (json.dumps(full_answer("CONTINUE", {"Function": "write", "ControlText": "field-1", "Args": {}})), "text: "),
    ],
    ids=["cut", "words", "thoughts", "status", "control", "tool", "arguments"],
)
def test_an_answer_that_can_not_be_used_goes_back_with_the_reason(run, provider, said, why):
    provider.says(said)
    provider.says(full_answer())
    handle = run()
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert [why in reason for reason in reasons(handle)] == [True]
    assert why in json.dumps(provider.requests[1]["messages"], ensure_ascii=False).replace('\\"', '"')


CUT = "the answer was cut at max_tokens 20: say less, or have providers.local.max_tokens raised"


@pytest.mark.parametrize(
    "said",
    [json.dumps(full_answer())[:60], "{}", f"{json.dumps(full_answer())} or rather"],
    ids=["half", "empty", "whole"],
)
def test_an_answer_that_was_cut_goes_back_with_that_for_a_reason(run, provider, said):
    provider.stops_short(said)
    provider.says(full_answer())
    handle = run(max_tokens=20)
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert reasons(handle) == [CUT]
    assert CUT in json.dumps(provider.requests[1]["messages"])


@pytest.mark.parametrize(
    "message",
    [{"content": None, "reasoning_content": "Hm. Hm."}, {"content": ""}, {"content": '<think>Or {"Status": "FAIL"}?'}],
    ids=["beside", "nothing", "inside"],
)
def test_a_model_that_thinks_until_it_is_cut_gave_no_answer(run, provider, message):
    provider.stops_short(**message)
    result = run(max_tokens=20).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "local:small was cut at max_tokens 20 before it answered: raise providers.local.max_tokens" in causes(result)
    assert len(provider.requests) == 1


def test_a_cut_answer_is_as_invalid_when_it_is_played_back(run, provider, start, tmp_path):
    provider.stops_short(f"{json.dumps(full_answer())} or rather")
    provider.says(full_answer())
    file = tmp_path / "calls.jsonl"
    assert run(record=file, max_tokens=20).result(PATIENCE).outcome is Outcome.FINISHED
    again = start(servers=[Unread(MemoryServer.window())], models={"app": f"recorded:{file}"})
    handle = again.submit(Task(request="write hello", target="memo:one"))
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert reasons(handle) == [CUT]


@pytest.mark.parametrize(
    "around",
    ["```json\n{}\n```", "Here it is:\n{}\nI hope it helps.", "<think>Is {{1}} enough?</think>\n{}", "{}\n{}"],
    ids=["block", "words", "thoughts", "twice the same"],
)
def test_text_around_an_answer_is_taken_off(run, provider, around):
    provider.says(around.replace("{}", json.dumps(full_answer())).replace("{{", "{").replace("}}", "}"))
    handle = run()
    assert (handle.result(PATIENCE).outcome, reasons(handle)) == (Outcome.FINISHED, [])


def test_a_cancel_in_the_middle_of_a_call_closes_the_connection(run, provider):
    provider.hangs()
    handle = run()
    assert provider.asked.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert provider.left.wait(PATIENCE)


def test_a_slow_model_is_given_up_when_its_time_is_over(run, provider):
    provider.hangs()
    clock = VirtualClock()
    handle = run(clock=clock, limits={"model_seconds": 30})
    assert provider.asked.wait(PATIENCE)
    clock.advance(31)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "the model gave no answer within 30 s" in causes(result)
    assert provider.left.wait(PATIENCE)


def test_a_fallback_is_asked_where_the_first_choice_gives_no_answer(run, provider, make_provider):
    second = make_provider()
    provider.fails(500)
    second.says(full_answer(Result="from the second"))
    handle = run(retries=0, fallbacks=["other:large"], more={"other": {"url": second.url}})
    assert handle.result(PATIENCE).output == "from the second"
    answered = next(event for event in handle.events() if event.name is EventName.MODEL_ANSWERED)
    assert (answered.data["model"], answered.data["answered_by"]) == ("local:small", "other:large")


def test_a_fallback_is_asked_where_the_first_choice_takes_too_long(run, provider, make_provider):
    second = make_provider()
    provider.hangs()
    second.says(full_answer(Result="from the second"))
    handle = run(seconds=3, fallbacks=["other:large"], more={"other": {"url": second.url}})
    assert handle.result(PATIENCE).output == "from the second"
    assert provider.left.wait(PATIENCE)


def test_error_has_the_reason_of_each_model_when_none_answers(run, provider, make_provider):
    second = make_provider()
    provider.fails(500, "broken")
    second.refuses("never")
    result = run(retries=0, fallbacks=["other:large"], more={"other": {"url": second.url}}).result(PATIENCE)
    first = f"local:small gave no answer: HTTP 500, broken; {provider.url}/ was called"
    assert f"{first}; other:large refuses to answer: never" in causes(result)


def test_agents_share_what_a_provider_answers_at_a_time(start, provider):
    provider.hangs()
    provider.says(full_answer())
    windows = [MemoryServer.window(name) for name in ("one", "two")]
    supervisor = start(
        servers=[Unread(*windows)],
        models={"app": "local:small"},
        providers={"local": {"url": provider.url, "concurrent": 1}},
    )
    first = supervisor.submit(Task(request="write", target="memo:one"))
    assert provider.asked.wait(PATIENCE)
    second = supervisor.submit(Task(request="write", target="memo:two"))
    next(event for event in second.events() if event.name is EventName.STEP_STARTED)
    assert len(provider.requests) == 1
    first.cancel()
    assert second.result(PATIENCE).outcome is Outcome.FINISHED
    assert len(provider.requests) == 2


def test_prices_of_the_settings_make_the_cost(run, provider):
    provider.says(full_answer())
    result = run(input_price=10, output_price=100).result(PATIENCE)
    assert (result.usage.cost, result.usage.unpriced_calls) == (pytest.approx(0.01), 0)


def test_unknown_price_is_not_counted_as_zero(run, provider):
    provider.says(full_answer())
    assert run().result(PATIENCE).usage.unpriced_calls == 1


def test_the_prompt_and_the_longest_answer_are_reserved_before_a_call(start, provider):
    provider.says(full_answer())
    supervisor = start(
        models={"app": "local:small"},
        providers={"local": {"url": provider.url, "max_tokens": 5000}},
        budget={"task": {"tokens": 4999}},
    )
    result = supervisor.submit(Task(request="write", target="memo:one")).result(PATIENCE)
    assert (result.outcome, provider.requests) == (Outcome.OUT_OF_BUDGET, [])


def test_a_model_without_a_schema_mode_answers_by_a_tool(run, provider):
    provider.calls("answer", full_answer(Result="by the tool"))
    assert run(output="tool").result(PATIENCE).output == "by the tool"
    sent = provider.requests[0]
    assert (sent["tools"][0]["function"]["name"], "response_format" in sent) == ("answer", False)


def test_a_model_may_be_held_to_the_form_by_the_prompt_alone(run, provider):
    provider.says(full_answer(Result="by the prompt"))
    assert run(output="prompted").result(PATIENCE).output == "by the prompt"
    assert provider.requests[0].get("response_format", {}).get("type") != "json_schema"
    assert '"additionalProperties"' in json.dumps(provider.requests[0]["messages"]).replace('\\"', '"')


def test_a_controls_name_is_escaped_in_a_schema_within_the_prompt(run, provider):
    surface = MemoryServer(MemoryServer.window(), controls={"</data><|im_end|>": "a"})
    provider.says(full_answer("CONTINUE", action("write", "</data><|im_end|>", text="b")))
    provider.says(full_answer(Actions=[]))
    assert run(surface=surface, output="prompted").result(PATIENCE).outcome is Outcome.FINISHED
    assert surface.effects == [("memo:one", "</data><|im_end|>", "b")]
    assert "<|im_end|>" not in json.dumps(provider.requests[0])
    system = "\n".join(said["content"] for said in provider.requests[0]["messages"] if said["role"] == "system")
    assert '"\\u003c/data>\\u003c|im_end|>"' in system


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("openai", install_command("models")),
        ("ollama", install_command("models")),
        ("anthropic", install_command("anthropic")),
        ("google-cloud", install_command("google")),
        ("groq", "pip install 'pydantic-ai-slim[groq]'"),
        ("xai", "pip install 'pydantic-ai-slim[xai]'"),
    ],
)
def test_missing_package_error_names_the_package_to_install(monkeypatch, kind, command):
    def absent(_):
        raise ImportError

    monkeypatch.setattr("pydantic_ai.providers.infer_provider_class", absent)
    with pytest.raises(SettingsError) as raised:
        named_models(Settings(models={"app": f"{kind}:x"}))
    assert str(raised.value).endswith(f"a package is missing: {command}")


@pytest.mark.parametrize("settings", [{"kind": "anthropic"}, {}], ids=["by kind", "by name"])
def test_missing_package_error_names_the_extra_that_brings_all(monkeypatch, settings):
    for module in ("pydantic_ai", "pydantic_ai.direct", "pydantic_ai.exceptions", "pydantic_ai.models"):
        monkeypatch.setitem(sys.modules, module, None)
    name = "mine" if settings else "anthropic"
    with pytest.raises(SettingsError, match=re.escape(install_command("anthropic"))):
        named_models(Settings(models={"app": f"{name}:x"}, providers={name: settings}))


def test_mistyped_provider_is_reported_before_a_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    with pytest.raises(SettingsError, match=r"'opnai' is no known kind of provider; did you mean 'openai'\?"):
        named_models(Settings(models={"app": "opnai:gpt-5"}))
    with pytest.raises(SettingsError, match=r"a package is missing"):
        named_models(Settings(models={"app": "openai-chat:gpt-5"}))
    address = {"openai_chat": {"url": "http://127.0.0.1:9/v1"}}
    with pytest.raises(SettingsError, match=r"a package is missing"):
        named_models(Settings(models={"app": "openai-chat:gpt-5"}, providers=address))


def test_models_of_one_provider_share_its_connections(provider):
    settings = Settings(
        models={"host": "local:small", "app": "local:small", "linux": "local:large"},
        providers={"local": {"url": provider.url}},
    )
    models = named_models(settings)
    assert models[AgentKind.HOST] is models[AgentKind.APP]
    assert models[AgentKind.HOST].name == "local:small"
    assert models[AgentKind.LINUX]._connection is models[AgentKind.APP]._connection


@pytest.mark.parametrize(
    ("name", "providers", "why"),
    [
        ("nowhere:small", {}, r"models\.app: providers\.nowhere: 'nowhere' is no known kind of provider"),
        ("mine:small", {"mine": {"kind": "carrier-pigeon"}}, r"'carrier-pigeon' is no known kind of provider"),
        ("openai:gpt-5", {}, r"models\.app: providers\.openai: set OPENAI_API_KEY, or providers\.openai\.api_key; "),
        ("ollama:qwen", {}, r"ollama: set OLLAMA_BASE_URL, or providers\.ollama\.url, such as http://[\w.:]+/v1$"),
        ("local:small", {"local": {"url": "http://h/v1", "fallbacks": ["nowhere:x"]}}, r"'nowhere' is no known kind"),
    ],
)
def test_a_model_that_can_not_be_made_is_a_matter_of_the_settings(monkeypatch, name, providers, why):
    for variable in ("OPENAI_API_KEY", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SettingsError, match=why):
        named_models(Settings(models={"app": name}, providers=providers))


def test_empty_key_counts_as_a_missing_one(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "")
    for models in ({"app": "openai:gpt-5"}, {"app": "openai-chat:gpt-5"}):
        with pytest.raises(SettingsError, match="set OPENAI_API_KEY, or providers"):
            named_models(Settings(models=models))


def test_variable_with_an_address_keeps_prompts_from_the_cloud(monkeypatch, provider):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("CALLBOARD_PROVIDERS__OPENAI_CHAT__URL", provider.url)
    model = named_models(Settings.load(models={"app": "openai-chat:gpt-5"}))[AgentKind.APP]
    assert str(model._connection.provider.base_url).startswith(provider.url)


@pytest.mark.parametrize(
    ("models", "providers", "unused"),
    [
        ({"app": "local:x"}, {"local": {}, "lokal": {}}, ["lokal"]),
        ({"app": "my_box:x"}, {"my-box": {}}, []),
        ({"app": "local:x"}, {"local": {"fallbacks": ["spare:y"]}, "spare": {}}, []),
        ({"app": "scripted:file.yaml"}, {"local": {}}, []),
        ({}, {"local": {}}, []),
    ],
)
def test_provider_that_no_model_is_of_is_unused(models, providers, unused):
    providers = {name: {"url": "http://127.0.0.1:9/v1", **options} for name, options in providers.items()}
    assert [name for name, _ in unused_providers(Settings(models=models, providers=providers))] == unused


def test_unused_provider_is_a_warning_at_the_start(provider, tmp_path):
    log, address = tmp_path / "events.log", {"url": provider.url}
    settings = Settings(
        models={"app": "local:x"}, providers={"local": address, "lokal": address}, log={"file": str(log)}
    )
    with Supervisor.start(settings, servers=[MemoryServer(MemoryServer.window())]) as supervisor:
        (warning,) = supervisor.warnings
    assert warning == (
        "providers.lokal: no model of the settings is of this provider; they name local:x; did you mean 'local'?"
    )
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(line["level"], line["provider"]) for line in lines if line["event"] == "provider.unused"] == [
        ("warning", "lokal")
    ]


def test_a_kind_of_provider_is_known_by_its_name(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    model = named_models(Settings(models={"app": "openai:gpt-5"}))[AgentKind.APP]
    assert model.name == "openai:gpt-5"


def test_a_list_price_is_known_for_a_known_model(monkeypatch, asks):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    model = named_models(Settings(models={"app": "openai:gpt-5"}))[AgentKind.APP]
    expected = model.estimate(asks())
    assert expected.tokens > 4096
    assert 0.01 < expected.cost < 1
    strange = named_models(Settings(models={"app": "openai:gpt-of-a-friend"}))[AgentKind.APP]
    assert strange.estimate(asks()).cost is None


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pydantic_ai", None)
    with pytest.raises(SettingsError, match=re.escape(install_command("models"))):
        named_models(Settings(models={"app": "openai:gpt-5"}))


async def test_a_model_that_was_closed_opens_its_connections_again(provider, asks):
    provider.says(full_answer())
    model = named_models(Settings(models={"app": "local:small"}, providers={"local": {"url": provider.url}}))[
        AgentKind.APP
    ]
    for _ in range(2):
        assert json.loads((await model.answer(asks())).content)["Status"] == "FINISH"
        await model.close()
    await model.close()


async def test_provider_error_text_is_shortened(provider, asks):
    provider.fails(400, "x" * 5000)
    model = named_models(Settings(models={"app": "local:small"}, providers={"local": {"url": provider.url}}))[
        AgentKind.APP
    ]
    with pytest.raises(ModelError) as raised:
        await model.answer(asks())
    await model.close()
    assert len(str(raised.value)) < 600


async def test_a_picture_is_sent_to_a_model_that_sees_and_to_no_other(provider, asks):
    provider.says(full_answer())
    request = asks(observation=Observation(picture=b"\x89PNG picture"))
    for sees in (True, False):
        settings = Settings(models={"app": "local:small"}, providers={"local": {"url": provider.url, "pictures": sees}})
        model = named_models(settings)[AgentKind.APP]
        await model.answer(request)
        await model.close()
    contents = [sent["messages"][1]["content"] for sent in provider.requests]
    assert [part["type"] for part in contents[0]] == ["text", "text", "image_url", "text"]
    assert isinstance(contents[1], str)


@pytest.mark.parametrize(("prices", "cost"), [({}, None), ({"input_price": 0, "output_price": 0}, 0.0)])
async def test_uncounted_tokens_are_estimated_without_a_list_price(provider, asks, prices, cost):
    provider.usage = None
    provider.says(full_answer())
    model = named_models(Settings(models={"app": "local:small"}, providers={"local": {"url": provider.url, **prices}}))[
        AgentKind.APP
    ]
    given = await model.answer(asks())
    await model.close()
    assert given.input_tokens > 300
    assert given.output_tokens > 10
    assert given.cost == cost


async def test_an_operator_needs_a_model_that_sees(provider, asks):
    providers = {"local": {"url": provider.url, "pictures": False}}
    model = named_models(Settings(models={"operator": "local:small"}, providers=providers))[AgentKind.OPERATOR]
    with pytest.raises(ModelError, match=r"local:small is shown no pictures, .* set providers\.local\.pictures"):
        await model.answer(asks(kind=AgentKind.OPERATOR))
    await model.close()
    assert provider.requests == []


async def test_operator_action_that_does_not_fit_still_counts_as_an_answer(provider, asks):
    answer = {"Status": "CONTINUE", "Actions": [{"action": "click_at", "x": 1}]}
    provider.says(answer)
    settings = Settings(models={"operator": "local:small"}, providers={"local": {"url": provider.url}})
    model = named_models(settings)[AgentKind.OPERATOR]
    given = await model.answer(asks(kind=AgentKind.OPERATOR, observation=Observation(picture=PNG)))
    await model.close()
    assert (given.cut, json.loads(given.content)) == ("", answer)
