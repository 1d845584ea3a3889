"""A provider's language model, called over the network through pydantic-ai."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, cast

from callboard.config import COMPATIBLE
from callboard.messages import AgentStatus, InvalidAnswerError, ModelError, Usage
from callboard.models._model import Expected, Model, ModelAnswer
from callboard.models._responses import only_thought, read_response
from callboard.models.live._computer_tool import ComputerTool
from callboard.models.live._rate_limit import retry_pause
from callboard.models.live._reply import words_of
from callboard.models.prompt import (
    CHARACTERS,
    MOST_ACTIONS,
    answer_schema,
    copied,
    cut,
    is_free,
    legal_statuses,
    own_steps,
    prompt_of,
    shortened_request,
    tamed,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as ProvidersModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from callboard.messages import Seconds
    from callboard.models._model import ModelRequest
    from callboard.models.live._connection import Connection
    from callboard.models.prompt import Prompt

_Mode = Literal["native", "tool", "prompted"]
_ANSWER = "answer"
_LONGEST = 400
_BY_RESPONSES = ("openai", "openai-responses")
"""Kinds of providers that are called by /responses."""
_NOT_HERE, _REFUSED, _NO_ENTRY = {404, 405, 406}, {400, 422, 501}, {401, 403}
_OF_PROXIES = {406, 407, 502, 503, 504}
"""Statuses that a proxy may answer with, and the one of a reply that is not JSON."""


class LiveModel(Model):
    """A provider's model.

    It is created on any thread and used on one event loop.
    """

    def __init__(
        self, name: str, model: ProvidersModel, connection: Connection, seconds: Seconds, *, has_fallback: bool = False
    ) -> None:
        """Initialise the model; `connection` is shared with the provider's other models.

        Args:
            name: The name in the settings.
            model: The model of pydantic-ai.
            connection: The connection to the provider.
            seconds: The maximum duration of an answer, for network timeouts.
            has_fallback: Whether another model is asked if this one gives no answer.
        """
        self.name = name
        self._model = model
        self._connection = connection
        self._settings = connection.settings
        self._seconds = seconds
        self._has_fallback = has_fallback
        self._output = _output(self._settings.output, model)
        self._has_tool = self._settings.output == "auto" and bool(model.profile.get("supports_tools", True))
        sees = self._settings.pictures
        self._pictures = bool(model.profile.get("supports_image_input", True)) if sees is None else sees
        version = self._settings.computer_tool
        self._computer = None if version is None else ComputerTool(version)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for a turn of the provider's rate limit."""
        return self._connection.rate.turn()

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model and retry after transient errors.

        A cancellation closes the connection.

        Raises:
            ModelError: If there is no answer: the provider or the model refuses, or the provider can't be reached.
        """
        if request.is_operator and not self._pictures:
            where = f"providers.{self.name.partition(':')[0]}.pictures"
            msg = f"{self.name} is shown no pictures, and an operator sees nothing else: if it can see, set {where}"
            raise ModelError(msg)
        visible_request, computer_tool = self._visible_request(request), self._computer_tool_for(request)
        schema = self._schema(visible_request)
        prompt = self._prompt(visible_request, schema)
        more = {} if computer_tool is None else computer_tool.settings(request, _ANSWER, schema)
        response = await self._send_request(self._messages(prompt, schema, computer_tool), schema, more)
        content = (
            _content(response)
            if computer_tool is None
            else computer_tool.content(response, _ANSWER) or _content(response)
        )
        input_tokens, output_tokens, cost = self._connection.prices.of(
            response, self._model.model_name, prompt.tokens, content
        )
        usage = Usage(
            input_tokens=input_tokens, output_tokens=output_tokens, cost=cost or 0.0, unpriced_calls=int(cost is None)
        )
        self._check_refusal(response, usage)
        cut = self._cut(response, content, usage) or self._empty(response, content, usage)
        return ModelAnswer(
            content=content,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost=cost,
            model=response.model_name or "",
            refers=True,
            offered=legal_statuses(visible_request, short=self._settings.short),
            cut=cut or self._unfit(request, visible_request, content),
            summarised=prompt.summarised,
            dropped=prompt.dropped,
        )

    def estimate(self, request: ModelRequest) -> Expected:
        """Return the usage of the prompt and the longest answer."""
        visible_request = self._visible_request(request)
        schema = self._schema(visible_request)
        prompt = self._prompt(visible_request, schema)
        input_tokens, output_tokens = prompt.tokens + len(str(schema)) // CHARACTERS, self._settings.max_tokens
        cost = self._connection.prices.cost(self._model.model_name, input_tokens, output_tokens)
        return Expected(tokens=input_tokens + output_tokens, cost=cost)

    def _visible_request(self, request: ModelRequest) -> ModelRequest:
        computer_tool = self._computer_tool_for(request)
        visible_request = request if computer_tool is None else computer_tool.without(request)
        return shortened_request(visible_request) if self._settings.short else visible_request

    def _computer_tool_for(self, request: ModelRequest) -> ComputerTool | None:
        """Return the provider's computer tool if the request uses it."""
        return self._computer if self._computer is not None and self._computer.serves(request) else None

    def _schema(self, request: ModelRequest) -> dict[str, Any]:
        required = self._connection.kind != COMPATIBLE  # self-hosted servers accept any schema
        return answer_schema(request, all_required=required, actions=self._settings.actions, short=self._settings.short)

    def _prompt(self, request: ModelRequest, schema: dict[str, Any]) -> Prompt:
        """Write the prompt.

        Without a strict mode it states the limit of actions.
        """
        bounded = self._settings.actions < MOST_ACTIONS and self._mode(schema) != "native"
        actions = self._settings.actions if bounded else None
        return prompt_of(request, pictures=self._pictures, short=self._settings.short, actions=actions)

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._connection.close()

    def _messages(
        self, prompt: Prompt, schema: dict[str, Any], computer_tool: ComputerTool | None
    ) -> list[ModelMessage]:
        from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

        texts = [part for part in prompt.user if isinstance(part, str)]
        parts = [
            BinaryContent(data=part, media_type="image/png") if isinstance(part, bytes) else part
            for part in prompt.user
        ]
        parts += [] if computer_tool is None else [computer_tool.instructions(_ANSWER)]
        content = "\n\n".join(texts) if len(texts) == len(parts) else parts  # some servers accept no list of texts
        instructions = prompt.system
        if self._output == "prompted":  # the names in a schema come from documents and screens
            schema_request = "Answer with one JSON object of this schema, and nothing around it:"
            instructions = f"{instructions}\n\n{schema_request}\n\n{tamed(written(schema))}"
        return [ModelRequest(parts=[UserPromptPart(content=content)], instructions=instructions)]

    def _parameters(self, schema: dict[str, Any], mode: _Mode) -> ModelRequestParameters:
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        if mode == "tool":
            tool = ToolDefinition(name=_ANSWER, parameters_json_schema=schema, kind="output")
            return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
        definition = OutputObjectDefinition(json_schema=schema, name=_ANSWER)
        return ModelRequestParameters(
            output_mode=mode,
            output_object=definition,
            prompted_output_template=False,  # its template would not escape names: see `_messages`
            allow_text_output=True,
        )

    def _mode(self, schema: dict[str, Any]) -> _Mode:
        """Choose the output mode: a tool if strict mode rejects free arguments."""
        hollowed = self._model.profile.get("anthropic_enforces_strict_schema_limits", False) and is_free(schema)
        return "tool" if self._output == "native" and self._has_tool and hollowed else self._output

    def _sent(self, more: Mapping[str, Any]) -> ModelSettings:
        settings: ModelSettings = {
            "max_tokens": self._settings.max_tokens,
            "max_retries": 0,  # `_send_request` retries, within the rate limit
            "timeout": self._seconds + 5,  # the caller's timeout comes first
        }
        if self._settings.temperature is not None and _takes_temperature(self._model):
            settings["temperature"] = self._settings.temperature
        if self._settings.seed is not None:
            settings["seed"] = self._settings.seed
        if self._settings.headers:
            settings["extra_headers"] = {key: value.get_secret_value() for key, value in self._settings.headers.items()}
        return cast("ModelSettings", {**settings, **more})

    async def _send_request(
        self, messages: list[ModelMessage], schema: dict[str, Any], more: Mapping[str, Any]
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request

        await self._connection.open()
        settings, mode, tries = self._sent(more), "tool" if more else self._mode(schema), 0
        refused: Exception | None = None
        while True:
            parameters = self._parameters(schema, mode)
            try:
                return await model_request(
                    self._model, messages, model_settings=settings, model_request_parameters=parameters
                )
            except Exception as error:  # any error: a provider's package may raise any type
                if mode == "native" and self._has_tool and self._refuses_form(error):
                    mode, refused = "tool", error
                    await self._connection.rate.begin()
                    continue
                error = refused if refused is not None and self._refuses_form(error) else error
                pause = retry_pause(error, tries, self._settings, self._connection.rate)
                if pause is None:
                    repetition = f" after {tries} repetitions" if tries else ""
                    msg = f"{self.name} gave no answer{repetition}: {self._why(error)}{self._hint(error)}"
                    raise ModelError(msg) from None  # its text may contain the key or the whole prompt
            await asyncio.sleep(pause)
            await self._connection.rate.begin()
            tries += 1

    def _refuses_form(self, error: Exception) -> bool:
        """Return whether a request was rejected, perhaps for its response format.

        The price list's own providers know that format, and reject single schemas, as their packages do. Other servers
        word it in many ways, so the status decides.
        """
        from pydantic_ai.exceptions import (
            ModelAuthenticationError,
            ModelContextWindowExceededError,
            ModelNotFoundError,
            ModelRequestRejectedError,
        )

        other_rejections = (ModelAuthenticationError, ModelContextWindowExceededError, ModelNotFoundError)
        if not isinstance(error, ModelRequestRejectedError) or isinstance(error, other_rejections):
            return False
        text = f"{error} {getattr(error, 'body', '')}".casefold()
        return not self._connection.prices.at_home or "schema" in text or "grammar" in text

    def _why(self, error: Exception) -> str:
        """Return a short, redacted reason.

        The provider's message is in the body of its response.
        """
        from pydantic_ai.exceptions import ModelConnectionError

        status, body = getattr(error, "status_code", None), getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else words_of(body) if isinstance(body, str) else None
        status = inner.get("sent_as", status) if isinstance(inner, dict) else status
        text = message if isinstance(message, str) and message else str(error)
        text = text if _is_own_error(error) else f"what came can't be read ({type(error).__name__}: {text})"
        if not status and isinstance(error, ModelConnectionError):
            text = f"no connection to {self._connection.provider.base_url}"
        visible_text = self._connection.hidden(" ".join(text.split()))
        return f"{f'HTTP {status}, ' if status else ''}{visible_text[:_LONGEST]}"

    def _hint(self, error: Exception) -> str:
        """Return the address that was called, and the setting that may help."""
        from pydantic_ai.exceptions import ModelConnectionError

        where, url = f"providers.{self.name.partition(':')[0]}", str(self._connection.provider.base_url)
        status = getattr(error, "status_code", None) or 0
        unknown = status in _NOT_HERE or not _is_own_error(error)
        hints = ""
        if unknown and self._connection.kind in _BY_RESPONSES and not self._connection.prices.at_home:
            hints = (
                f"; it was asked by /responses: set {where}.kind to openai-chat for a server that only has "
                "/chat/completions"
            )
        elif unknown:
            hints = f"; {url} was called: is {where}.url right? Many servers need /v1 at its end"
        elif status in _REFUSED:
            named = [name for name in ("max_tokens", "temperature", "seed") if name in str(error)]
            hints = f"; {url} was called: if the server can't do what was asked, change {where}.output" + "".join(
                f", or {where}.{name}" for name in named
            )
            kind = f", or set {where}.kind to openai-chat" if "max_completion_tokens" in str(error) else ""
            hints += kind
        elif status in _NO_ENTRY:
            hints = f"; {url} was called: see {where}.api_key"
        elif status:
            hints = f"; {url} was called"
        proxied = status in _OF_PROXIES or isinstance(error, ModelConnectionError)
        return self._connection.hidden(hints + (self._connection.proxy() if proxied else ""))

    def _check_refusal(self, response: ModelResponse, usage: Usage) -> None:
        if response.finish_reason == "content_filter":
            details = response.provider_details or {}
            refusal = self._connection.hidden(str(details.get("refusal", "")))
            msg = f"{self.name} refuses to answer{f': {refusal[:_LONGEST]}' if refusal else ''}"
            raise ModelError(msg, usage)

    def _cut(self, response: ModelResponse, content: Any, usage: Usage) -> str:
        """Return a message for a cut answer.

        Raises if the answer has only reasoning.
        """
        if response.finish_reason != "length":
            return ""
        at = f"was cut at max_tokens {self._settings.max_tokens}"
        where = f"providers.{self.name.partition(':')[0]}.max_tokens"
        if content in ("", {}) or only_thought(content):
            msg = f"{self.name} {at} before it answered: raise {where}"
            raise ModelError(msg, usage)
        return f"the answer {at}: say less, or have {where} raised"

    def _empty(self, response: ModelResponse, content: Any, usage: Usage) -> str:
        """Return a message for an answer without content.

        Raises if there is a fallback: the next model is more likely to answer than the same one.
        """
        text = content.strip() if isinstance(content, str) else content
        if text not in ({}, "{}", "null") and not only_thought(text):
            return ""
        called = ", ".join(repr(call.tool_name) for call in response.tool_calls)
        thought = "; it has thoughts alone" if response.thinking or content else ""
        problem = f"the answer is a call of the tool {called}, not the JSON object that was asked for"
        problem = problem if called else f"the answer is empty{thought}"
        if self._has_fallback:
            msg = f"{self.name}: {self._connection.hidden(problem)}"
            raise ModelError(msg, usage)
        return "" if content and str(content).strip() else problem  # the reader names unfinished thoughts

    def _unfit(self, request: ModelRequest, visible_request: ModelRequest, content: object) -> str:
        """Return the problem of an answer that its schema allows.

        The model saw the request as `visible_request`.
        """
        try:
            response = read_response(request.response, content)
            actions, most = response.decided_actions(), self._settings.actions
        except InvalidAnswerError:
            return ""
        count = len(actions)
        if count > most:
            what = "action is" if most == 1 else "actions are"
            return f"the answer has {count} actions, and at most {most} {what} taken at a time"
        copied_names = copied(visible_request, [action.arguments for action in actions]) if self._settings.short else []
        if copied_names:
            return f"Args has {', '.join(copied_names)} of the example: put in what your subtask says in place of it"
        plan = "; ".join(line for line in response.plan if line.strip())
        acted = count or any(record.acted for record in own_steps(request))  # else it is sent back in any case
        if (
            plan and acted and response.decided_status() == AgentStatus.FINISH and not request.reasons
        ):  # a repeated FINISH is accepted
            plan = cut(plan, _LONGEST)
            return (
                f"it says FINISH, and Plan tells what is still to be done: {plan}. Do that; if it is done, empty Plan"
            )
        return ""


def _output(setting: Literal["auto"] | _Mode, model: ProvidersModel) -> _Mode:
    """Choose the output mode that enforces the form of an answer."""
    if setting != "auto":
        return setting
    if model.profile.get("supports_json_schema_output", False):
        return "native"
    return "tool" if model.profile.get("supports_tools", True) else "prompted"


def _takes_temperature(model: ProvidersModel) -> bool:
    """Return whether a model accepts a temperature.

    Most do not while they reason, and pydantic-ai would warn the program.
    """
    profile: Mapping[str, Any] = model.profile
    if profile.get("anthropic_disallows_sampling_settings", False):
        return False
    efforts = profile.get("openai_reasoning_efforts")
    can_rest = profile.get("openai_supports_reasoning_effort_none", False) if efforts is None else "none" in efforts
    rests = can_rest and not profile.get("thinking_enabled_by_default", False)
    return bool(rests or not profile.get("openai_supports_reasoning", False))


def _is_own_error(error: Exception) -> bool:
    """Return whether pydantic-ai raises the error itself; others come from unreadable responses."""
    from pydantic_ai.exceptions import AgentRunError, UserError

    return isinstance(error, AgentRunError | UserError)


def _content(response: ModelResponse) -> Any:
    """Return the content of an answer.

    It is the arguments of the answer tool, else the text.
    """
    for call in response.tool_calls:
        if call.tool_name == _ANSWER:
            return call.args if isinstance(call.args, str) else (call.args or {})
    return response.text or ""
