"""Settings from YAML and the environment.

Every field has a type, a default and a description.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, YamlConfigSettingsSource

from callboard.config._browser_settings import BrowserSettings
from callboard.config._caller_settings import McpService
from callboard.config._fleet_settings import FleetSettings
from callboard.config._invalid_settings import (
    SPELLINGS,
    check_environment,
    check_spellings,
    explain,
    is_mapping,
    key_error,
    one_name,
    one_spelling,
    unknown_key,
)
from callboard.config._limits import BudgetSettings, Limits
from callboard.config._mail_settings import MailSettings
from callboard.config._policy import PolicySettings, as_rules
from callboard.config._providers import Provider
from callboard.config._sections import (
    Android,
    BlackboardSettings,
    Desktop,
    Documents,
    EventSettings,
    JournalSettings,
    LogSettings,
    McpServers,
    Models,
    ObserveSettings,
    Prompts,
    RoutineSettings,
    ShellSettings,
    SupervisionSettings,
    SurfaceName,
    SurfacePlugin,
    SystemSettings,
)
from callboard.config._yaml import YamlError, load_yaml
from callboard.messages import AgentKind, AnySecret, DocumentedFields, PolicyRule, SettingsError, did_you_mean, form_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_settings import PydanticBaseSettingsSource


_file_read: ContextVar[Path | None] = ContextVar("file read", default=None)
"""The file that `Settings.load` reads."""


class _Environment(EnvSettingsSource):
    """The environment as a source.

    A secret is used verbatim, even if it looks like JSON.
    """

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Parse the value of a whole section.

        Raises:
            SettingsError: If it is not JSON.
        """
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError as error:
            section = self.settings_cls.model_fields.get(field_name)
            if section is None or field is not section:
                raise  # a part of a section, which may be a plain text
            name = f"{self.env_prefix}{field_name}".upper()
            how = 'write a list as JSON, as in ["one", "two"]'
            if is_mapping(field_name, self.settings_cls):
                how = f"write a section as JSON, or set its keys one by one, as in {name}{self.env_nested_delimiter}KEY"
            msg = f"the environment: {name}: is not valid JSON: {how}"
            raise SettingsError(msg) from error

    def explode_env_vars(self, field_name: str, field: FieldInfo, env_vars: Mapping[str, str | None]) -> dict[str, Any]:
        """Collect the variables of a section."""
        values = super().explode_env_vars(field_name, field, env_vars)
        if field_name != "secrets":
            return values
        prefix = f"{self.env_prefix}{field_name}{self.env_nested_delimiter}".lower()
        return {
            name: value if isinstance(value, dict) and "value" in value else env_vars.get(f"{prefix}{name}", value)
            for name, value in values.items()
        }


class _SettingsFile(YamlConfigSettingsSource):
    """The file as a source.

    Its sections have the forms of the other sources', so that these override it key by key.
    """

    def __call__(self) -> dict[str, Any]:
        """Return the sections."""
        content = {SPELLINGS.get(name, name): value for name, value in super().__call__().items() if value is not None}
        if "policy" in content:
            content["policy"] = as_rules(content["policy"])
        return content


class Settings(DocumentedFields, BaseSettings):
    """All settings.

    `Settings()` has the defaults and the environment; `Settings.load` also reads a file. A variable
    `CALLBOARD_LIMITS__STEPS=20` sets `limits.steps` and overrides the file.
    """

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix="CALLBOARD_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    limits: Limits = Limits()
    """Limits on counts, sizes and times."""
    system: SystemSettings = SystemSettings()
    """Questions and approvals."""
    models: Models = Models()
    """The model of each kind of agent."""
    providers: dict[str, Provider] = Field(default_factory=dict)
    """Model providers, by the name before the colon in a model's name. `_` and `-` are one in names, so
    `CALLBOARD_PROVIDERS__OPENAI_CHAT__URL` is for models of `openai-chat`."""
    prompts: Prompts = Prompts()
    """Prompt files that replace the shipped ones."""
    skills: tuple[Path, ...] = ()
    """Folders with a `SKILL.md`: instructions for some kinds of work, which agents read when they need them. No other
    folder is ever searched."""
    secrets: dict[str, AnySecret] = Field(default_factory=dict)
    """Values that replace `${secret:NAME}` in tools' arguments, never shown to models, people or records: a text, or
    `{value, tools, parameters, targets, origins}` with patterns for the places where a model may name it."""
    documents: Documents = Documents()
    """The documents surface."""
    desktop: Desktop = Desktop()
    """The Linux desktop."""
    android: Android = Android()
    """Android devices."""
    browser: BrowserSettings = BrowserSettings()
    """The browser."""
    shells: dict[SurfaceName, ShellSettings] = Field(default_factory=dict)
    """Shells for LinuxAgents, by name."""
    mail: dict[SurfaceName, MailSettings] = Field(default_factory=dict)
    """Mailboxes for AppAgents, by name."""
    surfaces: dict[SurfaceName, SurfacePlugin] = Field(default_factory=dict)
    """Surfaces of plug-ins, by name. Other installed plug-ins are not loaded."""
    agents: tuple[str, ...] = ()
    """Kinds of agents of plug-ins: the names of their entry points, or `DISTRIBUTION:NAME`."""
    check_programs: tuple[str, ...] = ()
    """Functions of plug-ins for checks with `program`: the names of their entry points, or `DISTRIBUTION:NAME`. A check
    names one without its distribution."""
    mcp_servers: McpServers = Field(default_factory=dict)
    """Third-party MCP servers, by name; the ecosystem's spelling `mcpServers` is accepted, too."""
    mcp_server: McpService = McpService()
    """Callboard as an MCP server, and the rights of its callers."""
    policy: Annotated[
        PolicySettings, BeforeValidator(as_rules, json_schema_input_type=PolicySettings | tuple[PolicyRule, ...])
    ] = PolicySettings()
    """Rules for actions; a plain list is accepted as `rules`."""
    budget: BudgetSettings = BudgetSettings()
    """Budgets of a task, a subtask and a step."""
    log: LogSettings = LogSettings()
    """The log's destinations, levels and sizes."""
    blackboard: BlackboardSettings = BlackboardSettings()
    """Limits of the blackboard."""
    events: EventSettings = EventSettings()
    """Limits of the event stream."""
    observe: ObserveSettings = ObserveSettings()
    """Traces and metrics for monitoring."""
    journal: JournalSettings = JournalSettings()
    """The journal, which survives the process."""
    routines: RoutineSettings = RoutineSettings()
    """Stop rules of routines, and the promotion of their repairs."""
    fleet: FleetSettings = FleetSettings()
    """Other machines that do subtasks, and whose subtasks this one does."""
    supervision: SupervisionSettings = SupervisionSettings()
    """Restarts of crashed agents, and hang detection."""
    _base: Path = PrivateAttr(default_factory=Path.cwd)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show the sections that were set; keys and secrets are masked there."""
        return [(name, value) for name, value in super().__repr_args__() if name in self.model_fields_set]

    @property
    def local_surfaces(self) -> frozenset[str]:
        """The surfaces whose open targets machines of this computer work on."""
        return frozenset({"documents", *self.surfaces}) if self.fleet.local else frozenset()

    @property
    def base(self) -> Path:
        """The base of relative paths.

        It is the settings file's folder, else the current one.
        """
        return self._base

    @property
    def plugin_kinds(self) -> tuple[str, ...]:
        """The kinds of agents in `agents`.

        A kind has the name of its entry point.
        """
        return tuple(name.rpartition(":")[2] for name in self.agents)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Accept the ecosystem's spelling, and use the defaults for an empty section."""
        given = {SPELLINGS.get(key, key): value for key, value in values.items() if value is not None}
        if isinstance(given.get("providers"), dict):
            given["providers"] = one_spelling(given["providers"])
        return given

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments override the environment, which overrides the file."""
        path = _file_read.get() or settings_cls.model_config.get("yaml_file")
        _file_read.set(None)  # a validator may make other settings
        return init_settings, _Environment(settings_cls), _SettingsFile(settings_cls, path)

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        *,
        base: Path | None = None,
        kinds: Collection[str] = (),
        **changes: Any,
    ) -> Settings:
        """Read a settings file (YAML) and the environment.

        Args:
            path: The file; without one, only the environment and the defaults are used.
            base: The base of relative paths; by default the file's folder, else the current one.
            kinds: The host program's own kinds of agents, which `models`, `prompts` and the `agents` of MCP servers may
                name in addition to the shipped ones and those of plug-ins.
            changes: Sections that override both.

        Raises:
            SettingsError: If the file can't be read, or it or the environment is invalid. The message names each wrong
                key, and suggests the nearest known one.

        Example:
            >>> Settings.load(limits={"steps": 20}).limits.steps
            20
        """
        read: Path | None = None
        where = "settings" if changes else "the environment"
        if path is not None:
            file = Path(path)
            _check_readable(file)
            where = str(file)
            base = base or file.resolve().parent
            read = file.absolute()  # pydantic-settings would expand a leading ~
        check_environment(cls)
        token = _file_read.set(read)
        try:
            loaded = cls(**changes)
        except ValidationError as error:
            raise SettingsError(explain(error, where, changes, cls)) from error
        finally:
            _file_read.reset(token)
        _check_kinds(loaded, (*AgentKind, *kinds, *loaded.plugin_kinds), where)
        settings = cls.model_construct(
            _fields_set=loaded.model_fields_set, **{name: getattr(loaded, name) for name in cls.model_fields}
        )
        settings._base = base or Path.cwd()  # noqa: SLF001 - its own class
        return settings

    def provider_of(self, model: str) -> str:
        """Return the name of a model's provider, as `providers` spells it.

        `_` and `-` are one there: environment variables have no hyphens.
        """
        name = model.partition(":")[0]
        same = (provider for provider in self.providers if one_name(provider) == one_name(name))
        return next(same, name)

    def path(self, path: str | Path) -> Path:
        """Resolve a path of the settings.

        A relative one starts at `base`, and one with `~` at a home folder.
        """
        return self.base / os.path.expanduser(path)  # noqa: PTH111 - the tilde of an unknown user stays


def _check_kinds(settings: Settings, kinds: Collection[str], where: str) -> None:
    """Refuse unknown kinds of agents in `models`, `prompts` and MCP servers.

    Raises:
        SettingsError: If there is one.
    """
    lines = [
        unknown_key(where, (name, key), Settings, kinds)
        for name, section in (("models", settings.models), ("prompts", settings.prompts))
        for key in section.further
        if key not in kinds
    ]
    if lines:
        raise SettingsError("\n".join(lines))
    try:
        check_kinds(settings, kinds)
    except SettingsError as error:
        msg = f"{where}: {error}"
        raise SettingsError(msg) from None


def check_kinds(settings: Settings, kinds: Collection[str]) -> None:
    """Refuse settings that name an unknown kind of agent.

    Raises:
        SettingsError: If they do.
    """
    for where, kind in _named(settings):
        check_kind(where, kind, kinds)


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    for section, further in (("models", settings.models.further), ("prompts", settings.prompts.further)):
        yield from ((f"{section}.{kind}", kind) for kind in further)
    for name, server in settings.mcp_servers.items():
        yield from ((f"mcpServers.{name}.agents.{index}", kind) for index, kind in enumerate(server.agents or ()))


def _check_readable(file: Path) -> None:
    try:
        content = load_yaml(file)
    except YamlError as error:
        raise SettingsError(str(error)) from None
    if content is None:
        return
    if not isinstance(content, dict):
        msg = f"{file}: holds {form_of(content)}, not a mapping of keys to values"
        raise SettingsError(msg)
    if {"request", "plan"} & content.keys():
        msg = f"{file}: is a task, not settings: pass it as the task, or pass its folder"
        raise SettingsError(msg)
    bad_keys = [key for key in content if not isinstance(key, str)]
    if bad_keys:
        msg = f"{file}: {key_error(bad_keys[0])}"
        raise SettingsError(msg)
    check_spellings(content.get("providers"), file)
    bad_sections = [
        f"{file}: {name}: must be a mapping of keys to values"
        for name, value in content.items()
        if is_mapping(str(SPELLINGS.get(name, name)), Settings)
        and not isinstance(as_rules(value) if name == "policy" else value, dict | NoneType)
    ]
    if bad_sections:  # a value of another source would replace such a section silently
        raise SettingsError("\n".join(bad_sections))


def check_kind(where: str, kind: str, kinds: Collection[str]) -> None:
    """Refuse an unknown kind of agent.

    Args:
        where: The place that names it, for the error.
        kind: Its name.
        kinds: The known names.

    Raises:
        SettingsError: If the kind is unknown; the message lists the known ones, and suggests the nearest.
    """
    if kind not in kinds:
        overview = f"there are: {', '.join(kinds)}"
        msg = f"{where}: there is no kind of agent {kind!r}; {overview}{did_you_mean(kind, kinds)}"
        raise SettingsError(msg)
