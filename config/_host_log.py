"""Messages to the host program's logging about failures.

They happen in the host program or in Callboard.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

HOST = logging.getLogger("callboard")
"""The logger ``callboard``, which the host program configures."""
SILENT: list[logging.Handler] = [logging.NullHandler()]
"""Its handlers if the host program has added none."""
HOST.addHandler(SILENT[0])  # otherwise an unconfigured `logging` prints warnings to stderr


class HostLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises.

    Handlers and filters of the host program can't end a thread.
    """

    def __init__(self) -> None:
        """Log as ``callboard``."""
        super().__init__(HOST, {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message; it is lost if that raises."""
        with contextlib.suppress(BaseException):
            super().log(level, msg, *args, **{**kwargs, "stacklevel": 2})  # the caller's line
