"""A run replayed: a journaled task runs again on what was recorded, without a model and without a surface."""

from callboard.actors.replay._compare import Difference, Replay, Transition
from callboard.actors.replay._recording import Recording
from callboard.actors.replay._replay import replay, replay_journal

__all__ = ["Difference", "Recording", "Replay", "Transition", "replay", "replay_journal"]
