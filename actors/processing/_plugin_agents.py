"""Import kinds of agents from plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._spec import AgentSpec
from callboard.config import PluginGroup, find_plugin, import_plugin, plugin_text
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from callboard.config import Settings


def named_agents(settings: Settings) -> list[AgentSpec]:
    """Import the kinds of agents that the settings name.

    Raises:
        SettingsError: If a plug-in does not exist, can't be imported, or is not an `AgentSpec` of that name.
    """
    entries = [
        (find_plugin(PluginGroup.AGENTS, name, f"agents.{number}"), number)
        for number, name in enumerate(settings.agents)
    ]
    specs = []
    for entry, number in entries:
        spec = import_plugin(entry, f"agents.{number}")
        problem = "" if isinstance(spec, AgentSpec) else f"is a {type(spec).__name__}, not an AgentSpec"
        if not problem and spec.name != entry.name:
            problem = f"is the kind {spec.name!r}: it has to have the name of its entry point"
        if problem:
            msg = f"agents.{number}: {plugin_text(entry)} {problem}"
            raise SettingsError(msg)
        specs.append(spec)
    return specs
