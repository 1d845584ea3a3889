"""Replay of a journaled task on recorded data.

It needs no model and no surface.
"""

from callboard.actors.replay._compare import Difference, Replay, Transition
from callboard.actors.replay._recording import Recording
from callboard.actors.replay._replay import replay, replay_journal

__all__ = ["Difference", "Recording", "Replay", "Transition", "replay", "replay_journal"]
