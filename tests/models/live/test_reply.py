"""Replies of servers that differ from the OpenAI protocol, through tasks. The provider is on this machine."""

from __future__ import annotations

import json

import pytest

from callboard import Outcome
from callboard.models.live import _rate_limit
from support import PATIENCE, full_answer

MESSAGE = {"role": "assistant", "content": json.dumps(full_answer(Result="done"))}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
BODY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "small-2026",
    "choices": [{"index": 0, "finish_reason": "stop", "message": MESSAGE}],
    "usage": USAGE,
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_rate_limit, "FIRST_PAUSE", 0.001)


def causes(result):
    return " / ".join(cause.reason for cause in result.causes)


def body(message=MESSAGE, reason="stop", **more):
    return json.dumps({**BODY, "choices": [{"index": 0, "finish_reason": reason, "message": message}], **more})


def stream(*choices, **last):
    """Write chunks of a stream, in pieces of the answer."""
    chunks = [{"id": "1", "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    return (
        "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, *([last] if last else [])]) + "data: [DONE]\n"
    )


PIECES = [{"index": 0, "delta": {"content": MESSAGE["content"][i : i + 9]}} for i in range(0, 999, 9)]

ERRORS = {
    "number": ({"error": {"message": "slow down", "code": 429}}, 429),
    "number as text": ({"error": {"message": "slow down", "code": "502"}}, 502),
    "nulls beside": ({"id": None, "choices": None, "usage": None, "error": {"message": "slow down", "code": 529}}, 529),
    "status": ({"error": {"message": "slow down", "status": 503}}, 503),
    "beside": ({"error": {"message": "slow down"}, "status_code": 500}, 500),
    "type": ({"error": {"message": "slow down", "type": "overloaded_error"}}, 529),
    "code in words": ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, 429),
    "text": ({"error": "slow down, 429"}, 429),
    "words": ({"error": "slow down: too many requests"}, 429),
    "unknown": ({"error": {"message": "slow down"}}, 502),
    "in the choice": ({"choices": [{"error": {"message": "slow down", "code": 502}, "message": MESSAGE}]}, 502),
    "no choices": ({**BODY, "choices": [], "message": "slow down"}, 502),
    "detail": ({"detail": "slow down", "status": 503}, 503),
    "in a list": ([{"error": {"message": "slow down", "code": 429}}], 429),
}
NO_OBJECTS = {"null": ("null", 502), "text": ('"slow down: too many requests"', 429), "list": ("[]", 502)}


@pytest.mark.parametrize(("sent", "status"), ERRORS.values(), ids=ERRORS)
def test_an_error_within_http_200_is_retried_as_its_status(run, provider, sent, status):
    provider.speaks(json.dumps(sent))
    provider.speaks(json.dumps(sent))
    provider.speaks(body())
    assert run().result(PATIENCE).output == "done"
    provider.requests.clear()
    result = run(retries=0).result(PATIENCE)
    assert f"local:small gave no answer: HTTP {status}, slow down" in causes(result)
    assert "(an error within HTTP 200)" in causes(result)
    assert f"{provider.url}/ was called" in causes(result)


@pytest.mark.parametrize(("sent", "status"), NO_OBJECTS.values(), ids=NO_OBJECTS)
def test_a_reply_that_is_no_object_is_retried(run, provider, sent, status):
    provider.speaks(sent)
    provider.speaks(body())
    assert run().result(PATIENCE).output == "done"
    provider.speaks(sent)
    assert f"HTTP {status}, the reply is not an object: {sent}" in causes(run(retries=0).result(PATIENCE))


def test_an_error_in_a_stream_is_retried_as_its_status(run, provider):
    provider.speaks(stream(*PIECES[:3], {"index": 0, "error": {"code": 429, "message": "slow down"}}))
    provider.speaks(stream(PIECES[0], error={"code": 502, "message": "gone"}))
    provider.speaks(stream(*PIECES))
    assert run().result(PATIENCE).output == "done"


def test_a_permanent_error_within_http_200_is_not_retried(run, provider):
    provider.speaks(json.dumps({"error": {"message": "no such model", "code": 404}}))
    assert "HTTP 404, no such model" in causes(run().result(PATIENCE))
    assert len(provider.requests) == 1


SOUND = {
    "no usage": {"usage": None},
    "total alone": {"usage": {"total_tokens": 5}},
    "usage of nulls": {"usage": dict.fromkeys(USAGE)},
    "usage as text": {"usage": {**USAGE, "prompt_tokens": "many"}},
    "odd details": {"usage": {**USAGE, "prompt_tokens_details": 3}},
    "negative usage": {"usage": {**USAGE, "completion_tokens": -1}},
    "negative details": {"usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": -1}}},
    "odd fields beside": {"service_tier": 7, "system_fingerprint": 7},
    "odd fields of the choice": {"choices": [{"message": MESSAGE, "logprobs": "none"}]},
    "odd fields of the message": {
        "choices": [{"message": {**MESSAGE, "annotations": [{"type": "x"}], "audio": {"id": None}, "refusal": False}}]
    },
    "no id": {"id": None},
    "number as id": {"id": 7},
    "no object": {"object": None},
    "other object": {"object": "text"},
    "no model": {"model": None},
    "date": {"created": "today"},
    "no error": {"error": None},
    "reason of its own": {"choices": [{"finish_reason": "eos", "message": MESSAGE}]},
    "no reason": {"choices": [{"finish_reason": None, "message": MESSAGE}]},
    "no role": {"choices": [{"message": {"content": MESSAGE["content"]}}]},
    "parts": {"choices": [{"message": {"content": [{"type": "text", "text": MESSAGE["content"]}]}}]},
    "arguments as an object": {
        "choices": [
            {"message": {"tool_calls": [{"function": {"name": "answer", "arguments": full_answer(Result="done")}}]}}
        ]
    },
}


@pytest.mark.parametrize("missing", [False, True])
def test_fields_that_carry_no_answer_lose_none(run, provider, missing):
    """Each form is the answer of one step."""
    more = full_answer("CONTINUE", {"Function": "write", "ControlText": "field-1", "Args": {"text": "x"}})
    for name, part in SOUND.items():
        sent = {**BODY, **part}
        sent = {key: value for key, value in sent.items() if not (missing and value is None)}
        for choice in sent["choices"]:
            said = json.dumps(choice).replace(json.dumps(MESSAGE["content"])[1:-1], json.dumps(json.dumps(more))[1:-1])
        if name != "arguments as an object":
            sent["choices"] = [json.loads(said)]
        provider.speaks(json.dumps(sent))
    result = run(limits={"repeats": 100}).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "done")
    assert len(provider.requests) == len(SOUND)


@pytest.mark.parametrize("last", [{}, {"usage": None, "choices": []}, {"usage": {"total_tokens": 5}, "choices": []}])
def test_a_stream_that_was_not_asked_for_is_read(run, provider, last):
    provider.speaks(stream(*PIECES, **last))
    assert run().result(PATIENCE).output == "done"


EMPTY = {
    "empty": (body({"role": "assistant", "content": ""}), "the answer is empty"),
    "blank": (body({"role": "assistant", "content": " \n"}), "the answer is empty"),
    "null": (body({"role": "assistant", "content": None}), "the answer is empty"),
    "null as text": (body({"role": "assistant", "content": "null"}), "the answer is empty"),
    "no members": (body({"role": "assistant", "content": " {} "}), "the answer is empty"),
    "reasoning alone": (
        body({"role": "assistant", "content": None, "reasoning_content": "I think"}),
        "the answer is empty; it has thoughts alone",
    ),
    "thoughts alone": (body({"role": "assistant", "content": "<think>Hm.</think>"}), "the answer is empty"),
    "tool call": (
        body({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "read", "arguments": "{}"}}]}),
        "the answer is a call of the tool 'read', not the JSON object",
    ),
    "length": (body({"role": "assistant", "content": ""}, "length"), "before it answered: raise"),
    "content_filter": (body({"role": "assistant", "content": None}, "content_filter"), "refuses to answer"),
    "error": (body({"role": "assistant", "content": "{"}, "error"), "finish_reason is error"),
}


@pytest.mark.parametrize(("sent", "why"), EMPTY.values(), ids=EMPTY)
def test_a_fallback_is_called_for_an_answer_without_content(run, provider, make_provider, sent, why):
    second = make_provider()
    provider.speaks(sent)
    second.speaks(body())
    more = {"other": {"url": second.url}}
    assert run(retries=0, fallbacks=["other:large"], more=more).result(PATIENCE).output == "done"
    second.orders.clear()
    second.fails(401)
    assert why in causes(run(retries=0, fallbacks=["other:large"], more=more).result(PATIENCE))


def test_without_a_fallback_an_empty_answer_goes_back(run, provider):
    provider.speaks(EMPTY["tool call"][0])
    provider.speaks(body())
    assert run().result(PATIENCE).output == "done"
    assert "the answer is a call of the tool 'read'" in json.dumps(provider.requests[1]["messages"])


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("<html><title>Log in\n to WiFi</title></html>", "HTTP 200, the reply is an HTML page, 'Log in to WiFi'; "),
        ("welcome", "HTTP 200, the reply is not JSON: 'welcome'; "),
        ("", "HTTP 200, the reply is empty; "),
    ],
)
def test_a_reply_that_is_not_json_is_named_with_the_address(run, provider, sent, why):
    provider.speaks(sent)
    reason = causes(run(retries=0).result(PATIENCE))
    assert f"local:small gave no answer: {why}{provider.url}/ was called" in reason


def test_an_unknown_address_names_the_setting(run, provider):
    provider.fails(404, "no page")
    reason = causes(run().result(PATIENCE))
    assert f"{provider.url}/ was called: is providers.local.url right?" in reason


def test_a_rejected_parameter_names_its_setting(run, provider):
    provider.fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    reason = causes(run().result(PATIENCE))
    assert "or providers.local.max_tokens, or set providers.local.kind to openai-chat" in reason


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_dead_proxy_is_named_without_its_password(run, provider, monkeypatch, variable):
    monkeypatch.setenv(variable, "http://user:xyzzy-4711@127.0.0.1:9")
    provider.speaks(body())
    reason = causes(run(retries=0).result(PATIENCE))
    assert f"no connection to {provider.url}/; it was called through the proxy http://" in reason
    assert f"@127.0.0.1:9 of {variable.upper()}: NO_PROXY=127.0.0.1 leaves it out" in reason
    assert "xyzzy" not in reason
