"""Connections to providers.

A provider's models share its client, rate limit and prices.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import functools
import importlib.metadata
import inspect
import os
import re
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from callboard.config import COMPATIBLE, MASK, Provider, Redactor, in_url, masked
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from callboard.messages import Seconds


MINUTE = 60.0


# pydantic-ai's ConcurrencyLimiter and wait_retry_after do not fit. The first limits concurrent calls, as a semaphore
# does, but not calls per minute. The second waits within one call's transport, where neither budgets nor events see the
# retry, and where other agents keep calling the overloaded provider.
class RateLimit:
    """A FIFO rate limiter for one provider's calls.

    Used only on the event loop.
    """

    def __init__(
        self,
        *,
        per_minute: int | None = None,
        concurrent: int | None = None,
        now: Callable[[], Seconds] = time.monotonic,
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Initialise the limiter.

        Args:
            per_minute: Maximum number of calls that begin in any 60 seconds.
            concurrent: Maximum number of concurrent calls.
            now: A monotonic clock.
            sleep: Sleeps by that clock.
        """
        self._per_minute = per_minute
        self._slots = asyncio.Semaphore(concurrent) if concurrent is not None else None
        self._began: deque[Seconds] = deque(maxlen=per_minute or 0)
        self._held_until = 0.0
        self._line = asyncio.Lock()
        self._now = now
        self._sleep = sleep

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it during the call."""
        async with self._slots or contextlib.nullcontext():
            await self.begin()
            yield

    async def begin(self) -> None:
        """Wait until another attempt of a call may begin, and count it."""
        async with self._line:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._began.append(self._now())

    def hold(self, seconds: Seconds) -> None:
        """Delay all calls, because the provider reported too many requests."""
        self._held_until = max(self._held_until, self._now() + seconds)

    def _wait(self) -> Seconds:
        now = self._now()
        full = self._per_minute is not None and len(self._began) == self._per_minute
        next_place = self._began[0] + MINUTE - now if full else 0.0
        return max(next_place, self._held_until - now)


MILLION = 1_000_000
_KEY = re.compile(r"(?:^|_)(?:API)?(?:KEY|TOKEN|SECRET)(?:_|$)")
"""Pattern of environment variables with keys; a list would not be complete for all kinds."""
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN))`")
"""The variable that a provider's package reports as missing."""
_SHORTEST_FOUND = 8
"""Minimum length of a value to redact; shorter values could occur in ordinary words."""
_PACKAGES = {
    "openai": "models",
    "anthropic": "anthropic",
    "google": "google",
    "google-cloud": "google",
    "bedrock": "bedrock",
}
"""Kinds whose package an extra of callboard installs; others have one of pydantic-ai, or need only `models`."""


_KINDS = (*_PACKAGES, "azure", "cohere", "deepseek", "groq", "huggingface", "mistral", "ollama", "openrouter", "xai")
"""Kinds to suggest for a mistyped one."""


class Connection:
    """A provider's client, rate limit and prices; used on one event loop."""

    def __init__(self, name: str, settings: Provider) -> None:
        """Create the client without sending a request.

        Raises:
            SettingsError: If the kind is unknown, its package is not installed, or a setting is missing.
        """
        self.settings = settings
        self.rate = RateLimit(per_minute=settings.requests_per_minute, concurrent=settings.concurrent)
        self._where = f"providers.{name}"
        self.kind, self.provider = self._made(name)
        self._redactor = Redactor(dict.fromkeys(self._all_secrets(), MASK))
        self._entered = False

    async def open(self) -> None:
        """Enter the client before the first call; it connects on demand."""
        if not self._entered:
            self._entered = True
            await self.provider.__aenter__()

    async def close(self) -> None:
        """Close the client's connections. Idempotent."""
        if self._entered:
            self._entered = False
            await self.provider.__aexit__(None, None, None)

    def price(self, model: str, given: int, answered: int, usage: Any = None) -> float | None:
        """Return the cost of a call; None if the price is unknown.

        Args:
            model: The provider's name of the model.
            given: The number of tokens of the prompt.
            answered: The number of tokens of the answer.
            usage: The usage reported by the provider; cached parts of a prompt cost less.
        """
        settings = self.settings
        if settings.input_price is not None and settings.output_price is not None:
            return (given * settings.input_price + answered * settings.output_price) / MILLION
        if not self.at_home:
            return None  # another server may have any price for a model of that name
        from genai_prices import Usage, calc_price

        try:
            usage = usage or Usage(input_tokens=given, output_tokens=answered)
            found = calc_price(usage, model_ref=model, provider_id=self.kind)
        except LookupError:
            return None
        listed = found.model_price
        by_token = listed.input_mtok is not None or listed.output_mtok is not None
        return float(found.total_price) if by_token or model.endswith(":free") else None

    @functools.cached_property
    def at_home(self) -> bool:
        """True if calls go to the provider of the price list."""
        from genai_prices.data_snapshot import get_snapshot

        if self.kind == COMPATIBLE:
            return False
        try:
            listed = get_snapshot().find_provider(None, self.kind, None)
        except LookupError:
            return False
        return re.match(rf"(?:{listed.api_pattern})(?:$|[:/]|(?<=[./]))", str(self.provider.base_url)) is not None

    def hidden(self, text: str) -> str:
        """Redact keys, values of headers, and secrets in addresses in a text."""
        return self._redactor.text(masked(text, in_url(text)))

    def _all_secrets(self) -> set[str]:
        given = [] if self.settings.api_key is None else [self.settings.api_key.get_secret_value()]
        for header in self.settings.headers.values():
            value = header.get_secret_value()
            given += [value, value.partition(" ")[2]]  # the part after "Bearer" may be quoted alone
        given.append(str(getattr(self.provider.client, "api_key", "") or ""))
        return {secret.strip() for secret in given} | {
            value for name, value in os.environ.items() if _KEY.search(name) and len(value) >= _SHORTEST_FOUND
        }

    def _made(self, name: str) -> tuple[str, Any]:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.providers import infer_provider_class

        kind = self.settings.kind or name
        given: dict[str, Any] = {}
        try:
            if kind != COMPATIBLE:
                maker: Any = infer_provider_class(kind)
        except ValueError as error:
            if self.settings.kind or self.settings.url is None:
                raise mistyped(self._where, kind) from error
            kind = COMPATIBLE
        except ImportError as error:
            raise missing(self._where, kind) from error
        if kind == COMPATIBLE:
            from pydantic_ai.profiles.openai import OpenAIModelProfile
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            maker = OpenAICompatibleProvider
            given["name"] = name
            given["profile"] = OpenAIModelProfile(
                openai_chat_supports_max_completion_tokens=False
            )  # all servers know max_tokens
        if self.settings.url is not None:
            given["base_url"] = self.settings.url
        if self.settings.api_key is not None:
            given["api_key"] = self.settings.api_key.get_secret_value()
        unknown = given.keys() - inspect.signature(maker).parameters.keys()
        if unknown:
            names = {"base_url": "url"}
            msg = f"{self._where}: {kind} takes no {', '.join(sorted(names.get(key, key) for key in unknown))}"
            raise SettingsError(msg)
        try:
            return kind, maker(**given)
        except UserError as error:
            wanted = _VARIABLE.search(str(error))
            said = f"set {wanted[1]}" if wanted else first_sentence(str(error))
            msg = f"{self._where}: {said}, or {self._where}.api_key; a server of one's own needs {self._where}.url"
            raise SettingsError(msg) from error


def mistyped(where: str, kind: str) -> SettingsError:
    """Build the error for an unknown kind of provider."""
    near = difflib.get_close_matches(kind, _KINDS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ", and there is no `url`"
    return SettingsError(f"{where}: {kind!r} is no known kind of provider{hint}")


def missing(where: str, kind: str) -> SettingsError:
    """Build the error for a missing package or a mistyped kind."""
    near = difflib.get_close_matches(kind, _KINDS, n=1)
    if near and kind not in _KINDS and not any(kind.startswith(f"{each}-") for each in _KINDS):
        return mistyped(where, kind)
    package = f"callboard[{_PACKAGES.get(kind, 'models')}]"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        theirs = importlib.metadata.metadata("pydantic-ai-slim").get_all("Provides-Extra") or []
        if kind in theirs and kind not in _PACKAGES:
            package = f"pydantic-ai-slim[{kind}]"
    command = f"pip install '{package}'"
    return SettingsError(f"{where}: a package is missing: {command}", (command,))


def first_sentence(text: str) -> str:
    """Return the first sentence of an error.

    The rest is advice for another program.
    """
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
