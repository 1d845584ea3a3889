"""A simulated Android phone behind a real adb server."""

from callboard.testing.phone._contacts import Contact
from callboard.testing.phone._phone import Phone
from callboard.testing.phone._phone_screen import PhoneScreen, View
from callboard.testing.phone._phone_shell import plugged_in

__all__ = ["Contact", "Phone", "PhoneScreen", "View", "plugged_in"]
