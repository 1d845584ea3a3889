"""The settings that a journal stores for a replay.

They determine a task's course.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.config._keys import output_redactor
from callboard.config._limits import BudgetSettings, Limits
from callboard.config._policy import PolicySettings
from callboard.config._secrets_in_urls import MASK
from callboard.config._sections import JournalSettings, SystemSettings
from callboard.config._settings import Settings
from callboard.messages import SettingsError, plain_problems

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.config._section import Section

_WHOLE: dict[str, type[Section]] = {
    "limits": Limits,
    "system": SystemSettings,
    "policy": PolicySettings,
    "budget": BudgetSettings,
}
_IN_DOUBT = {"in_doubt"}
"""The keys of the section `journal` that are stored; the others only concern its file."""
_FREE = ("agent", "application", "tool", "arguments", "resource", "reason")
"""The members of a rule that are free text, and may contain a secret."""


def in_force(settings: Settings) -> dict[str, JsonValue]:
    """Return the settings that determine a task's course.

    They are the limits, the policy, the budgets, and whether people are asked. Defaults are included, since a later
    version may have others. Secrets in rules are masked.
    """
    sections: dict[str, Any] = {name: getattr(settings, name).model_dump(mode="json") for name in _WHOLE}
    sections["journal"] = settings.journal.model_dump(mode="json", include=_IN_DOUBT)
    redactor = output_redactor(settings)
    for rule in sections["policy"]["rules"]:
        rule.update({name: redactor.redact(rule[name]) for name in _FREE})
    return sections


def _with_patterns(sections: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Replace regular expressions that masking has made invalid.

    The replacement, a glob of stars, matches any text.
    """

    def whole(value: Any) -> Any:
        if isinstance(value, str):
            return MASK if value.startswith("re:") and MASK in value else value
        if isinstance(value, dict):
            return {name: whole(item) for name, item in value.items()}
        return [whole(item) for item in value] if isinstance(value, list) else value

    return {**sections, "policy": whole(sections["policy"])} if "policy" in sections else sections


def settings_in_force(sections: dict[str, JsonValue]) -> Settings:
    """Build settings from the result of `in_force`.

    Other settings have their defaults; the environment is ignored.

    Raises:
        SettingsError: If this version can't read them.
    """
    sections = _with_patterns(sections)
    try:
        models: dict[str, Any] = {
            name: section.model_validate(sections[name]) for name, section in _WHOLE.items() if name in sections
        }
        models["journal"] = JournalSettings.model_validate(sections.get("journal", {}))
    except ValidationError as error:
        wrong = "; ".join(plain_problems(error.errors()))
        msg = f"the settings in the journal are from another version ({wrong}): name a settings file to use instead"
        raise SettingsError(msg) from error
    return Settings.model_construct(**models)
