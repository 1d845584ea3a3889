"""The cost of a model call: its tokens, and the provider's prices."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from callboard.config import COMPATIBLE
from callboard.models.prompt import CHARACTERS

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from callboard.config import Provider

MILLION = 1_000_000


class Prices:
    """The prices of a provider.

    Those of the settings come before those of the price list.
    """

    def __init__(self, settings: Provider, kind: str, url: str) -> None:
        """Initialise the prices.

        Args:
            settings: The provider's settings; their prices come first.
            kind: The kind of provider, its name in the price list.
            url: The address that calls go to.
        """
        self._settings = settings
        self._kind = kind
        self._url = url

    def of(
        self, response: ModelResponse, model: str, prompt_tokens: int, content: object
    ) -> tuple[int, int, float | None]:
        """Return a call's tokens (prompt, answer) and its cost in dollars.

        Counts that a server omits are estimated; such a call has a cost only if the settings have prices.

        Args:
            response: The provider's response.
            model: The name of the model, unless the response has one.
            prompt_tokens: The estimated number of tokens of the prompt.
            content: The answer, for an estimate of its tokens.
        """
        usage = response.usage
        nothing = bool(usage.input_tokens) and content in ("", {})  # a refusal may have no tokens
        input_tokens = usage.input_tokens or prompt_tokens
        output_tokens = usage.output_tokens if usage.output_tokens or nothing else len(str(content)) // CHARACTERS + 1
        if not self._settings.priced and (input_tokens, output_tokens) != (usage.input_tokens, usage.output_tokens):
            return input_tokens, output_tokens, None
        return input_tokens, output_tokens, self.cost(response.model_name or model, input_tokens, output_tokens, usage)

    def cost(self, model: str, input_tokens: int, output_tokens: int, usage: Any = None) -> float | None:
        """Return the cost of a call in dollars, or None if unknown.

        Args:
            model: The provider's name of the model.
            input_tokens: The number of tokens of the prompt.
            output_tokens: The number of tokens of the answer.
            usage: The usage reported by the provider; cached parts of a prompt cost less.
        """
        settings = self._settings
        if settings.input_price is not None and settings.output_price is not None:
            return (input_tokens * settings.input_price + output_tokens * settings.output_price) / MILLION
        if not self.at_home:
            return None  # another server may have any price for a model of that name
        from genai_prices import Usage, calc_price

        try:
            usage = usage or Usage(input_tokens=input_tokens, output_tokens=output_tokens)
            price = calc_price(usage, model_ref=model, provider_id=self._kind)
        except LookupError:
            return None
        listed = price.model_price
        by_token = listed.input_mtok is not None or listed.output_mtok is not None
        return float(price.total_price) if by_token or model.endswith(":free") else None

    @functools.cached_property
    def at_home(self) -> bool:
        """True if calls go to the provider of the price list."""
        from genai_prices.data_snapshot import get_snapshot

        if self._kind == COMPATIBLE:
            return False
        try:
            listed = get_snapshot().find_provider(None, self._kind, None)
        except LookupError:
            return False
        return re.match(rf"(?:{listed.api_pattern})(?:$|[:/]|(?<=[./]))", self._url) is not None
