"""A cache of parsed versions of large files, within a memory limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

DEFAULT_CACHE_MB = 64


class VersionCache:
    """Results of parsing, by version of a file. Thread-safe.

    The least recently used is forgotten first.

    Args:
        max_bytes: The most memory that all results take together. A larger result is not kept.
    """

    def __init__(self, max_bytes: int = 0) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[str, str], tuple[Any, int]] = OrderedDict()
        self._size_bytes = 0

    def get(self, fingerprint: str, name: str) -> Any:
        """Return a result for a version; None if there is none."""
        with self._lock:
            if (fingerprint, name) not in self._results:
                return None
            self._results.move_to_end((fingerprint, name))
            return self._results[fingerprint, name][0]

    def keep(self, fingerprint: str, name: str, result: Any, size_bytes: int) -> None:
        """Keep a result, and forget others above the limit."""
        with self._lock:
            _, old_bytes = self._results.pop((fingerprint, name), (None, 0))
            self._size_bytes -= old_bytes
            if size_bytes > self._max_bytes:
                return
            self._results[fingerprint, name] = result, size_bytes
            self._size_bytes += size_bytes
            while self._size_bytes > self._max_bytes:
                _, (_, oldest_bytes) = self._results.popitem(last=False)
                self._size_bytes -= oldest_bytes
