"""The settings of supervision: the refused values, and how they are named."""

from __future__ import annotations

import pytest

from callboard.config import Settings, SupervisionSettings
from callboard.messages import SettingsError


def test_supervision_is_set_value_by_value(write):
    loaded = Settings.load(write("supervision: {intensity: 0, hung_seconds: 2}")).supervision
    assert loaded == SupervisionSettings(intensity=0, hung_seconds=2)
    assert (loaded.period, loaded.backoff, loaded.max_backoff) == (60, 0.1, 10)


def test_backoff_may_be_zero(write):
    loaded = Settings.load(write("supervision: {backoff: 0, max_backoff: 0}")).supervision
    assert (loaded.backoff, loaded.max_backoff) == (0, 0)


def test_a_longest_delay_that_is_shorter_than_the_first_one_is_refused(write):
    with pytest.raises(SettingsError, match=r"supervision: .*`max_backoff` is shorter than `backoff`"):
        Settings.load(write("supervision: {backoff: 20}"))


@pytest.mark.parametrize("name", ["intensity", "period", "backoff", "max_backoff", "hung_seconds"])
@pytest.mark.parametrize("value", ["-1", ".nan", ".inf", "soon"])
def test_invalid_supervision_count_or_duration_is_refused(write, name, value):
    with pytest.raises(SettingsError, match=rf"supervision\.{name}: "):
        Settings.load(write(f"supervision: {{{name}: {value}}}"))


@pytest.mark.parametrize("name", ["period", "hung_seconds"])
def test_a_span_that_has_to_be_one_is_not_zero(write, name):
    with pytest.raises(SettingsError, match=rf"supervision\.{name}: "):
        Settings.load(write(f"supervision: {{{name}: 0}}"))
