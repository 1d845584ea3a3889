"""Settings (typed), defaults, prompts, logging set-up."""

from callboard.config._logging import EventLog
from callboard.config._prompts import load_prompts
from callboard.config._settings import (
    BlackboardSettings,
    Documents,
    EventSettings,
    Limits,
    LogSettings,
    McpServer,
    Models,
    PolicyRule,
    Prompts,
    Settings,
    SystemSettings,
    Verdict,
)

__all__ = [
    "BlackboardSettings",
    "Documents",
    "EventLog",
    "EventSettings",
    "Limits",
    "LogSettings",
    "McpServer",
    "Models",
    "PolicyRule",
    "Prompts",
    "Settings",
    "SystemSettings",
    "Verdict",
    "load_prompts",
]
