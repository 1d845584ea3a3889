"""Intents: the actions that need one, and its contents."""

from __future__ import annotations

from callboard import EventName
from callboard.messages import CommandResult, Intent

WRITE = {"function": "write", "arguments": {"control_id": "field-1", "text": "a"}}
APPEND = {"function": "append", "arguments": {"control_id": "field-1", "text": "more"}}


async def kept(stage, *actions):
    """Run actions; return the intents and results that the journal got, and the surface's fingerprint before."""
    here, found = stage([{"Status": "CONTINUE", "Actions": list(actions)}]), []
    before = here.surface.observe(here.target).fingerprint
    await here.pipeline.process(here.run())
    here.services.journal.read("t", found.extend)
    return [row.message for row in found if isinstance(row.message, Intent | CommandResult)], before


async def test_only_what_must_not_run_twice_is_announced(stage):
    messages, _ = await kept(stage, WRITE, APPEND)
    assert [(type(message), message.tool) for message in messages] == [
        (CommandResult, "write"),
        (Intent, "append"),
        (CommandResult, "append"),
    ]


async def test_an_intent_names_the_surface_as_it_was_before_its_own_action(stage):
    messages, before = await kept(stage, APPEND, APPEND)
    first, second = [message for message in messages if isinstance(message, Intent)]
    assert first.fingerprint == before
    assert second.fingerprint not in {"", before}
    assert (first.arguments["text"], first.control.id) == ("more", "field-1")


async def test_under_a_void_lease_no_intent_is_kept(stage):
    here = stage([{"Status": "CONTINUE", "Actions": [APPEND]}])
    here.lease.void()
    done = await here.pipeline.process(here.run())
    assert "before this step acted" in done.causes[-1].reason
    assert (here.surface.effects, here.events(EventName.COMMAND_ENDED)) == ([], [])
