"""Checks: the readings for which a FINISH counts, or does not."""

from callboard.actors.processing.checks._checker import Checker, finishes

__all__ = ["Checker", "finishes"]
