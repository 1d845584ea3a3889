"""A surface whose tool is stopped in the middle, for tests of actions in doubt."""

from __future__ import annotations

import threading
from typing import Any

from callboard import tool
from callboard.messages import Effect
from callboard.testing import MemoryServer
from support import HELD


class Held(MemoryServer):
    """A window with a tool that stops in the middle: before or after it has done its effect."""

    def __init__(self, effects: list[Any], where: str) -> None:
        super().__init__(self.window())
        self.effects, self.where = effects, where
        self.reached, self.go = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def stamp(self, target: str) -> str:
        """Do something that can't be seen."""
        if self.where == "before":
            self._hang()
        self.effects.append((target, "stamp", "stamp"))
        if self.where == "after":
            self._hang()
        return "done"

    def _hang(self) -> None:
        if not self.go.is_set():
            self.reached.set()
            self.go.wait(HELD)
