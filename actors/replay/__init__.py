"""Replay of a journaled task on recorded data.

It needs no model and no surface.
"""

from callboard.actors.replay._compare import Difference, Replay, Transition
from callboard.actors.replay._recorded_task import RecordedTask
from callboard.actors.replay._replay import replay, replay_journal

__all__ = ["Difference", "RecordedTask", "Replay", "Transition", "replay", "replay_journal"]
