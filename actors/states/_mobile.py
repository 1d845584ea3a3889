"""The MobileAgent's machine: three states."""

from __future__ import annotations

from typing import ClassVar

from callboard.actors.states._common import CleanupState, FinishState, NoneState, WorkingState
from callboard.actors.states._machine import AgentState, AgentStateManager, By, Table


class MobileAgentStateManager(AgentStateManager):
    """Works on one Android device."""

    initial = "CONTINUE"
    transitions: ClassVar[Table] = {
        # FAIL by the user or a timeout: an approval or a budget that a person was asked about.
        "CONTINUE": {
            "CONTINUE": By.MODEL | By.SYSTEM,
            "FINISH": By.MODEL,
            "FAIL": By.MODEL | By.SYSTEM | By.USER | By.TIMEOUT,
        },
        "FAIL": {"FINISH": By.SYSTEM},
        "FINISH": {},
    }


class MobileAgentState(AgentState):
    """A state of a MobileAgent."""

    __slots__ = ()


@MobileAgentStateManager.register_none
class NoneMobileAgentState(NoneState, MobileAgentState):
    """Stands for a status that the MobileAgent does not have."""

    __slots__ = ()


@MobileAgentStateManager.register
class ContinueMobileAgentState(WorkingState, MobileAgentState):
    """Work: look at the screen, ask the model, act, remember."""

    __slots__ = ()

    on_exception = "FAIL"

    @classmethod
    def name(cls) -> str:
        """CONTINUE."""
        return "CONTINUE"


@MobileAgentStateManager.register
class FailMobileAgentState(CleanupState, MobileAgentState):
    """The work can't be done, or an exception ended it: take a last picture."""

    __slots__ = ()

    def is_round_end(self) -> bool:
        """The round ends here."""
        return True

    @classmethod
    def name(cls) -> str:
        """FAIL."""
        return "FAIL"


@MobileAgentStateManager.register
class FinishMobileAgentState(FinishState, MobileAgentState):
    """The work is over."""

    __slots__ = ()

    def is_round_end(self) -> bool:
        """The round ends here."""
        return True

    @classmethod
    def name(cls) -> str:
        """FINISH."""
        return "FINISH"
