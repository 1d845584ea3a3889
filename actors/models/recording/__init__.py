"""Recordings of models: calls are added to a file, and answered from it later."""

from callboard.actors.models.recording._recorded import RecordedModel, recorded_model
from callboard.actors.models.recording._recording import record

__all__ = ["RecordedModel", "record", "recorded_model"]
