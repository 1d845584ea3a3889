"""Pictures that tools returned, as models that see are shown them."""

from __future__ import annotations

import dataclasses

from callboard.messages import CommandResult, ResultStatus
from callboard.models.prompt._prompt import MOST_ANSWERED, prompt_of
from support import PATIENCE, lone

PNG = b"\x89PNG"


def test_the_pictures_of_the_latest_step_alone_are_shown_within_bounds(start):
    shown = []

    def answer(request):
        result = CommandResult(
            call_id="1", tool="t", status=ResultStatus.SUCCESS, pictures=(PNG,) * (MOST_ANSWERED + 1)
        )
        memory = tuple(record.model_copy(update={"results": (result,)}) for record in request.memory)
        asked = dataclasses.replace(request, memory=memory)
        shown.append([part for part in prompt_of(asked).user if isinstance(part, bytes)])
        assert not any(isinstance(part, bytes) for part in prompt_of(asked, pictures=False).user)
        step = {"Status": "CONTINUE", "Function": "read", "Args": {"control_id": "field-1"}}
        return step if request.call < 3 else {"Status": "FAIL"}

    start(app=answer).submit(lone()).result(PATIENCE)
    assert shown[0] == []
    assert shown[-1] == [PNG] * MOST_ANSWERED
