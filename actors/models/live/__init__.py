"""Live models: providers, their clients, rate limits and prices, and the models that the settings name of them."""

from callboard.actors.models.live._computer_tool import ComputerTool
from callboard.actors.models.live._providers import Providers

__all__ = ["ComputerTool", "Providers"]
