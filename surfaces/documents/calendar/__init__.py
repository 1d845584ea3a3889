"""Calendars."""

from callboard.surfaces.documents.calendar._calendar_tools import CalendarTools

__all__ = [
    "CalendarTools",
]
