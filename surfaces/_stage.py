"""Storage folder for a surface while it is open."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import own_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.messages import Seconds


class Stage:
    """The argument of `Server.open`: a private folder, created on first use."""

    def __init__(
        self, server: str, journal: Path | None = None, elapsed: Callable[[], Seconds] = time.monotonic
    ) -> None:
        """Create the stage of a surface.

        Args:
            server: The surface's name.
            journal: The file of the supervisor's journal, if it has one.
            elapsed: Returns seconds on the supervisor's monotonic clock.
        """
        self.elapsed = elapsed
        self._surface = server
        self._journal = journal
        self._folder: Path | None = None

    @property
    def lasting(self) -> bool:
        """True if the next supervisor on the journal gets the folder."""
        return self._journal is not None

    @property
    def folder(self) -> Path:
        """The folder, readable only by its user.

        Without a journal, `close` removes it.
        """
        if self._folder is None:
            if self._journal is None:
                self._folder = Path(tempfile.mkdtemp(prefix=f"callboard-{self._surface}-"))
            else:
                beside = self._journal.with_name(f"{self._journal.name}.surfaces")
                own_folder(beside)
                own_folder(beside / self._surface)
                self._folder = beside / self._surface
        return self._folder

    def close(self) -> None:
        """Remove the folder, unless it is `lasting`."""
        if self._folder is not None and not self.lasting:
            shutil.rmtree(self._folder, ignore_errors=True)
