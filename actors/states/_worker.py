"""The three-state machines of agents for Android devices and for shells.

Both have the same table; each has its own registry.
"""

from __future__ import annotations

from typing import ClassVar

from callboard.actors.states._app import AppAgentStateManager
from callboard.actors.states._common import CleanupState, FinishState, NoneState, WorkingState
from callboard.actors.states._machine import AgentState, AgentStateManager
from callboard.actors.states._move import By, Table
from callboard.messages import LinuxAgentStatus, MobileAgentStatus

CONTINUE, FAIL, FINISH = MobileAgentStatus
_TABLE: Table = {
    # FAIL by the user or a timeout: a person was asked for an approval, or whether to extend a budget.
    CONTINUE: {CONTINUE: By.MODEL | By.SYSTEM, FINISH: By.MODEL, FAIL: By.MODEL | By.SYSTEM | By.USER | By.TIMEOUT},
    FAIL: {FINISH: By.SYSTEM},
    FINISH: {},
}


class _Continue(WorkingState):
    __slots__ = ()
    on_exception = FAIL


class _Fail(CleanupState):
    __slots__ = ()

    def is_round_end(self) -> bool:
        """Return True."""
        return True


class _Finish(FinishState):
    __slots__ = ()

    def is_round_end(self) -> bool:
        """Return True."""
        return True


class MobileAgentStateManager(AgentStateManager):
    """The machine of an agent that works on one Android device."""

    initial: ClassVar[str] = CONTINUE
    transitions: ClassVar[Table] = _TABLE


class MobileAgentState(AgentState):
    """A state of a MobileAgent."""

    __slots__ = ()


@MobileAgentStateManager.register_none
class NoneMobileAgentState(NoneState, MobileAgentState):
    """Placeholder for a status that the MobileAgent does not have."""

    __slots__ = ()


@MobileAgentStateManager.register(MobileAgentStatus.CONTINUE)
class ContinueMobileAgentState(_Continue, MobileAgentState):
    """Work: observe the screen, ask the model, act, remember."""

    __slots__ = ()


@MobileAgentStateManager.register(MobileAgentStatus.FAIL)
class FailMobileAgentState(_Fail, MobileAgentState):
    """The work failed or an exception ended it: take a last screenshot."""

    __slots__ = ()


@MobileAgentStateManager.register(MobileAgentStatus.FINISH)
class FinishMobileAgentState(_Finish, MobileAgentState):
    """The work is over."""

    __slots__ = ()


class LinuxAgentStateManager(AgentStateManager):
    """The machine of an agent that works in one shell."""

    initial: ClassVar[str] = CONTINUE
    transitions: ClassVar[Table] = _TABLE


class LinuxAgentState(AgentState):
    """A state of a LinuxAgent."""

    __slots__ = ()


@LinuxAgentStateManager.register_none
class NoneLinuxAgentState(NoneState, LinuxAgentState):
    """Placeholder for a status that the LinuxAgent does not have."""

    __slots__ = ()


@LinuxAgentStateManager.register(LinuxAgentStatus.CONTINUE)
class ContinueLinuxAgentState(_Continue, LinuxAgentState):
    """Work: observe the shell, ask the model, act, remember."""

    __slots__ = ()


@LinuxAgentStateManager.register(LinuxAgentStatus.FAIL)
class FailLinuxAgentState(_Fail, LinuxAgentState):
    """The work failed or an exception ended it: take a last observation."""

    __slots__ = ()


@LinuxAgentStateManager.register(LinuxAgentStatus.FINISH)
class FinishLinuxAgentState(_Finish, LinuxAgentState):
    """The work is over."""

    __slots__ = ()


class OperatorAgentStateManager(AppAgentStateManager):
    """The machine of an agent that sees only pictures of its target.

    Its table and its states are the AppAgent's, bound to this machine.
    """
