"""Live models: providers with their clients, rate limits and prices, and their models."""

from callboard.actors.models.live._computer_tool import ComputerTool
from callboard.actors.models.live._providers import Providers

__all__ = ["ComputerTool", "Providers"]
