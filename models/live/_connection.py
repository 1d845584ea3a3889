"""Connections to providers.

A provider's models share its client, rate limit and prices.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import os
import re
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from callboard.config import COMPATIBLE, MASK, Provider, Redactor, in_url, install_command, masked
from callboard.messages import SettingsError, did_you_mean
from callboard.models.live._cost import Prices
from callboard.models.live._rate_limit import RateLimit
from callboard.models.live._reply import mend_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KEY = re.compile(r"(?:^|_)(?:API)?(?:KEY|TOKEN|SECRET)(?:_|$)")
"""Pattern of environment variables with keys; a list would not be complete for all kinds."""
_VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN))`")
"""The variable for a key that a provider's package reports as missing."""
_ADDRESS = re.compile(r"`([A-Z][A-Z0-9_]*_BASE_URL)`")
"""The variable for a missing address."""
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
        self.kind, self.provider = self._build_provider(name)
        self.prices = Prices(settings, self.kind, str(self.provider.base_url))
        self._redactor = Redactor(dict.fromkeys(self._all_secrets(), MASK))
        self._entered = False

    async def open(self) -> None:
        """Enter the client before the first call; it connects on demand."""
        if not self._entered:
            self._entered = True
            await self.provider.__aenter__()
            http = getattr(self.provider.client, "_client", None)  # it is another one after each `close`
            hooks = getattr(http, "event_hooks", {}).get("response", [])
            if mend_reply not in hooks:
                hooks.append(mend_reply)

    async def close(self) -> None:
        """Close the client's connections. Idempotent."""
        if self._entered:
            self._entered = False
            await self.provider.__aexit__(None, None, None)

    def hidden(self, text: str) -> str:
        """Redact keys, values of headers, and secrets in addresses in a text."""
        return self._redactor.text(masked(text, in_url(text)))

    def proxy(self) -> str:
        """Describe the proxy that the environment names; empty without one."""
        url = urlsplit(str(self.provider.base_url))
        proxies = urllib.request.getproxies_environment()
        scheme = url.scheme if url.scheme in proxies else "all"
        if scheme not in proxies or urllib.request.proxy_bypass(url.netloc):
            return ""
        variable = f"{scheme.upper()}_PROXY"
        return (
            f"; it was called through the proxy {proxies[scheme]} of {variable}: NO_PROXY={url.hostname} leaves it out"
        )

    def _all_secrets(self) -> set[str]:
        secrets = [] if self.settings.api_key is None else [self.settings.api_key.get_secret_value()]
        for header in self.settings.headers.values():
            value = header.get_secret_value()
            secrets += [value, value.partition(" ")[2]]  # the part after "Bearer" may be quoted alone
        secrets.append(str(getattr(self.provider.client, "api_key", "") or ""))
        return {secret.strip() for secret in secrets} | {
            value for name, value in os.environ.items() if _KEY.search(name) and len(value) >= _SHORTEST_FOUND
        }

    def _build_provider(self, name: str) -> tuple[str, Any]:
        from pydantic_ai.providers import infer_provider_class

        kind = self.settings.kind or name.replace("_", "-")
        options: dict[str, Any] = {}
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
            options["name"] = name
            options["profile"] = OpenAIModelProfile(
                openai_chat_supports_max_completion_tokens=False
            )  # all servers know max_tokens
        if self.settings.url is not None:
            options["base_url"] = self.settings.url
        if self.settings.api_key is not None:
            options["api_key"] = self.settings.api_key.get_secret_value()
        unknown = options.keys() - inspect.signature(maker).parameters.keys()
        if unknown:
            names = {"base_url": "url"}
            msg = f"{self._where}: {kind} takes no {', '.join(sorted(names.get(key, key) for key in unknown))}"
            raise SettingsError(msg)
        return kind, self._client(maker, options)

    def _client(self, maker: Callable[..., Any], options: Mapping[str, Any]) -> Any:
        from pydantic_ai.exceptions import UserError

        try:
            return maker(**options)
        except Exception as error:  # the client's package has errors of its own, as for an empty key
            if isinstance(error, UserError) or _VARIABLE.search(str(error)):
                raise _unset(self._where, str(error)) from error
            msg = f"{self._where}: its client can't be created: {first_sentence(str(error))}"
            raise SettingsError(msg) from error


def _unset(where: str, error: str) -> SettingsError:
    """Build the error for a missing address or key."""
    if address := _ADDRESS.search(error):
        return SettingsError(f"{where}: set {address[1]}, or {where}.url, such as http://127.0.0.1:11434/v1")
    key = _VARIABLE.search(error)
    what = f"set {key[1]}" if key else first_sentence(error)
    return SettingsError(f"{where}: {what}, or {where}.api_key; a server of one's own needs {where}.url")


def mistyped(where: str, kind: str) -> SettingsError:
    """Build the error for an unknown kind of provider."""
    hint = did_you_mean(kind, _KINDS, cutoff=0.6) or ", and there is no `url`"
    return SettingsError(f"{where}: {kind!r} is no known kind of provider{hint}")


def missing(where: str, kind: str) -> SettingsError:
    """Build the error for a missing package or a mistyped kind."""
    kind = kind.replace("_", "-")
    near = did_you_mean(kind, _KINDS, cutoff=0.6)
    if near and kind not in _KINDS and not any(kind.startswith(f"{known_kind}-") for known_kind in _KINDS):
        return mistyped(where, kind)
    command = install_command(_PACKAGES.get(kind, "models"))
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        theirs = importlib.metadata.metadata("pydantic-ai-slim").get_all("Provides-Extra") or []
        if kind in theirs and kind not in _PACKAGES:
            command = f"pip install 'pydantic-ai-slim[{kind}]'"
    return SettingsError(f"{where}: a package is missing: {command}", (command,))


def first_sentence(text: str) -> str:
    """Return the first sentence of an error.

    The rest is advice for another program.
    """
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
