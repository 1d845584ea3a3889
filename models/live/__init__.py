"""Live models and their providers.

A provider has a client, a rate limit and prices.
"""

from callboard.models.live._computer_tool import ComputerTool
from callboard.models.live._live_models import Providers

__all__ = ["ComputerTool", "Providers"]
