"""A run replayed: a journaled task runs again on what was recorded, without a model and without a surface."""

from callboard.actors.replay._recording import Recording
from callboard.actors.replay._replay import replay, replay_journal
from callboard.actors.replay._result import Difference, Replay, Transition

__all__ = ["Difference", "Recording", "Replay", "Transition", "replay", "replay_journal"]
