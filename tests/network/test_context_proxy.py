"""Contexts that one proxy admits by name."""

from __future__ import annotations

import pytest

from callboard.network import ContextProxy, NetworkRules

pytestmark = pytest.mark.asyncio


async def test_admitted_context_keeps_its_credentials_and_gets_new_rules():
    proxy = ContextProxy(lambda name, refusal: None)
    await proxy.open()
    first = await proxy.admit("a", NetworkRules(("a.example",)))
    again = await proxy.admit("a", NetworkRules(("b.example",)))
    other = await proxy.admit("b", NetworkRules())
    assert (again.server, again.password, again.rules.allow) == (proxy.server, first.password, ("b.example",))
    assert other.password != first.password
    await proxy.close()


async def test_withdrawn_context_gets_new_credentials():
    proxy = ContextProxy(lambda name, refusal: None)
    await proxy.open()
    first = await proxy.admit("a", NetworkRules())
    await proxy.withdraw("a")
    await proxy.withdraw("unknown")
    assert (await proxy.admit("a", NetworkRules())).password != first.password
    await proxy.close()
