"""Typed settings with defaults, prompts, plug-ins, redaction, and the log."""

from callboard.config._browser_settings import NetworkSettings
from callboard.config._caller_settings import CallerRights, McpService
from callboard.config._check_programs import all_check_programs
from callboard.config._english import ENGLISH
from callboard.config._fleet_settings import AcceptSettings, FleetSettings
from callboard.config._in_force import in_force, settings_in_force
from callboard.config._installation import install_command
from callboard.config._keys import keys_of, output_redactor
from callboard.config._language import Language, current_language, speaking, term, text
from callboard.config._limits import BudgetSettings, DailyBudget, Limits
from callboard.config._logging import EventLog, HostLog, LabelledEvent, log_line
from callboard.config._mail_settings import ImapSettings, MailSettings, SmtpSettings
from callboard.config._narrower_terms import least, matches, narrower
from callboard.config._plugin_options import fitting_options, parameters_of
from callboard.config._plugins import PluginGroup, described, find_plugin, import_plugin, make_plugin, plugin_text
from callboard.config._policy import DEFAULT_RULES, PolicySettings
from callboard.config._private import (
    NotOwnError,
    check_own,
    create_own,
    make_private,
    open_own,
    open_private,
    own_folder,
    restrict,
    set_mode,
    write_own,
)
from callboard.config._prompts import load_prompts
from callboard.config._providers import COMPATIBLE, Provider
from callboard.config._redactor import AS_NUMBER, REFERENCE, Redactor
from callboard.config._secret_numbers import number_of
from callboard.config._secrets_in_urls import MASK, in_url, like_a_key, masked
from callboard.config._sections import (
    Android,
    BlackboardSettings,
    Desktop,
    Documents,
    EventSettings,
    GenAiConventions,
    JournalSettings,
    LogSettings,
    McpServer,
    McpTool,
    Models,
    ObserveSettings,
    Prompts,
    RoutineSettings,
    ShellSettings,
    SupervisionSettings,
    SurfacePlugin,
    SystemSettings,
)
from callboard.config._settings import Settings, check_kind, check_kinds
from callboard.config._skills import READ_SKILL, SKILL_FILE, Skill, SkillFolder, load_skills
from callboard.config._yaml import YamlError, load_yaml, parse_yaml
from callboard.messages import EXPRESSION, Budget, PolicyRule, Verdict, fits

__all__ = [
    "AS_NUMBER",
    "COMPATIBLE",
    "DEFAULT_RULES",
    "ENGLISH",
    "EXPRESSION",
    "MASK",
    "READ_SKILL",
    "REFERENCE",
    "SKILL_FILE",
    "AcceptSettings",
    "Android",
    "BlackboardSettings",
    "Budget",
    "BudgetSettings",
    "CallerRights",
    "DailyBudget",
    "Desktop",
    "Documents",
    "EventLog",
    "EventSettings",
    "FleetSettings",
    "GenAiConventions",
    "HostLog",
    "ImapSettings",
    "JournalSettings",
    "LabelledEvent",
    "Language",
    "Limits",
    "LogSettings",
    "MailSettings",
    "McpServer",
    "McpService",
    "McpTool",
    "Models",
    "NetworkSettings",
    "NotOwnError",
    "ObserveSettings",
    "PluginGroup",
    "PolicyRule",
    "PolicySettings",
    "Prompts",
    "Provider",
    "Redactor",
    "RoutineSettings",
    "Settings",
    "ShellSettings",
    "Skill",
    "SkillFolder",
    "SmtpSettings",
    "SupervisionSettings",
    "SurfacePlugin",
    "SystemSettings",
    "Verdict",
    "YamlError",
    "all_check_programs",
    "check_kind",
    "check_kinds",
    "check_own",
    "create_own",
    "current_language",
    "described",
    "find_plugin",
    "fits",
    "fitting_options",
    "import_plugin",
    "in_force",
    "in_url",
    "install_command",
    "keys_of",
    "least",
    "like_a_key",
    "load_prompts",
    "load_skills",
    "load_yaml",
    "log_line",
    "make_plugin",
    "make_private",
    "masked",
    "matches",
    "narrower",
    "number_of",
    "open_own",
    "open_private",
    "output_redactor",
    "own_folder",
    "parameters_of",
    "parse_yaml",
    "plugin_text",
    "restrict",
    "set_mode",
    "settings_in_force",
    "speaking",
    "term",
    "text",
    "write_own",
]
