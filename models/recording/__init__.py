"""Record model calls to a file and play them back."""

from callboard.models.recording._recorded import RecordedModel, recorded_model
from callboard.models.recording._recording_model import recorder

__all__ = ["RecordedModel", "recorded_model", "recorder"]
