"""Providers of models: read from files and the environment, and their keys never shown."""

from __future__ import annotations

import json

import pytest

from callboard.config import Provider, Settings
from callboard.config._keys import secrets_of
from callboard.messages import SettingsError

KEY = "sk-very-secret"
URL = f"https://user:{KEY}@models.example/v1?key={KEY}"


def test_a_provider_is_read_from_a_file(tmp_path):
    file = tmp_path / "callboard.yaml"
    file.write_text(
        "models: {app: local:qwen}\n"
        "providers:\n"
        "  local: {url: 'http://127.0.0.1:8080/v1', concurrent: 1, fallbacks: ['openai:gpt-5']}\n"
    )
    provider = Settings.load(file).providers["local"]
    assert (provider.url, provider.concurrent, provider.fallbacks) == ("http://127.0.0.1:8080/v1", 1, ("openai:gpt-5",))


def test_a_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("CALLBOARD_PROVIDERS__LOCAL__API_KEY", KEY)
    assert Settings.load().providers["local"].api_key.get_secret_value() == KEY


def test_provider_secrets_are_never_shown():
    settings = Settings(providers={"far": {"url": URL, "api_key": KEY, "headers": {"X-Key": KEY}}})
    dumped = json.dumps(settings.model_dump(mode="json"))
    for shown in (repr(settings), str(settings), dumped):
        assert KEY not in shown
        assert "models.example" in shown


def test_provider_secrets_are_redacted_from_the_log():
    settings = Settings(providers={"far": {"url": URL, "headers": {"Authorization": "Bearer token-1"}}})
    assert {KEY, "token-1"} <= set(secrets_of(settings))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"input_price": 1.0}, "needs both prices or neither"),
        ({"kind": "openai-compatible"}, "openai-compatible needs a `url`"),
        ({"retries": -1}, "retries: must be at least 0"),
        ({"requests_per_minute": 0}, "requests_per_minute: must be at least 1"),
        ({"temperature": 3}, "temperature: must be at most 2"),
        ({"output": "yaml"}, "output: must be 'auto', 'native'"),
        ({"apikey": KEY}, "did you mean 'api_key'"),
        ({"url": "nonsense"}, "url: is no address: write http://HOST:PORT/PATH"),
        ({"url": "localhost:8080/v1"}, "url: is no address"),
        ({"url": f"ftp://{KEY}@host"}, "url: is no address"),
        ({"url": "http://[x"}, "url: is no address"),
        ({"url": ""}, "url: is no address"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_provider_that_can_not_be_used_is_refused(given, why):
    with pytest.raises(SettingsError) as refused:
        Settings.load(providers={"far": given})
    assert why in str(refused.value)
    assert KEY not in str(refused.value)


def test_provider_retries_and_is_unbounded_by_default():
    provider = Provider()
    assert (provider.retries, provider.concurrent, provider.requests_per_minute) == (2, None, None)
