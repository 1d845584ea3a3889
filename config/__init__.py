"""Settings (typed), defaults, prompts, logging set-up."""

from callboard.config._limits import Budget, BudgetSettings, Limits
from callboard.config._logging import EventLog
from callboard.config._policy import PolicyRule, PolicySettings, Verdict
from callboard.config._prompts import load_prompts
from callboard.config._secrets import in_url, masked
from callboard.config._sections import (
    BlackboardSettings,
    Documents,
    EventSettings,
    LogSettings,
    McpServer,
    Models,
    Prompts,
    SystemSettings,
)
from callboard.config._settings import Settings

__all__ = [
    "BlackboardSettings",
    "Budget",
    "BudgetSettings",
    "Documents",
    "EventLog",
    "EventSettings",
    "Limits",
    "LogSettings",
    "McpServer",
    "Models",
    "PolicyRule",
    "PolicySettings",
    "Prompts",
    "Settings",
    "SystemSettings",
    "Verdict",
    "in_url",
    "load_prompts",
    "masked",
]
