"""Record of a browser's tabs, to open them again after its end."""

from __future__ import annotations

import collections
import json
import time
from typing import TYPE_CHECKING, Any

from callboard.config import write_own
from callboard.surfaces.browser._page_addresses import without_query

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from callboard.surfaces.browser._tab import Tab

_MOST_REOPENED = 50
"""The tabs of an earlier process that are opened again where its browser has ended."""
_END_SECONDS = 5.0
"""The time in which the end of a browser is noticed, after its tabs have ended."""
_KINDS = {"target": str, "owner": str, "url": str, "documents": list}


class TabRecord:
    """The facts of tabs, by their ids.

    Args:
        path: Its file.
        is_written: Whether a next process may need it.
    """

    def __init__(self, path: Path, *, is_written: bool) -> None:
        self._path = path
        self._is_written = is_written
        self.earlier: dict[str, dict[str, Any]] = {}
        """The tabs of an earlier process or browser."""
        self.lost: dict[str, dict[str, Any]] = {}
        """Those of them that are not open again yet."""
        self._closed: collections.deque[tuple[float, Tab]] = collections.deque(maxlen=_MOST_REOPENED)
        """The tabs that were closed last, each with the time."""

    def read(self) -> None:
        """Read the tabs of an earlier process; none without a valid record."""
        self.earlier = {}
        try:
            tabs = json.loads(self._path.read_text(encoding="utf-8"))
            is_valid = all(isinstance(tab[name], kind) for tab in tabs.values() for name, kind in _KINDS.items())
            tabs = {tab_id: {"repeatable": True, **tab} for tab_id, tab in tabs.items()}  # older records lack it
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return
        if is_valid:
            self.earlier = tabs

    def write(self, tabs: Iterable[Tab]) -> None:
        """Record the open tabs for the next process."""
        if self._is_written:
            write_own(self._path, json.dumps(self.lost | {tab.id: tab_facts(tab) for tab in tabs}))

    def note_closed(self, tab: Tab) -> None:
        """Note a tab that was closed: perhaps its browser has ended."""
        self._closed.append((time.monotonic(), tab))

    def note_end(self, tabs: Iterable[Tab]) -> None:
        """Note the end of the browser: its tabs closed right before."""
        closed_with_it = time.monotonic() - _END_SECONDS
        closed = {tab.id: tab_facts(tab) for end, tab in self._closed if end > closed_with_it}
        self.earlier = {**closed, **{tab.id: tab_facts(tab) for tab in tabs}}

    def note_lost(self, open_ids: set[str]) -> None:
        """Note which tabs of tasks are not open any more."""
        lost_ids = [tab_id for tab_id, facts in self.earlier.items() if facts["owner"] and tab_id not in open_ids]
        self.lost = {tab_id: self.earlier[tab_id] for tab_id in lost_ids[:_MOST_REOPENED]}

    def of_target(self, target: str) -> tuple[str, dict[str, Any]] | None:
        """Return the id and facts of the tab with a page."""
        return next(((tab_id, facts) for tab_id, facts in self.earlier.items() if facts["target"] == target), None)


def tab_facts(tab: Tab) -> dict[str, Any]:
    """Return the recorded facts of a tab."""
    url = tab.page.url if tab.is_repeatable else without_query(tab.page.url)
    facts = {"target": tab.target, "owner": tab.owner, "url": url, "documents": tab.documents}
    return facts | {"repeatable": tab.is_repeatable}
