"""Intents: the write-ahead records of actions that must not run twice.

An intent is durable before its action begins. If a crash leaves it without a result, the action is in doubt: then the
next process probes the surface, and compares it with the fingerprints in the intent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._collect import in_time
from callboard.messages import Effect, Intent, LeaseVoidError

if TYPE_CHECKING:
    from callboard.actors.commands import BoundTool
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Command


def needs_intent(command: Command, tool: BoundTool) -> bool:
    """Return whether an action must not run twice.

    The effect of this call comes first, if the surface reports one; otherwise that of the tool.
    """
    return (command.effect or tool.info.effect) is Effect.ONCE


async def intent_of(context: Context, run: Run, action: Action, tool: BoundTool, fingerprint: str) -> Intent:
    """Build an action's intent.

    Args:
        context: The context of the step.
        run: The run that the action belongs to.
        action: The action.
        tool: Its tool; the surface predicts the fingerprint after the action where it can.
        fingerprint: The surface's fingerprint before the action.

    Raises:
        ToolTimeoutError: If the tool's surface takes too long to predict the fingerprint.
    """
    return Intent(
        call_id=action.call_id,
        tool=action.tool,
        arguments=action.arguments,
        control=action.control,
        target=run.assign.target,
        fingerprint=fingerprint,
        expected=await in_time(context, tool.expected(action.arguments), f"asking what {action.tool} will do"),
    )


async def write_intent(context: Context, run: Run, intent: Intent) -> None:
    """Write an intent to the journal and wait until it is durable.

    Raises:
        LeaseVoidError: If the lease is void: the announced action must not run.
        JournalError: If the intent can't be written: the announced action must not run.
    """
    if not context.lease.valid:
        msg = f"{run.assign.run_id} was ended, or given to another agent, before this step acted"
        raise LeaseVoidError(msg)
    await context.services.journal.keep(context.row(run, intent))
