"""The functions whose results a program reproduces, by version of a file.

A file's own results are compared once per version. Versions that are written here inherit from the one before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

_MOST_VERSIONS = 64
"""The oldest is then forgotten, and compared again when it is used."""


@dataclass
class Checked:
    """The functions and operators that a program was compared on."""

    right: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)


class ComparedVersions:
    """The versions of workbooks, by the fingerprints of their bytes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checked: OrderedDict[str, dict[str, Checked]] = OrderedDict()

    def of(self, fingerprint: str) -> dict[str, Checked]:
        """Return the comparisons of a version, by program."""
        with self._lock:
            comparisons = self._checked.get(fingerprint, {})
            return {
                name: Checked(set(comparison.right), set(comparison.wrong)) for name, comparison in comparisons.items()
            }

    def keep(self, fingerprint: str, checked: dict[str, Checked]) -> None:
        """Keep the comparisons of a version."""
        with self._lock:
            self._checked[fingerprint] = checked
            self._checked.move_to_end(fingerprint)
            while len(self._checked) > _MOST_VERSIONS:
                self._checked.popitem(last=False)


VERSIONS = ComparedVersions()
