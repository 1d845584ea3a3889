"""Claims of machines to work that any machine may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.fleet._engine import Bucket, ConflictError
from callboard.fleet._repeated_calls import repeat
from callboard.fleet._work_messages import Claim, ClaimState

if TYPE_CHECKING:
    from callboard.fleet._engine import FleetEngine
    from callboard.messages import Cause


async def change_claim(engine: FleetEngine, key: str, claim: Claim, revision: int) -> int | None:
    """Change a claim that has the expected revision.

    A call whose answer was lost is repeated, and then finds its own change: `STARTED` is written by the machine that
    does the work only, `PLACED` and `WITHDRAWN` by the submitter only, and `REFUSED` ends the claim, on either side.

    Returns:
        Its new revision; None if the other machine was first.
    """
    body = claim.model_dump_json().encode()
    try:
        return await repeat(lambda: engine.update(Bucket.CLAIMS, key, body, revision))
    except ConflictError:
        entry = await repeat(lambda: engine.get(Bucket.CLAIMS, key))
        if entry is None or entry.value is None:
            return None
        return entry.revision if Claim.model_validate_json(entry.value).state is claim.state else None


async def start_claimed(engine: FleetEngine, key: str, target: str, revision: int) -> int | None:
    """Start claimed work, unless it was taken back.

    It has to be called before anything of the work is done: from then on, no other machine does it.

    Returns:
        The claim's new revision; None if the work was taken back.
    """
    return await change_claim(engine, key, Claim(state=ClaimState.STARTED, target=target), revision)


async def refuse_claimed(engine: FleetEngine, key: str, target: str, revision: int, causes: tuple[Cause, ...]) -> None:
    """Refuse work that was started: another machine does it then.

    Nothing of it may have been done.
    """
    await change_claim(engine, key, Claim(state=ClaimState.REFUSED, target=target, causes=causes), revision)
