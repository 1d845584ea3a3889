"""Names that tests in several folders share."""

from __future__ import annotations

PATIENCE = 60
"""Seconds to wait for something that must happen; a wait ends as soon as it does, so more costs nothing."""

HELD = 3 * PATIENCE
"""Seconds for which a double blocks its caller unless a test releases it: longer than any test waits for the caller."""
