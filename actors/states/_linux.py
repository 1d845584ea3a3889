"""The LinuxAgent's machine: three states."""

from __future__ import annotations

from typing import ClassVar

from callboard.actors.states._common import CleanupState, FinishState, NoneState, WorkingState
from callboard.actors.states._machine import AgentState, AgentStateManager, By, Table


class LinuxAgentStateManager(AgentStateManager):
    """Works in one shell."""

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


class LinuxAgentState(AgentState):
    """A state of a LinuxAgent."""

    __slots__ = ()


@LinuxAgentStateManager.register_none
class NoneLinuxAgentState(NoneState, LinuxAgentState):
    """Stands for a status that the LinuxAgent does not have."""

    __slots__ = ()


@LinuxAgentStateManager.register
class ContinueLinuxAgentState(WorkingState, LinuxAgentState):
    """Work: look at the shell, ask the model, act, remember."""

    __slots__ = ()

    on_exception = "FAIL"

    @classmethod
    def name(cls) -> str:
        """CONTINUE."""
        return "CONTINUE"


@LinuxAgentStateManager.register
class FailLinuxAgentState(CleanupState, LinuxAgentState):
    """The work can't be done, or an exception ended it: take a last look."""

    __slots__ = ()

    def is_round_end(self) -> bool:
        """The round ends here."""
        return True

    @classmethod
    def name(cls) -> str:
        """FAIL."""
        return "FAIL"


@LinuxAgentStateManager.register
class FinishLinuxAgentState(FinishState, LinuxAgentState):
    """The work is over."""

    __slots__ = ()

    def is_round_end(self) -> bool:
        """The round ends here."""
        return True

    @classmethod
    def name(cls) -> str:
        """FINISH."""
        return "FINISH"
