"""Settings: every field typed, documented and defaulted; from YAML and the environment."""

from __future__ import annotations

import difflib
import os
import threading
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import pydantic_settings
import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, YamlConfigSettingsSource

from callboard.messages import AgentKind, Effect, Seconds, SettingsError

if TYPE_CHECKING:
    from pydantic_settings import PydanticBaseSettingsSource


class Section(BaseModel):
    """A frozen part of the settings; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


Span = Annotated[Seconds, Field(gt=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A span of time that a clock can wait, in seconds."""


class Limits(Section):
    """How much, how often, how long."""

    steps: int = Field(default=50, ge=1)
    """Steps of one subtask, or of one round of a HostAgent; past that it ends as `out_of_budget`."""
    repairs: int = Field(default=2, ge=0)
    """How often an invalid answer goes back to its model before the step fails."""
    subtask_retries: int = Field(default=2, ge=0)
    """How often a HostAgent may assign a failed subtask again: the same request to the same target."""
    action_failures: int = Field(default=3, ge=1)
    """Failed actions in a row that end a subtask."""
    reannotations: int = Field(default=3, ge=1)
    """Steps in a row that an AppAgent may spend in SCREENSHOT."""
    phase_retries: int = Field(default=1, ge=0)
    """How often DATA_COLLECTION is tried again after an error; the other phases are never repeated."""
    command_seconds: Span = 60.0
    """The longest that one tool call may take."""
    model_seconds: Span = 120.0
    """The longest that one model call may take."""
    question_seconds: Span = 3600.0
    """How long an agent waits for the answer to a question."""
    approval_seconds: Span = 3600.0
    """How long an agent waits for an approval."""
    task_seconds: Span | None = None
    """The longest that one task may take; none by default."""


class SystemSettings(Section):
    """Whether people are asked."""

    ask_question: bool = True
    """Whether PENDING asks; otherwise the model is told that nobody will answer."""
    safe_guard: bool = True
    """Whether approvals are asked for; otherwise what would need one runs. Denials always hold."""


class Models(Section):
    """The model of each kind of agent: `scripted:FILE`, or one that the host program passes in."""

    host: str | None = None
    """The HostAgents' model."""
    app: str | None = None
    """The AppAgents' model."""
    mobile: str | None = None
    """The MobileAgents' model."""
    linux: str | None = None
    """The LinuxAgents' model."""

    def of(self, kind: AgentKind) -> str | None:
        """Give the model's name for a kind of agent."""
        name: str | None = getattr(self, kind.value)
        return name


class Prompts(Section):
    """Prompt files that replace the shipped ones."""

    host: Path | None = None
    """The HostAgents' prompt."""
    app: Path | None = None
    """The AppAgents' prompt."""
    mobile: Path | None = None
    """The MobileAgents' prompt."""
    linux: Path | None = None
    """The LinuxAgents' prompt."""


class Documents(Section):
    """The documents server: a folder of Word and Excel files."""

    enabled: bool = True
    """Whether the folder is offered to the agents at all."""
    workspace: Path | None = None
    """The folder. Nothing outside of it is ever read or written. None: there are no documents."""
    max_bytes: int = Field(default=50_000_000, ge=1)
    """The largest document that is opened, in bytes."""


class McpServer(Section):
    """A third-party MCP server, as in the ecosystem's `mcpServers` form."""

    command: str | None = None
    """The program to start, for stdio."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Variables added to its environment; never shown."""
    cwd: Path | None = None
    """The folder it starts in."""
    url: str | None = None
    """Its address, for streamable HTTP."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers for HTTP; never shown."""
    start_seconds: Span = 30.0
    """The longest that connecting to it may take."""
    agents: tuple[AgentKind, ...] = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
    """The kinds of agent that are offered its tools."""
    trusted: bool = False
    """Whether its annotations are believed; otherwise each of its tools counts as `once`."""

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            msg = "needs either `command` (stdio) or `url` (HTTP)"
            raise ValueError(msg)
        return self


class Verdict(StrEnum):
    """What a policy rule says of an action."""

    ALLOW = "allow"
    """It may run."""
    APPROVE = "approve"
    """A person must approve it first."""
    DENY = "deny"
    """It never runs; the model is told why."""


class PolicyRule(Section):
    """One rule; it matches when all that it names matches. Patterns are globs."""

    verdict: Verdict
    """What it says of the actions that it matches."""
    agent: str = "*"
    """The agent's address."""
    tool: str = "*"
    """The tool's name."""
    effects: tuple[Effect, ...] = ()
    """The tool's effect; empty for any."""
    reason: str = ""
    """Told to the model on a denial, and to the person on an approval."""


class LogSettings(Section):
    """Where the log goes."""

    file: Path | None = None
    """A file that gets one JSON object a line; none by default."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is written."""
    format: Literal["auto", "json", "pretty", "off"] = "auto"
    """For the standard error stream: pretty on a terminal, JSON elsewhere; `off` writes nothing there."""


class BlackboardSettings(Section):
    """How much the blackboard keeps."""

    rows: int = Field(default=1000, ge=1)
    """Rows of one task's board; past that the oldest are dropped, and counted."""
    tasks: int = Field(default=100, ge=1)
    """Ended tasks whose boards are kept; past that the oldest go."""


class EventSettings(Section):
    """How much the event stream keeps."""

    kept: int = Field(default=10_000, ge=1)
    """Events that a late subscriber can still read."""
    queue: int = Field(default=1000, ge=1)
    """Events that wait for one slow subscriber; past that it is told how many it missed."""


class Settings(BaseSettings):
    """All settings. `Settings()` is all defaults and the environment; `Settings.load` reads a file too.

    A variable `CALLBOARD_LIMITS__STEPS=20` sets `limits.steps` and beats the file.
    """

    model_config = SettingsConfigDict(
        env_prefix="CALLBOARD_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    limits: Limits = Limits()
    """How much, how often, how long."""
    system: SystemSettings = SystemSettings()
    """Whether people are asked."""
    models: Models = Models()
    """Which model is behind which kind of agent."""
    prompts: Prompts = Prompts()
    """Prompt files that replace the shipped ones."""
    documents: Documents = Documents()
    """The documents server."""
    mcp_servers: dict[str, McpServer] = Field(default_factory=dict)
    """Third-party MCP servers, by name; `mcpServers`, as the ecosystem spells it, is read too."""
    policy: tuple[PolicyRule, ...] = ()
    """Rules for actions; the first that matches decides, and what none matches is allowed."""
    log: LogSettings = LogSettings()
    """Where the log goes."""
    blackboard: BlackboardSettings = BlackboardSettings()
    """How much the blackboard keeps."""
    events: EventSettings = EventSettings()
    """How much the event stream keeps."""
    _base: Path = PrivateAttr(default_factory=Path.cwd)

    @property
    def base(self) -> Path:
        """The folder that relative paths start from: the settings file's, else the current one."""
        return self._base

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take the ecosystem's spelling, and an empty section for its defaults."""
        return {_SPELLINGS.get(key, key): value for key, value in values.items() if value is not None}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the hook's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the hook's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let arguments beat the environment, and the environment the file."""
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, path: str | Path | None = None, *, base: Path | None = None, **changes: Any) -> Settings:  # noqa: ANN401 - whatever the fields take
        """Read a settings file (YAML) and the environment.

        Args:
            path: The file; without one there are only the environment and the defaults.
            base: The folder that relative paths start from; by default the file's, else the current one.
            changes: Sections that beat both.

        Raises:
            SettingsError: If the file can't be read, or something in it or in the environment is wrong. The text
                names each wrong key, and the nearest known one.
        """
        source: type[Settings] = cls
        where = "settings" if changes else "the environment"
        if path is not None:
            file = Path(path)
            _check_readable(file)
            where = str(file)
            base = base or file.resolve().parent
            config = SettingsConfigDict(yaml_file=file)
            source = type(cls.__name__, (cls,), {"model_config": config, "__doc__": cls.__doc__})
        _check_environment()
        try:
            loaded = source(**changes)
        except ValidationError as error:
            raise SettingsError(_explain(error, where)) from error
        except pydantic_settings.SettingsError as error:
            msg = f"the environment: {error}"
            raise SettingsError(msg) from error
        settings = cls.model_construct(
            _fields_set=loaded.model_fields_set, **{name: getattr(loaded, name) for name in cls.model_fields}
        )
        settings._base = base or Path.cwd()  # noqa: SLF001 - its own class
        return settings

    def path(self, path: str | Path) -> Path:
        """Place a path of the settings: a relative one starts at `base`."""
        return self.base / path


_SPELLINGS = {"mcpServers": "mcp_servers"}


def _check_readable(file: Path) -> None:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{file}: can't be read: {error.strerror}"
        raise SettingsError(msg) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        msg = f"{file}: is no YAML: {error.problem or error.context}{place}"
        raise SettingsError(msg) from None  # its text quotes the line, which may hold a secret
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        msg = f"{file}: is no YAML: {type(error).__name__}"
        raise SettingsError(msg) from None
    if content is None:
        return
    if not isinstance(content, dict):
        msg = f"{file}: holds a {type(content).__name__}, not keys with values"
        raise SettingsError(msg)
    odd = [key for key in content if not isinstance(key, str)]
    if odd:
        msg = f"{file}: {odd[0]!r}: a key must be text"
        raise SettingsError(msg)


def _check_environment() -> None:
    """Refuse a variable that means a section that there is not: it would be ignored silently."""
    prefix = Settings.model_config.get("env_prefix", "")
    for name in os.environ:
        section, nested, _ = name.upper().removeprefix(prefix).partition("__")
        if name.upper().startswith(prefix) and nested and section.lower() not in Settings.model_fields:
            near = difflib.get_close_matches(section.lower(), Settings.model_fields, n=1, cutoff=0.5)
            hint = f"; did you mean {prefix}{near[0].upper()}__...?" if near else ""
            msg = f"the environment: {name}: unknown section {section.lower()!r}{hint}"
            raise SettingsError(msg)


def _explain(error: ValidationError, where: str) -> str:
    lines: list[str] = []
    shown = {name: spelling for spelling, name in _SPELLINGS.items()}
    for problem in error.errors():
        path = [shown.get(str(part), str(part)) for part in problem["loc"]]
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(path[-1], _known_keys(path[:-1]), n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(_known_keys(path[:-1]))}"
            lines.append(f"{where}: {'.'.join(path)}: unknown key{hint}")
        else:
            lines.append(f"{where}: {'.'.join(path)}: {problem['msg']}")
    return "\n".join(lines)


def _known_keys(path: list[str]) -> list[str]:
    model: type[BaseModel] | None = Settings
    for part in path:
        if model is None:
            return []
        field = model.model_fields.get(_SPELLINGS.get(part, part))
        model = next(iter(_models_in(field.annotation)), None) if field is not None else model
    return list(model.model_fields) if model else []


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
