"""One provider of live models: its client, its rate limit and its prices, shared by all of its models."""

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


# pydantic-ai's ConcurrencyLimiter and wait_retry_after were looked at: the first counts the calls under way, which a
# semaphore does, and none by the minute; the second waits within one call's transport, where no budget and no event
# sees the repetition, and where other agents go on asking the provider that wants to be left alone.
class RateLimit:
    """Lets calls of one provider through, first come, first served. Used on the event loop alone."""

    def __init__(
        self,
        *,
        per_minute: int | None = None,
        concurrent: int | None = None,
        now: Callable[[], Seconds] = time.monotonic,
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make it.

        Args:
            per_minute: Calls that may begin in any 60 seconds.
            concurrent: Calls that may be under way.
            now: A clock that never goes back.
            sleep: Waits on it.
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
        """Wait for a turn, and keep it for the call."""
        async with self._slots or contextlib.nullcontext():
            await self.begin()
            yield

    async def begin(self) -> None:
        """Wait until one more call may begin, and count it: a call's first try, or a repetition."""
        async with self._line:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._began.append(self._now())

    def hold(self, seconds: Seconds) -> None:
        """Let nobody begin for a while: the provider said that it is asked too much."""
        self._held_until = max(self._held_until, self._now() + seconds)

    def _wait(self) -> Seconds:
        now = self._now()
        full = self._per_minute is not None and len(self._began) == self._per_minute
        next_place = self._began[0] + MINUTE - now if full else 0.0
        return max(next_place, self._held_until - now)


MILLION = 1_000_000
_KEY = re.compile(r"(?:^|_)(?:API)?(?:KEY|TOKEN|SECRET)(?:_|$)")
"""Variables of the environment that hold keys. Kinds read some that no list of ours could have."""
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN))`")
"""The variable that a provider's package wants to be set."""
_SHORTEST_FOUND = 8
"""Characters of a variable that only has a name like a key's; shorter values are in every word."""
_PACKAGES = {
    "openai": "models",
    "anthropic": "anthropic",
    "google": "google",
    "google-cloud": "google",
    "bedrock": "bedrock",
}
"""Kinds that an extra of ours brings the package of. Of others pydantic-ai has one, or they need no more than that."""


_KINDS = (*_PACKAGES, "azure", "cohere", "deepseek", "groq", "huggingface", "mistral", "ollama", "openrouter", "xai")
"""Kinds that a mistyped one may have been meant for."""


class Connection:
    """One provider: its client, its rate limit and its prices. Used on one event loop."""

    def __init__(self, name: str, settings: Provider) -> None:
        """Make the client; nothing is sent.

        Raises:
            SettingsError: If its kind is not known, its package is not installed, or something is missing.
        """
        self.settings = settings
        self.rate = RateLimit(per_minute=settings.requests_per_minute, concurrent=settings.concurrent)
        self._where = f"providers.{name}"
        self.kind, self.provider = self._made(name)
        self._redactor = Redactor(dict.fromkeys(self._all_secrets(), MASK))
        self._entered = False

    async def open(self) -> None:
        """Take hold of the client, before the first call; connections are opened when they are needed."""
        if not self._entered:
            self._entered = True
            await self.provider.__aenter__()

    async def close(self) -> None:
        """Close the client's connections. Idempotent."""
        if self._entered:
            self._entered = False
            await self.provider.__aexit__(None, None, None)

    def price(self, model: str, given: int, answered: int, usage: Any = None) -> float | None:
        """Give what a call costs, by the settings or by the list; None if that is not known.

        Args:
            model: What the provider calls the model.
            given: The prompt's tokens.
            answered: The answer's.
            usage: What the provider says of both; parts of a prompt that it had cached cost less.
        """
        settings = self.settings
        if settings.input_price is not None and settings.output_price is not None:
            return (given * settings.input_price + answered * settings.output_price) / MILLION
        if not self.at_home:
            return None  # who is there may take any price, whatever the model is called
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
        """Whether calls really go to whose prices are listed; a variable of the environment may lead elsewhere."""
        from genai_prices.data_snapshot import get_snapshot

        if self.kind == COMPATIBLE:
            return False
        try:
            listed = get_snapshot().find_provider(None, self.kind, None)
        except LookupError:
            return False
        return re.match(rf"(?:{listed.api_pattern})(?:$|[:/]|(?<=[./]))", str(self.provider.base_url)) is not None

    def hidden(self, text: str) -> str:
        """Take keys and the values of headers out of a text, and what is secret in an address."""
        return self._redactor.text(masked(text, in_url(text)))

    def _all_secrets(self) -> set[str]:
        given = [] if self.settings.api_key is None else [self.settings.api_key.get_secret_value()]
        for header in self.settings.headers.values():
            value = header.get_secret_value()
            given += [value, value.partition(" ")[2]]  # what stands behind "Bearer" may be quoted alone
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
            )  # all know max_tokens
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
    """Make the error for a kind of provider that there is not."""
    near = difflib.get_close_matches(kind, _KINDS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ", and there is no `url`"
    return SettingsError(f"{where}: {kind!r} is no known kind of provider{hint}")


def missing(where: str, kind: str) -> SettingsError:
    """Make the error for a package that is not installed; a mistyped kind needs none."""
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
    """Give what an error says first; what follows is advice for another program."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
