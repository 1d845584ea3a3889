"""Repair HTTP replies of providers before their package reads them.

Servers of the OpenAI protocol differ from it in their envelopes: they report errors with HTTP 200, leave out fields
that no caller needs, or stream though nothing asked them to.
"""

from __future__ import annotations

import contextlib
import json
import re
from http import HTTPStatus
from typing import Any

_QUOTED = 200
"""The most characters of an unreadable reply that an error quotes."""
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"\b([45]\d\d)\b")
_WORDS = {
    r"rate.?limit|too many requests|throttl": 429,
    r"overload|capacity|busy": 529,
    r"quota|credit|billing|payment": 402,
    r"auth|api.?key|permission|forbidden": 401,
    r"not.?found|no such|does not exist": 404,
    r"invalid|unsupported|context.?length|too long": 400,
    r"unavailable": 503,
    r"time.?d?.?out": 504,
}
"""The statuses that an error without a number means, by words of its code, type or text."""
_OTHER = 502
_UNREAD = ("annotations", "audio", "function_call", "logprobs", "service_tier", "system_fingerprint")
"""Fields of replies, choices and messages that hold no answer; an odd value must not lose one."""
_STATUSES = ("code", "status", "status_code", "http_status")


async def mend_reply(response: Any) -> None:
    """Repair a response: a hook of the HTTP client.

    An error in the body becomes the response's status.
    """
    if response.status_code != HTTPStatus.OK:
        return
    text = (await response.aread()).decode("utf-8", "replace").strip()
    chat = response.request.url.path.endswith("/chat/completions")
    try:
        body = _assembled(text) if chat and text.startswith("data:") else json.loads(text, strict=False)
    except (ValueError, RecursionError):
        status = _OTHER if not text else HTTPStatus.NOT_ACCEPTABLE
        _replace(response, {"error": {"message": words_of(text), "sent_as": HTTPStatus.OK}}, status)
        return
    if isinstance(body, list) and body and isinstance(body[0], dict) and "error" in body[0]:
        body = body[0]
    if chat and not isinstance(body, dict):
        body = {"error": f"the reply is not an object: {text[:_QUOTED]}"}
    if not isinstance(body, dict):
        return
    status, message = _error_in(body, chat=chat)
    if status:
        error = body.get("error")
        error_fields = error if isinstance(error, dict) else {}
        _replace(response, {"error": {**error_fields, "message": f"{message} (an error within HTTP 200)"}}, status)
    elif chat:
        _replace(response, _completed(body), HTTPStatus.OK)


def words_of(text: str) -> str:
    """Describe a reply that is not JSON."""
    if not text.strip():
        return "the reply is empty"
    if text.lstrip()[:1] == "<":
        title = _TITLE.search(text)
        about = " ".join(title[1].split())[:_QUOTED] if title else ""
        return f"the reply is an HTML page{f', {about!r}' if about else ''}"
    return f"the reply is not JSON: {' '.join(text[:_QUOTED].split())!r}"


def _replace(response: Any, body: dict[str, Any], status: int) -> None:
    response.status_code = int(status)
    response._content = json.dumps(body).encode()  # noqa: SLF001 - a hook can't replace the response
    response.headers["content-type"] = "application/json"


def _error_in(body: dict[str, Any], *, chat: bool) -> tuple[int, str]:
    """Return an error's status and text; status 0 without one."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    for error in (body.get("error"), first.get("error")):
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            return _status_of(error, body), message if isinstance(message, str) else json.dumps(error)
    if chat and first.get("finish_reason") == "error":
        return _OTHER, "the provider broke the answer off: its finish_reason is error"
    if chat and not first:
        message = body.get("message") or body.get("detail")
        return _status_of(message, body), message if isinstance(message, str) else "the reply has no choices"
    return 0, ""


def _status_of(error: object, body: dict[str, Any]) -> int:
    fields = error if isinstance(error, dict) else {}
    for number in (*map(fields.get, _STATUSES), *map(body.get, _STATUSES)):
        if isinstance(number, int | str) and re.fullmatch(r"[45]\d\d", str(number)):
            return int(number)
    text = " ".join(str(fields.get(name, "")) for name in ("code", "type", "message")) if fields else str(error)
    if number := _NUMBER.search(text):
        return int(number[1])
    return next((status for words, status in _WORDS.items() if re.search(words, text, re.IGNORECASE)), _OTHER)


def _assembled(text: str) -> dict[str, Any]:
    """Put the chunks of a stream together.

    Raises:
        ValueError: If one is not JSON.
    """
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[Any, dict[str, Any]] = {}
    choice: dict[str, Any] = {"index": 0, "message": message}
    for line in text.splitlines():
        name, _, data = line.partition(":")
        if name != "data" or data.strip() in {"", "[DONE]"}:
            continue
        chunk = json.loads(data, strict=False)
        if not isinstance(chunk, dict):
            continue
        body |= {key: value for key, value in chunk.items() if value is not None and key not in {"choices", "object"}}
        for part in chunk.get("choices") or ():
            choice |= {key: part[key] for key in ("finish_reason", "error") if part.get(key)}
            delta = part.get("delta") or part.get("message") or {}
            for key in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(key), str):
                    message[key] = (message.get(key) or "") + delta[key]
            for call in delta.get("tool_calls") or ():
                _extend(calls.setdefault(call.get("index", len(calls)), {"function": {}}), call)
    if calls:
        message["tool_calls"] = [*calls.values()]
    return {**body, "choices": [choice]}


def _extend(call: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a part of a tool call."""
    call |= {key: value for key, value in part.items() if value is not None and key != "function"}
    function = part.get("function") or {}
    call["function"].setdefault("name", function.get("name"))
    arguments = function.get("arguments")
    previous_arguments = call["function"].get("arguments", "")
    call["function"]["arguments"] = (
        previous_arguments + arguments if isinstance(arguments, str) else arguments or previous_arguments
    )


def _completed(body: dict[str, Any]) -> dict[str, Any]:
    """Fill in the fields of a completion that carry no answer."""
    fixed = {
        **_read(body),
        "id": str(body.get("id") or ""),
        "object": "chat.completion",
        "created": body["created"] if isinstance(body.get("created"), int) else 0,
        "model": str(body.get("model") or ""),
        "usage": _usage(body.get("usage")),
    }
    choices = [choice for choice in body["choices"] if isinstance(choice, dict)]
    fixed["choices"] = [_choice(choice, number) for number, choice in enumerate(choices)]
    return fixed


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage if both token counts are there, else None."""
    counts: dict[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError, KeyError, OverflowError):
        counts = {name: int(usage[name]) for name in ("prompt_tokens", "completion_tokens")}
        details = {name: _counts(part) for name, part in usage.items() if isinstance(part, dict)}
        if counts == _counts(counts):
            return {**details, **counts, "total_tokens": sum(counts.values())}
    return None


def _counts(part: dict[str, Any]) -> dict[str, Any]:
    return {name: count for name, count in part.items() if isinstance(count, int) and count >= 0}


def _read(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in fields.items() if name not in _UNREAD}


def _choice(choice: dict[str, Any], number: int) -> dict[str, Any]:
    message = choice.get("message") or choice.get("delta") or {"content": choice.get("text")}
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
    fixed = {**_read(message), "role": "assistant", "content": content}
    if not isinstance(message.get("refusal"), str):
        fixed["refusal"] = None
    fixed["tool_calls"] = [_call(call, index) for index, call in enumerate(calls)] or None
    return {**_read(choice), "index": number, "finish_reason": choice.get("finish_reason") or "stop", "message": fixed}


def _call(call: dict[str, Any], number: int) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    arguments = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    function = {**function, "name": str(function.get("name") or ""), "arguments": arguments}
    return {**call, "id": str(call.get("id") or f"call-{number}"), "type": "function", "function": function}
