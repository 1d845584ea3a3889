"""Settings of model providers: address, key, rate limits, retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, SecretStr, field_serializer, field_validator, model_validator

from callboard.config._plugin_options import Options
from callboard.config._secrets_in_urls import in_url, masked
from callboard.config._section import HttpAddress, Section, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_PLUGINS = {"plugin", "options", "fallbacks", "seconds"}
"""The keys of a plug-in's provider; anything else belongs to its options."""
COMPATIBLE = "openai-compatible"
"""The kind of a provider that is identified by its address only."""


class Provider(Section):
    """A provider of models.

    A model is named `PROVIDER:MODEL`, with the provider's own name for the model.
    """

    kind: str = ""
    """Its API: `openai`, `anthropic`, `google`, `ollama` …, or `openai-compatible`. By default its own name, if that is
    a known kind, else `openai-compatible`."""
    url: HttpAddress | None = None
    """Its address, such as `http://127.0.0.1:8080/v1`; by default that of its kind. User, password and query are never
    shown."""
    api_key: SecretStr | None = None
    """Its key; by default the environment variable that its kind reads, such as `OPENAI_API_KEY`. Never shown."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers sent with each call; never shown."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """The most calls in any 60 seconds, from all agents together; none: no limit."""
    concurrent: int | None = Field(default=None, ge=1)
    """The most concurrent calls, from all agents together; further ones wait."""
    retries: int = Field(default=2, ge=0)
    """The most retries of a call that failed temporarily (429, 5xx), or whose connection was lost."""
    retry_seconds: Span = 60.0
    """The longest wait before a retry that the provider may ask for; a call that would wait longer fails."""
    seconds: Span | None = None
    """The longest that an answer may take, including retries. By default `limits.model_seconds`; with `fallbacks`, each
    gets an equal share of it."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """The sampling temperature; none: the provider's default. Not sent to models that accept none while they reason,
    such as `gpt-5`."""
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    """The sampling seed, so that the same request gets the same answer; none: a random one. Not every provider supports
    it."""
    actions: int = Field(default=10, ge=1, le=10)
    """The most actions in one answer. Several save calls; small models do better with one, followed by an
    observation."""
    short: bool = False
    """Whether its models get short prompts, for small models: tools without optional parameters, steps without the
    model's thoughts, subtasks without the task's request, and only the names of data that can be passed on by name. No
    agent may give up before it tried something; examples show its own tools."""
    max_tokens: int = Field(default=4096, ge=1)
    """The longest answer in tokens, including the model's reasoning; that much is reserved from the budgets."""
    output: Literal["auto", "native", "tool", "prompted"] = "auto"
    """The way to enforce the schema of answers: the provider's JSON Schema mode, a tool's schema, or only the prompt;
    `auto` uses the first that the model supports."""
    computer_tool: Literal["computer_20250124", "computer_20251124", "computer_toolset_20260801"] | None = None
    """The version of the provider's own computer tool for operators' models; none: the schema that all models use. Only
    for `anthropic`; each of its models supports one version."""
    pictures: bool | None = None
    """Whether its models get pictures; by default, unless the model is known not to support them."""
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The price of a million prompt tokens. By default both prices are the model's list prices, if those are known."""
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The price of a million answer tokens."""
    fallbacks: tuple[str, ...] = ()
    """Models that are called instead, in order, if one of this provider gives no answer."""
    plugin: str = ""
    """The plug-in that creates its models: the name of its entry point, or `DISTRIBUTION:NAME`. Of a provider's keys,
    it accepts only `options`, `fallbacks` and `seconds`."""
    options: Options = Field(default_factory=dict)
    """The plug-in's options, documented by its distribution. Texts with a name like a key's are never shown."""

    @field_validator("kind")
    @classmethod
    def _spelled(cls, kind: str) -> str:
        return kind.replace("_", "-")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.input_price is None) != (self.output_price is None):
            msg = "needs both prices or neither"
            raise ValueError(msg)
        if self.plugin and self.model_fields_set - _OF_PLUGINS:
            foreign_fields = ", ".join(sorted(self.model_fields_set - _OF_PLUGINS))
            msg = f"a plug-in takes no {foreign_fields}; put its parameters in `options`"
            raise ValueError(msg)
        if self.options and not self.plugin:
            msg = "`options` needs a `plugin`"
            raise ValueError(msg)
        if self.kind == COMPATIBLE and self.url is None:
            msg = f"{COMPATIBLE} needs a `url`"
            raise ValueError(msg)
        return self

    @property
    def priced(self) -> bool:
        """True if the settings give its prices."""
        return self.input_price is not None and self.output_price is not None

    @field_serializer("url")
    def _without_secrets(self, url: str | None) -> str | None:
        return None if url is None else masked(url, in_url(url))

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        redacted_fields = {"url": self._without_secrets(self.url)}
        return [(name, redacted_fields.get(name or "", value)) for name, value in super().__repr_args__()]
