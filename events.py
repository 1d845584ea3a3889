"""The classes of events, for programs that read events."""

from callboard.messages.events import *  # noqa: F403
