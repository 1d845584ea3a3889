"""The token of the metrics: where it comes from, and values that are refused."""

from __future__ import annotations

import json

import pytest

from callboard.config import Settings, keys_of
from callboard.config._keys import secrets_of
from callboard.messages import SettingsError

TOKEN = "a-token-of-a-monitor"


def test_token_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("CALLBOARD_OBSERVE__METRICS", "true")
    monkeypatch.setenv("CALLBOARD_OBSERVE__METRICS_TOKEN", TOKEN)
    assert Settings.load().observe.metrics_token.get_secret_value() == TOKEN


def test_token_is_redacted_and_never_shown():
    settings = Settings(observe={"metrics": True, "metrics_token": TOKEN})
    assert TOKEN in set(secrets_of(settings)) & set(keys_of(settings))
    for shown in (repr(settings), str(settings), json.dumps(settings.model_dump(mode="json"))):
        assert TOKEN not in shown


@pytest.mark.parametrize(
    ("observe", "reason"),
    [
        ({"metrics": True, "metrics_token": ""}, "needs 16 to 1,000 characters"),
        ({"metrics": True, "metrics_token": "short"}, "needs 16 to 1,000 characters"),
        ({"metrics": True, "metrics_token": f"{TOKEN}\n"}, "needs 16 to 1,000 characters"),
        ({"metrics": True, "metrics_token": f"{TOKEN}é"}, "needs 16 to 1,000 characters"),
        ({"metrics_token": TOKEN}, "set `metrics: true`, too"),
    ],
)
def test_unusable_token_is_refused_without_showing_it(observe, reason):
    with pytest.raises(SettingsError) as refused:
        Settings.load(observe=observe)
    assert reason in str(refused.value)
    assert TOKEN not in str(refused.value)
