"""Tools for a device's applications, and the lists for HostAgents."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import AgentKind, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.android._touch_tools import MOBILE, Answer, Serial

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.surfaces.android._adb import Listed
    from callboard.surfaces.android._device_actions import DeviceActions

HOST = (AgentKind.HOST,)
Application = Annotated[
    str, Field(min_length=1, max_length=200, description="A package, or its last part: com.android.contacts, contacts.")
]


class ApplicationTools:
    """Tools that start, stop and list applications.

    Args:
        actions: Returns the actions of a device, by its serial.
        devices: Lists the devices.
    """

    def __init__(
        self, actions: Callable[[str], DeviceActions], devices: Callable[[], Awaitable[tuple[Listed, ...]]]
    ) -> None:
        self._actions = actions
        self._devices = devices

    @tool(effect=Effect.IDEMPOTENT, agents=MOBILE)
    async def launch_app(self, device: Serial, application: Application) -> Answer:
        """Start an application, or bring it to the front."""
        actions = self._actions(device)
        component = await self._component(actions, application)
        await actions.act(_start_command(f"-n {shlex.quote(component)}"))
        return {"activity": component}

    @tool(effect=Effect.IDEMPOTENT, agents=MOBILE)
    async def stop_app(self, device: Serial, application: Application) -> Answer:
        """End an application. Its unsaved data is lost."""
        actions = self._actions(device)
        package = (await self._component(actions, application)).partition("/")[0]
        await actions.act(f"am force-stop {shlex.quote(package)}")
        return {"package": package}

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def open_url(
        self,
        device: Serial,
        url: Annotated[str, Field(max_length=4_000, pattern=r"^[a-z][a-z0-9+.-]*:\S+$")],
    ) -> Answer:
        """Open an address with the application that is set for it."""
        actions = self._actions(device)
        try:
            await actions.act(_start_command(f"-a android.intent.action.VIEW -d {shlex.quote(url)}"))
        except ToolError as error:
            if "unable to resolve Intent" not in str(error):
                raise
            msg = f"no application on the device opens {url!r}"
            raise ToolError(msg) from error
        return {"url": url}

    @tool(effect=Effect.READ, agents=HOST)
    async def list_devices(self) -> list[dict[str, str]]:
        """List the Android devices, and whether they can be used."""
        return [
            {"device": device.serial, "model": device.model, "state": device.text} for device in await self._devices()
        ]

    @tool(effect=Effect.READ, agents=HOST)
    async def list_apps(
        self,
        device: Serial,
        *,
        all: Annotated[bool, Field(description="Whether to list also those that can't be started.")] = False,  # noqa: A002 - the argument's name
    ) -> list[str]:
        """List the applications that are installed on a device."""
        applications = await self._actions(device).device.applications.get()
        return list(applications.packages) if all else [package for package, _ in applications.startable]

    async def _component(self, actions: DeviceActions, application: str) -> str:
        """Find the activity that starts an application.

        Raises:
            ToolError: If there is no such application; the text lists all that can be started.
        """
        component = (await actions.device.applications.get()).component(application)
        if component is None:
            actions.device.applications.drop()  # it may have been installed since
            applications = await actions.device.applications.get()
            component = applications.component(application)
        if component is None:
            names = ", ".join(package for package, _ in applications.startable) or "none"
            msg = f"no application {application!r} is installed that can be started; there are: {names}"
            raise ToolError(msg)
        return component


def _start_command(intent: str) -> str:
    """Return the command that starts an activity.

    `am start` reports a failure only in its output, not by its exit code.
    """
    # A slow start times out; an activity that was already started is brought to the front.
    accepted_outputs = "*'Status: ok'* | *'Status: timeout'* | *'Warning: Activity not started,'*"
    return f'o=$(am start -W {intent} 2>&1); case "$o" in {accepted_outputs}) ;; *) echo "$o" >&2; false ;; esac'
