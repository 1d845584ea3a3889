"""A surface in memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.messages import AgentKind, Control, Effect, Look, Observation, Target, TargetKind
from callboard.surfaces import Server, ToolError, committing, tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)


class MemoryServer(Server):
    """A surface in memory: windows, devices and shells, whose controls hold text.

    Every change is recorded in `effects`, in order, so that a test can check the real changes.

    Example:
        >>> [target.id for target in MemoryServer(MemoryServer.window()).targets()]
        ['memo:one']
    """

    def __init__(self, *targets: Target, controls: dict[str, str] | None = None, name: str = "memory") -> None:
        """Make a surface.

        Args:
            targets: Its targets; `window`, `device` and `shell` make them.
            controls: The controls of each of its targets, by id, with their text.
            name: The surface's name; the targets must carry it.
        """
        self.name = name
        self._targets = {target.id: target for target in targets}
        self._controls = {target.id: dict(controls or {"field-1": ""}) for target in targets}
        self._lock = threading.Lock()
        self.effects: list[tuple[str, str, str]] = []
        """The changes: target, control, text."""

    @staticmethod
    def window(process: str = "one", root: str = "memo", server: str = "memory") -> Target:
        """Make a window for the AppAgent ``app/<root>/<process>``."""
        return _target(f"{root}:{process}", TargetKind.WINDOW, f"app/{root}/{process}", server)

    @staticmethod
    def device(serial: str = "emulator", server: str = "memory") -> Target:
        """Make a device for the MobileAgent ``mobile/<serial>``."""
        return _target(serial, TargetKind.DEVICE, f"mobile/{serial}", server)

    @staticmethod
    def shell(host: str = "local", server: str = "memory") -> Target:
        """Make a shell for the LinuxAgent ``linux/<host>``."""
        return _target(host, TargetKind.SHELL, f"linux/{host}", server)

    def targets(self) -> tuple[Target, ...]:
        """List the targets."""
        with self._lock:
            return tuple(self._targets.values())

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Return the target's controls; the fingerprint changes with them."""
        with self._lock:
            controls = _shown(self._controls_of(target.id))
        return Observation(controls=controls, fingerprint=repr(controls), window={"title": target.name})

    def expected(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Return the fingerprint after appending a text to a field."""
        with self._lock:
            controls = dict(self._controls.get(target.id, {}))
        control = str(arguments.get("control_id"))
        if tool != "append" or control not in controls:
            return ""
        controls[control] += str(arguments.get("text"))
        return repr(_shown(controls))

    def remove(self, target_id: str, control_id: str | None = None) -> None:
        """Remove a control, or a whole target, as another program would."""
        with self._lock:
            if control_id is None:
                del self._targets[target_id]
            else:
                del self._controls[target_id][control_id]

    @tool(effect=Effect.READ, agents=_WORKERS)
    def read(self, target: str, control_id: Annotated[str, Field(description="The field to read.")]) -> str:
        """Read a field."""
        with self._lock:
            return self._text(target, control_id)

    @tool(effect=Effect.IDEMPOTENT, agents=_WORKERS)
    def write(
        self,
        target: str,
        control_id: Annotated[str, Field(description="The field to write into.")],
        text: Annotated[str, Field(description="Its new text.")],
    ) -> str:
        """Set a field's text."""
        with self._lock:
            self._text(target, control_id)
            with committing():
                self._controls[target][control_id] = text
                self.effects.append((target, control_id, text))
        return text

    @tool(effect=Effect.ONCE, agents=_WORKERS)
    def append(
        self,
        target: str,
        control_id: Annotated[str, Field(description="The field to write into.")],
        text: Annotated[str, Field(description="What is added to its text.")],
    ) -> str:
        """Add to a field's text; twice adds twice."""
        with self._lock:
            new_text = self._text(target, control_id) + text
            with committing():
                self._controls[target][control_id] = new_text
                self.effects.append((target, control_id, text))
        return new_text

    def _text(self, target: str, control: str) -> str:
        controls = self._controls_of(target)
        if control not in controls:
            msg = f"{target} has no field {control!r}; it has: {', '.join(controls) or 'none'}"
            raise ToolError(msg)
        return controls[control]

    def _controls_of(self, target: str) -> dict[str, str]:
        if target not in self._targets:
            msg = f"{target} is gone"
            raise ToolError(msg)
        return self._controls[target]


def _shown(controls: Mapping[str, str]) -> tuple[Control, ...]:
    return tuple(Control(id=key, name=key, kind="field", detail={"text": text}) for key, text in controls.items())


def _target(key: str, kind: TargetKind, address: str, server: str) -> Target:
    binds: dict[str, Any] = {"target": key}
    return Target(id=key, name=key, kind=kind, address=address, server=server, binds=binds)
