"""Callers, their tokens, and the number of their open requests."""

from __future__ import annotations

import contextlib

import pytest

from callboard.config import McpService, Settings
from callboard.errors import SettingsError
from callboard.mcp_server import hash_of, new_token
from callboard.mcp_server._callers import Callers, TooManyRequestsError


def callers(**sections):
    """Make callers from sections of the settings."""
    return Callers(McpService(callers=sections))


def test_a_token_belongs_to_its_caller():
    tokens = {name: new_token() for name in ("ann", "bob")}
    known = callers(**{name: {"token": hash_of(token)} for name, token in tokens.items()}, eve={})
    assert {name: known.with_token(token).name for name, token in tokens.items()} == {"ann": "ann", "bob": "bob"}
    assert [caller.name for caller in known.with_tokens()] == ["ann", "bob"]


def test_other_tokens_belong_to_no_caller():
    token = new_token()
    known = callers(ann={"token": hash_of(token)}, weak={"token": hash_of("password")}, none={})
    guesses = ["", "password", token[:-1], f"{token}x", token.upper(), hash_of(token), new_token(), f" {token}", "é"]
    assert [known.with_token(guess) for guess in guesses] == [None] * len(guesses)


def test_a_token_of_two_callers_belongs_to_none():
    token = new_token()
    assert callers(ann={"token": hash_of(token)}, bob={"token": hash_of(token)}).with_token(token) is None


def test_the_local_caller_needs_no_section():
    assert callers().named("local").rights.may_change == ()
    assert callers(local={"may_change": ["*"]}).named("local").rights.may_change == ("*",)
    with pytest.raises(SettingsError, match="no caller 'an'; did you mean 'ann'"):
        callers(ann={}).named("an")


def test_a_further_open_request_is_refused():
    known = callers(ann={"requests": 2}, bob={})
    with contextlib.ExitStack() as stack:
        for name in ("ann", "ann", "bob"):
            stack.enter_context(known.request_of(known.named(name)))
        with pytest.raises(TooManyRequestsError, match="2 requests of ann are open"):
            stack.enter_context(known.request_of(known.named("ann")))
    with known.request_of(known.named("ann")):
        pass


@pytest.mark.parametrize("token", ["password", "sha256:abc", "callboard_" + "a" * 43])
def test_settings_hold_no_token_but_its_hash(token):
    with pytest.raises(SettingsError, match=r"mcp_server.callers.ann.token"):
        Settings.load(mcp_server={"callers": {"ann": {"token": token}}})
