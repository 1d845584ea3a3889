"""Tools for touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.messages import AgentKind, Effect
from callboard.surfaces._surface import tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.android._device_actions import DeviceActions

MOBILE = (AgentKind.MOBILE,)
Answer = dict[str, Any]
Serial = Annotated[str, Field(description="The device.")]
ControlName = Annotated[str, Field(description="What it is called.")]
ControlId = Annotated[str, Field(description="The control.")]
MaybeControl = Annotated[str, Field(description="The control; empty if a point is given.")]
X = Annotated[int | None, Field(ge=0, description="A point in place of a control: pixels from the left.")]
Y = Annotated[int | None, Field(ge=0, description="Pixels from the top.")]
Direction = Literal["up", "down", "left", "right"]
_DIRECTIONS: dict[str, tuple[int, int]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_LONG_MS = 800


class TouchTools:
    """Tools that tap, press, swipe and drag.

    Args:
        actions: Returns the actions of a device, by its serial.
    """

    def __init__(self, actions: Callable[[str], DeviceActions]) -> None:
        self._actions = actions

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def tap(self, device: Serial, *, control_id: MaybeControl = "", x: X = None, y: Y = None) -> Answer:
        """Tap a control, or a point of the screen."""
        actions = self._actions(device)
        point_x, point_y = await actions.point(control_id, x, y)
        await actions.act(f"input tap {point_x} {point_y}")
        return {}

    @tool(effect=Effect.ONCE, agents=MOBILE, offered=False)
    async def click_control(self, device: Serial, control_id: ControlId, control_name: ControlName = "") -> Answer:
        """Tap a control."""
        return await self.tap(device, control_id=control_id)

    @tool(effect=Effect.ONCE, agents=MOBILE, offered=False)
    async def click_input(self, device: Serial, control_id: ControlId, *, double: bool = False) -> Answer:
        """Tap a control once, or twice."""
        return await (self.double_tap if double else self.tap)(device, control_id=control_id)

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def double_tap(self, device: Serial, *, control_id: MaybeControl = "", x: X = None, y: Y = None) -> Answer:
        """Tap a control, or a point of the screen, twice."""
        actions = self._actions(device)
        point_x, point_y = await actions.point(control_id, x, y)
        await actions.act(
            f"input tap {point_x} {point_y} & input tap {point_x} {point_y} && wait"
        )  # in sequence they would be too slow
        return {}

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def long_press(self, device: Serial, *, control_id: MaybeControl = "", x: X = None, y: Y = None) -> Answer:
        """Press a control or a screen point for almost a second."""
        actions = self._actions(device)
        point_x, point_y = await actions.point(control_id, x, y)
        await actions.act(f"input swipe {point_x} {point_y} {point_x} {point_y} {_LONG_MS}")
        return {}

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def swipe(
        self,
        device: Serial,
        direction: Annotated[Direction, Field(description="Where the finger goes: up to see what is further down.")],
        *,
        control_id: Annotated[str, Field(description="The list to swipe in; empty: the whole screen.")] = "",
        share: Annotated[float, Field(gt=0, le=0.9, description="How far, as a share of its size.")] = 0.6,
    ) -> Answer:
        """Swipe with a finger in a list, or over the screen."""
        actions = self._actions(device)
        if control_id:
            box = await actions.visible(control_id)
            left, top, width, height = box.x, box.y, box.width, box.height
        else:
            information = await actions.device.information.get()
            screen = await actions.device.screen.get()
            width, height = information.size(screen)
            if screen.state.keyboard_box is not None:
                height = min(height, screen.state.keyboard_box.y)
            left, top = 0, 0
        across, down = _DIRECTIONS[direction]
        middle = (left + width // 2, top + height // 2)
        half = (round(across * share * width / 2), round(down * share * height / 2))
        start, end = (tuple(a + sign * b for a, b in zip(middle, half, strict=True)) for sign in (-1, 1))
        await actions.act(f"input swipe {start[0]} {start[1]} {end[0]} {end[1]} 300")
        return {}

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def drag(
        self,
        device: Serial,
        *,
        control_id: MaybeControl = "",
        x: X = None,
        y: Y = None,
        to: Annotated[str, Field(description="The control to drag it to; empty if a point is given.")] = "",
        to_x: X = None,
        to_y: Y = None,
        seconds: Annotated[float, Field(gt=0, le=10)] = 1.0,
    ) -> Answer:
        """Drag a control, or a point of the screen, to another one."""
        actions = self._actions(device)
        start, end = await actions.point(control_id, x, y), await actions.point(to, to_x, to_y)
        await actions.act(f"input draganddrop {start[0]} {start[1]} {end[0]} {end[1]} {round(seconds * 1000)}")
        return {}
