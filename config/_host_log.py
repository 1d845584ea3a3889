"""What goes to the host program's own logging: that something of it, or of ours, failed."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

HOST = logging.getLogger("callboard")
"""The host program's logger for us."""
SILENT: list[logging.Handler] = [logging.NullHandler()]
"""Its handlers where the host program has added none."""
HOST.addHandler(SILENT[0])  # else `logging` prints what is important where nobody has set anything up


class HostLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises. What a handler or a filter of the host program raises ends none of our threads."""

    def __init__(self) -> None:
        """Log as ``callboard``."""
        super().__init__(HOST, {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log; it is lost if that fails, since there is no other place to say it."""
        with contextlib.suppress(BaseException):
            super().log(level, msg, *args, **{**kwargs, "stacklevel": 2})  # its place is where it was called
