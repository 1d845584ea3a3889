"""Sections of the settings: models, prompts, surfaces, MCP servers, log, journal."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, field_serializer, model_validator

from callboard.config._plugin_options import Options
from callboard.config._secrets_in_urls import in_arguments, in_url, masked
from callboard.config._section import NamedPath, Section, Span
from callboard.messages import AgentKind, Effect, Hazard, KindName, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterable


_LONGEST_NAME = 100
"""The most characters of the name of a surface or MCP server."""
_TOKEN = re.compile(r"[!-~]{16,1000}")


DeviceSerial = Annotated[str, Field(pattern=r"^[^\s/*?\[\]]{1,100}$")]
"""The serial of an Android device, which is a part of an address that rules match."""


class SystemSettings(Section):
    """Questions, approvals and proposed checks."""

    ask_question: bool = True
    """Whether agents may ask questions. Otherwise live models are not offered PENDING, and an agent that asks learns
    that there will be no answer."""
    safe_guard: bool = True
    """Whether approvals are asked for; otherwise actions that need one run without it. Denials always hold."""
    propose_checks: bool = False
    """Whether a HostAgent's first answer may name checks for its task. They are read at the end and shown to people,
    refuse nothing, and never count for `TaskResult.verified`."""


class Models(Section):
    """The model of each kind of agent.

    A model is named as `openai:gpt-5`, `scripted:FILE` …; the host program's arguments take precedence. Further keys
    are the host program's own kinds of agents.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | None] = Field(init=False)

    host: str | None = None
    """The HostAgents' model."""
    app: str | None = None
    """The AppAgents' model."""
    mobile: str | None = None
    """The MobileAgents' model."""
    linux: str | None = None
    """The LinuxAgents' model."""
    operator: str | None = None
    """The operators' model; it has to support pictures."""
    record: NamedPath | None = None
    """A file to which every model call is appended: a fingerprint and a summary of the request, and the answer.
    `recorded:FILE` plays it back."""

    def of(self, kind: str) -> str | None:
        """Return the model's name for a kind of agent."""
        name: str | None = getattr(self, kind) if kind in set(AgentKind) else self.further.get(kind)
        return name

    @property
    def further(self) -> dict[str, str | None]:
        """The models of kinds that do not ship."""
        return self.__pydantic_extra__


class Prompts(Section):
    """Prompt files that replace the shipped ones.

    Further keys are the host program's own kinds of agents.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, NamedPath | None] = Field(init=False)

    host: NamedPath | None = None
    """The HostAgents' prompt."""
    app: NamedPath | None = None
    """The AppAgents' prompt."""
    mobile: NamedPath | None = None
    """The MobileAgents' prompt."""
    linux: NamedPath | None = None
    """The LinuxAgents' prompt."""
    operator: NamedPath | None = None
    """The operators' prompt."""

    def of(self, kind: str) -> Path | None:
        """Return the file of a kind of agent."""
        path: Path | None = getattr(self, kind) if kind in set(AgentKind) else self.further.get(kind)
        return path

    @property
    def further(self) -> dict[str, Path | None]:
        """The files of kinds that do not ship."""
        return self.__pydantic_extra__


class Documents(Section):
    """The documents surface: a folder of Word, Excel, PowerPoint and other files."""

    workspace: NamedPath | None = None
    """The folder. Nothing outside of it is ever read or written. None: no documents."""
    max_bytes: int = Field(default=50_000_000, ge=1)
    """The largest document that is opened, in bytes."""
    compute_cells: int = Field(default=200_000, ge=0)
    """The most filled cells of a workbook whose formulas are computed after an edit. In a larger one the outdated
    results are removed, and the program that opens it next computes them."""
    cache_mb: int = Field(default=64, ge=0)
    """The most memory for what is known about versions of large files, in megabytes. The least recently used is
    forgotten first, and read again when a call needs it."""
    max_csv_bytes: int = Field(default=2_000_000_000, ge=1)
    """The largest CSV file that is read, in bytes. Above `documents.max_bytes` it is read in parts, and not written."""
    max_csv_cells: int = Field(default=2_000_000, ge=1)
    """The most cells of a CSV file that are held in memory: of a file that is written, or of rows that are read at
    once."""

    @property
    def wanted(self) -> bool:
        """True if this surface is configured."""
        return self.workspace is not None


class Desktop(Section):
    """The Linux desktop: windows of running applications."""

    display: str | None = Field(default=None, pattern=r"^(private|user|:\d+(\.\d+)?)$")
    """`private`: an invisible display of its own. `user`: the display of the logged-in person. Or the name of a
    display, such as `:1`. None: no desktop."""
    size: str = Field(default="1280x800", pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")
    """The width and height of a private display, in pixels."""
    grace: Span = 60.0
    """The time that a private desktop and its windows survive a killed program, so that the next one can take them
    over. Windows opened by a task are closed after the same time, from the end of their conversation's last task."""
    folder: NamedPath | None = None
    """The working directory of applications. None: that of the program."""
    applications: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further applications: a command by name, in which `%f` stands for a file to open."""
    installed: bool = True
    """Whether installed applications are offered, too."""

    @property
    def wanted(self) -> bool:
        """True if this surface is configured."""
        return self.display is not None


class Android(Section):
    """Android devices, for MobileAgents."""

    devices: Literal["all"] | tuple[DeviceSerial, ...] | None = None
    """The serials of the devices that may be used, as `adb devices` lists them. A serial with a port is connected to
    over the network: `192.168.1.7:5555`. `all`: those that the adb server knows. None: no devices."""
    adb: NamedPath | None = None
    """The program adb. None: the one in `ANDROID_HOME`, or on the path."""
    port: int = Field(default=5037, ge=1, le=65_535)
    """The port of the adb server on this machine. A server is started there if none runs."""

    @property
    def wanted(self) -> bool:
        """True if this surface is configured."""
        return bool(self.devices)


class ShellSettings(Section):
    """One shell, for LinuxAgents."""

    cwd: NamedPath
    """Its workspace: the folder where it starts, and that its commands may change. On a remote machine, relative to the
    user's home there."""
    ssh: str | None = Field(default=None, pattern=r"^[^@\s:/-][^@\s:/]*@[^@\s:/-][^@\s:/]*(:\d{1,5})?$")
    """Its remote machine, as `user@host` or `user@host:port`. None: this machine."""
    known_hosts: NamedPath = Path("~/.ssh/known_hosts")
    """The file with the keys of known machines. Others are refused."""
    key: NamedPath | None = None
    """The file with the private key for the remote machine. None: those in `~/.ssh`, and of the SSH agent."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """The environment of its commands, in addition to a fixed path and language; never shown. They inherit nothing from
    this program's environment."""
    network: bool = False
    """Whether isolated commands have network access."""
    isolated: bool | None = None
    """Whether commands see only their workspace and the system's programs, by bubblewrap. None: if that works."""
    grace: Span = 60.0
    """The time that a command survives a killed program, if no other one takes over. On a remote machine, commands run
    to their end or time limit; there, the time that the connection may be lost before the outcome is in doubt."""

    @model_validator(mode="after")
    def _is_not_isolated_elsewhere(self) -> Self:
        if self.ssh is not None and (self.isolated or self.network):
            msg = "commands on another machine are not isolated by Callboard: leave out `isolated` and `network`"
            raise ValueError(msg)
        return self


class McpTool(Section):
    """The operator's settings of one tool.

    They take precedence over the server's annotations.
    """

    effect: Effect | None = None
    """Its effect; by default from its annotations, if the server is trusted."""
    hazards: tuple[Hazard, ...] | None = None
    """Its hazards; an empty list means none. By default from its annotations."""
    offered: bool = True
    """Whether agents have it; otherwise it can't be called."""
    seconds: Span | None = None
    """The longest that one call of it may take; by default `limits.command_seconds`."""


def _named(name: str) -> str:
    """Refuse a name that addresses, folders or rules can't contain."""
    bad_letters = sorted({letter for letter in name if letter in "/\\*?[]" or not letter.isprintable()})
    if bad_letters or not name.strip(" .") or len(name) > _LONGEST_NAME:
        empty = f"is empty, only dots, or longer than {_LONGEST_NAME} characters"
        why = f"has {', '.join(map(repr, bad_letters))}" if bad_letters else empty
        msg = (
            f"the name {why}; it becomes a part of addresses, which rules match, and the name of a folder: "
            "choose another one"
        )
        raise ValueError(msg)
    return name


SurfaceName = Annotated[str, AfterValidator(_named)]
"""The name of a surface or MCP server in the settings."""


class McpServer(Section):
    """A third-party MCP server, as in the ecosystem's `mcpServers` form."""

    command: str | None = None
    """The program to start, for stdio."""
    args: tuple[str, ...] = ()
    """Its arguments; those that look like keys or passwords are never shown."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Variables added to its environment; never shown."""
    cwd: NamedPath | None = None
    """The folder it starts in."""
    url: str | None = None
    """Its address, for streamable HTTP; its user, password and query are never shown."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers for HTTP; never shown."""
    start_seconds: Span = 30.0
    """The longest that connecting to it may take; MCP servers start concurrently."""
    optional: bool = False
    """Whether the supervisor starts without it if it can't be started; then its tools are missing, with a warning."""
    max_bytes: int = Field(default=10_000_000, ge=1000)
    """The longest message that it may send; a longer one ends the connection."""
    surface: Literal["both"] | bool = True
    """`true`: the server is a target, `app/mcp/NAME`, and its tools can only be called there. `false`: it is not a
    target, and agents have its tools everywhere. `both`: it is a target, and agents have its tools everywhere."""
    agents: tuple[KindName, ...] | None = None
    """The kinds of agent that work on its target, by default `app`, and that have its tools everywhere, by default
    `app`, `mobile` and `linux`."""
    trusted: bool = False
    """Whether its annotations are trusted; otherwise each of its tools counts as `once`."""

    tools: dict[str, McpTool] = Field(default_factory=dict)
    """Settings of single tools, by the server's name for them."""

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            msg = "needs either `command` (stdio) or `url` (HTTP)"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _has_agents(self) -> Self:
        if self.surface is True and AgentKind.HOST in (self.agents or ()):
            msg = "`agents`: a HostAgent works on no target; with `surface: both` or `false` it has the server's tools"
            raise ValueError(msg)
        if self.surface and not self.on_target:
            msg = "`agents` names no kind of agent that could work on its target; `surface: false` makes it none"
            raise ValueError(msg)
        return self

    @property
    def on_target(self) -> tuple[str, ...]:
        """The kinds of agent that work on its target.

        Empty if it is not a target.
        """
        named = (AgentKind.APP,) if self.agents is None else self.agents
        return tuple(kind for kind in named if self.surface and kind != AgentKind.HOST)

    @property
    def everywhere(self) -> tuple[str, ...]:
        """The kinds of agent that have its tools wherever they work."""
        if self.surface is True:
            return ()
        return (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX) if self.agents is None else self.agents

    @field_serializer("url")
    def _without_secrets(self, url: str | None) -> str | None:
        return None if url is None else masked(url, in_url(url))

    @field_serializer("args")
    def _without_keys(self, args: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(masked(argument, spans) for argument, spans in zip(args, in_arguments(args), strict=True))

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        redacted_fields = {"url": self._without_secrets(self.url), "args": self._without_keys(self.args)}
        return [(name, redacted_fields.get(name or "", value)) for name, value in super().__repr_args__()]


def _apart(servers: dict[str, McpServer]) -> dict[str, McpServer]:
    """Refuse a name that is another's followed by a dot.

    Tools of both could share a name.
    """
    for name in servers:
        longer = next((server for server in servers if server.startswith(f"{name}.")), None)
        if longer is not None:
            msg = (
                f"a tool of {name!r} could have the name of one of {longer!r}, since a tool's name is its server's, "
                "a dot, and its own: choose another name for one of them"
            )
            raise ValueError(msg)
    return servers


McpServers = Annotated[dict[SurfaceName, McpServer], AfterValidator(_apart)]
"""Third-party MCP servers, by name."""


class SurfacePlugin(Section):
    """A surface of a plug-in.

    NAME is the surface's name, in targets, `callboard tools` and errors.
    """

    plugin: str = ""
    """The name of the plug-in's entry point, or `DISTRIBUTION:NAME`; by default the key, NAME."""
    options: Options = Field(default_factory=dict)
    """The plug-in's options, documented by its distribution. Texts with a name like a key's are never shown."""


class LogSettings(Section):
    """The log's destinations, levels and sizes."""

    file: NamedPath | None = None
    """A file with one JSON object a line; none by default. It is reopened after another program has moved it."""
    max_bytes: int | None = Field(default=50_000_000, ge=1000)
    """The size in bytes at which the file is rotated; none: it is never rotated."""
    backups: int = Field(default=3, ge=0)
    """The number of rotated files that are kept; `<file>.1` is the latest."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The minimum level for file and stream. The host program sets the level of the logger `callboard`."""
    stream: Literal["off", "auto", "json", "pretty"] = "off"
    """The format on the standard error stream. `off`: none. `auto`: pretty on a terminal, otherwise JSON."""


class BlackboardSettings(Section):
    """Limits of the blackboard."""

    rows: int = Field(default=1000, ge=1)
    """The most rows of one task's board; past that the oldest are dropped and counted."""
    tasks: int = Field(default=100, ge=1)
    """The most ended tasks whose boards are kept; past that the oldest are dropped."""
    shown: int = Field(default=20, ge=0)
    """The most entries of its conversation that an agent sees, the latest: requests, answered questions, notes."""


class EventSettings(Section):
    """Limits of the event stream."""

    kept: int = Field(default=4_000, ge=1)
    """The most past events that a late subscriber can read."""
    queue: int = Field(default=1000, ge=1)
    """The most events queued for one slow subscriber; past that it learns how many it missed."""


class JournalSettings(Section):
    """The journal: tasks, messages, answers and results in one file.

    It survives the process.
    """

    path: NamedPath | None = None
    """The file; its pictures, and the versions of files from before a task changed them, are in folders next to it.
    None: nothing survives the process."""
    durability: Literal["full", "process"] = "full"
    """`full`: write-ahead records reach the disk before anything depends on them, and survive a power failure.
    `process`: they reach the operating system, and survive a killed process, but not a power failure."""
    days: float | None = Field(default=30.0, gt=0, allow_inf_nan=False)
    """The days that an ended task is kept; none: limited by size only. Tasks that are not over are always kept. A time
    between two processes counts as at most a quarter of these days, and as none if the clock went back."""
    max_bytes: int | None = Field(default=1_000_000_000, ge=1)
    """The size in bytes, including pictures, past which the tasks that ended first are dropped; none: no limit. With
    `budget.daily`, the tasks that ended on the current day are kept, also past these days and this size."""
    in_doubt: Literal["ask", "fail"] = "ask"
    """The handling of an action whose outcome before a crash is unknown: ask a person, or fail the run."""


GenAiConventions = Literal["0.1.0", "1.41.0"]
"""The versions of OpenTelemetry's conventions for generative AI, the current one first."""


class ObserveSettings(Section):
    """Optional traces and metrics for monitoring, in addition to the log."""

    traces: bool = False
    """Whether each task becomes an OpenTelemetry trace, sent to the host program's tracer provider;
    needs `pip install '.[otel]'`."""
    gen_ai_conventions: GenAiConventions = "0.1.0"
    """The version of OpenTelemetry's conventions for generative AI that names the attributes of traces. `1.41.0` is for
    displays that expect the earlier `gen_ai.workflow.name` and `gen_ai.agent.id`."""
    metrics: bool = False
    """Whether tasks, steps, calls, tokens and failures are counted, for `Supervisor.metrics`; needs
    `pip install '.[prometheus]'`."""
    metrics_token: SecretStr | None = None
    """The bearer token with which a monitoring program may read `/metrics` of the console: 16 to 1,000 visible
    characters of ASCII. None: `/metrics` does not exist. Never shown."""

    @model_validator(mode="after")
    def _usable_token(self) -> Self:
        if self.metrics_token is None:
            return self
        if not _TOKEN.fullmatch(self.metrics_token.get_secret_value()):
            msg = "`metrics_token` needs 16 to 1,000 characters of ASCII, without spaces and line ends"
            raise ValueError(msg)
        if not self.metrics:
            msg = "`metrics_token` is for metrics: set `metrics: true`, too"
            raise ValueError(msg)
        return self


Delay = Annotated[Seconds, Field(ge=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A time that a clock can wait, in seconds; may be 0."""


class RoutineSettings(Section):
    """Stop rules of routines, and the promotion of their repairs."""

    misses: int = Field(default=3, ge=0, le=1_000)
    """The most runs in a row in which a routine may miss a step; after one more it is refused, with the reason, until
    it is edited or a repair is promoted. They are counted in the journal. 0: it is never refused."""
    wait_seconds: Delay = Field(default=5.0, le=600)
    """The longest that a step waits for the screen that it was recorded on, in seconds: a routine acts faster than a
    model or a person. Only surfaces that change by themselves are waited for."""
    promote_after: int = Field(default=0, ge=0, le=100)
    """The number of verified runs with the same repair after which `callboard run` promotes it without a person. A
    repair that brings new places or texts is never promoted so. 0: only a person promotes repairs."""


class SupervisionSettings(Section):
    """Restarts of crashed agents, and hang detection."""

    intensity: int = Field(default=3, ge=0)
    """The most restarts of one agent within `period`; after one more crash, its subtask ends as an error. The same
    limit holds for restarts of, and reconnections to, an MCP server."""
    period: Span = 60.0
    """The period of `intensity`, in seconds of an agent's life; delays before restarts do not count."""
    backoff: Delay = 0.1
    """The delay before the first restart, in seconds; it doubles with each further one, plus random jitter."""
    max_backoff: Delay = 10.0
    """The longest delay, in seconds."""
    hung_seconds: Span = 5.0
    """Seconds after which a job past its deadline, or an event loop that does not respond, counts as hung."""
    stall_seconds: Span = 60.0
    """Seconds within which a run is found that has no job, waits for nothing, and has no place in a queue. It is
    reported as `run.stalled`, and restarted from the journal, or ended as an error."""

    @model_validator(mode="after")
    def _backoff_in_order(self) -> Self:
        if self.max_backoff < self.backoff:
            msg = "`max_backoff` is shorter than `backoff`"
            raise ValueError(msg)
        return self
