"""Where models live: a provider's address, its key, and how fast it may be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, SecretStr, field_serializer, model_validator

from callboard.config._options import Options
from callboard.config._secrets import in_url, masked
from callboard.config._section import Section, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_PLUGINS = {"plugin", "options", "fallbacks", "seconds"}
"""The keys that a provider of a plug-in has; all else is a matter of its options."""
COMPATIBLE = "openai-compatible"
"""The kind of a provider that only says where it is."""


class Provider(Section):
    """A provider of models. A model's name is the provider's, a colon, and what the provider calls the model."""

    kind: str = ""
    """What it speaks: `openai`, `anthropic`, `google`, `ollama` …, or `openai-compatible`. By default its own name, if
    that is a known kind, else `openai-compatible`."""
    url: str | None = None
    """Its address, such as `http://127.0.0.1:8080/v1`; by default the kind's own. User, password and query are never
    shown."""
    api_key: SecretStr | None = None
    """Its key; by default the variable of the environment that its kind reads, such as `OPENAI_API_KEY`. Never
    shown."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers that it gets with each call; never shown."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """How many calls it gets in any 60 seconds, from all agents together; none: as many as there are."""
    concurrent: int | None = Field(default=None, ge=1)
    """How many calls it answers at a time, for all agents together; the others wait for their turn."""
    retries: int = Field(default=2, ge=0)
    """How often a call is repeated that it refused for the moment (429, 5xx), or that was cut off."""
    retry_seconds: Span = 60.0
    """The longest wait that it may ask for before a repetition; one that asks for more is given up."""
    seconds: Span | None = None
    """The longest that it may take for an answer, repetitions included. By default `limits.model_seconds`; with
    `fallbacks`, each gets an equal share of them."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """How freely it words its answers; none: its own default. Not sent to models that take none while they reason, such
    as `gpt-5`."""
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    """What its choice of words starts from, so that the same question gets the same answer; none: another each time.
    Not every provider heeds it."""
    actions: int = Field(default=10, ge=1, le=10)
    """The most actions in one answer. Several save calls; small models do better with one, and a look after it."""
    short: bool = False
    """Whether its models get short prompts, as small ones need them: tools without the parameters that may be left out,
    steps without what the model thought, subtasks without the request that they are part of, and data that can be
    passed on by its name alone."""
    max_tokens: int = Field(default=4096, ge=1)
    """The longest answer, in tokens, what a model thinks before it included; that much is reserved from the budgets."""
    output: Literal["auto", "native", "tool", "prompted"] = "auto"
    """How it is held to the form of an answer: by its own JSON Schema mode, by a tool's schema, or by the prompt alone;
    `auto` takes the first that the model has."""
    computer_tool: Literal["computer_20250124", "computer_20251124", "computer_toolset_20260801"] | None = None
    """The version of its own computer tool with which operators' models act; none: by the form that all models have.
    For `anthropic` alone; each of its models knows one version."""
    pictures: bool | None = None
    """Whether its models are shown pictures; by default, unless the model is known not to see."""
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """What a million tokens of a prompt cost. By default both are the model's list prices, if those are known."""
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """What a million tokens of answers cost."""
    fallbacks: tuple[str, ...] = ()
    """Models that are asked instead, in order, if one of this provider gives no answer."""
    plugin: str = ""
    """The plug-in that makes its models: the name of its entry point, or `DISTRIBUTION:NAME`. It has `fallbacks` and
    `seconds`, and no other key of a provider but `options`."""
    options: Options = Field(default_factory=dict)
    """What the plug-in takes; its distribution says what that is. Texts with a name like a key's are never shown."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.input_price is None) != (self.output_price is None):
            msg = "needs both prices, or none"
            raise ValueError(msg)
        if self.plugin and self.model_fields_set - _OF_PLUGINS:
            others = ", ".join(sorted(self.model_fields_set - _OF_PLUGINS))
            msg = f"a plug-in takes no {others}; what it takes stands in `options`"
            raise ValueError(msg)
        if self.options and not self.plugin:
            msg = "`options` are those of a `plugin`, and none is named"
            raise ValueError(msg)
        if self.kind == COMPATIBLE and self.url is None:
            msg = f"{COMPATIBLE} needs a `url`"
            raise ValueError(msg)
        return self

    @property
    def priced(self) -> bool:
        """Whether it has prices of its own."""
        return self.input_price is not None and self.output_price is not None

    @field_serializer("url")
    def _without_secrets(self, url: str | None) -> str | None:
        return None if url is None else masked(url, in_url(url))

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        shown = {"url": self._without_secrets(self.url)}
        return [(name, shown.get(name or "", value)) for name, value in super().__repr_args__()]
