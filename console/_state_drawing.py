"""A drawing of an agent's state machine, with the present state lit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from callboard.actors.states import (
    AgentStateManager,
    AppAgentStateManager,
    HostAgentStateManager,
    LinuxAgentStateManager,
    MobileAgentStateManager,
    OperatorAgentStateManager,
    RemoteAgentStateManager,
)
from callboard.messages import REMOTE, AgentKind, agent_kind

_MACHINES: dict[str, type[AgentStateManager]] = {
    AgentKind.HOST: HostAgentStateManager,
    AgentKind.APP: AppAgentStateManager,
    AgentKind.LINUX: LinuxAgentStateManager,
    AgentKind.MOBILE: MobileAgentStateManager,
    AgentKind.OPERATOR: OperatorAgentStateManager,
    REMOTE: RemoteAgentStateManager,
}

WIDTH, HEIGHT = 460, 300
_BOX_WIDTH, _BOX_HEIGHT = 104, 30
_BEND = 0.12
"""The bend of an arrow, in parts of its length, so that those of both directions are apart."""


@dataclass(frozen=True)
class StateBox:
    """A state in the drawing, by its middle."""

    name: str
    x: float
    y: float
    is_present: bool
    was_entered: bool


@dataclass(frozen=True)
class StateDrawing:
    """A state machine as boxes and arrows."""

    boxes: tuple[StateBox, ...]
    arrows: tuple[tuple[str, bool], ...]
    """The path of each arrow, and whether the run has taken it."""


def state_drawing(address: str, moves: list[tuple[str, str]]) -> StateDrawing | None:
    """Draw the machine of an agent.

    None for a host program's own kind of agent.

    Args:
        address: The agent.
        moves: The moves of the run so far, from state to state, in order.
    """
    machine = _MACHINES.get(agent_kind(address))
    if machine is None:
        return None
    names = list(machine.transitions)
    present = moves[-1][1] if moves else ""
    entered = {target for _, target in moves}
    places = {name: _place(number, len(names)) for number, name in enumerate(names)}
    boxes = tuple(StateBox(str(name), *places[name], name == present, name in entered) for name in names)
    arrows = tuple(
        (_arrow(places[source], places[target]), (source, target) in moves)
        for source, row in machine.transitions.items()
        for target in row
        if target != source
    )
    return StateDrawing(boxes, arrows)


def _place(number: int, count: int) -> tuple[float, float]:
    """Return the middle of a state's box.

    The boxes stand on an ellipse, the first on the left.
    """
    angle = math.pi + 2 * math.pi * number / count
    x = WIDTH / 2 + (WIDTH - _BOX_WIDTH - 16) / 2 * math.cos(angle)
    y = HEIGHT / 2 + (HEIGHT - _BOX_HEIGHT - 16) / 2 * math.sin(angle)
    return round(x, 1), round(y, 1)


def _arrow(source: tuple[float, float], target: tuple[float, float]) -> str:
    """Return the path of an arrow between two boxes."""
    (x1, y1), (x2, y2) = source, target
    bend_x, bend_y = (x1 + x2) / 2 - (y2 - y1) * _BEND, (y1 + y2) / 2 + (x2 - x1) * _BEND
    (x1, y1), (x2, y2) = _edge(source, (bend_x, bend_y)), _edge(target, (bend_x, bend_y))
    return f"M{x1:.1f} {y1:.1f}Q{bend_x:.1f} {bend_y:.1f} {x2:.1f} {y2:.1f}"


def _edge(middle: tuple[float, float], toward: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a box's edge toward another point."""
    dx, dy = toward[0] - middle[0], toward[1] - middle[1]
    scale = min((_BOX_WIDTH / 2 + 3) / abs(dx) if dx else math.inf, (_BOX_HEIGHT / 2 + 3) / abs(dy) if dy else math.inf)
    return middle[0] + dx * scale, middle[1] + dy * scale
