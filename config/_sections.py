"""The parts of the settings that say what there is, and where things go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, field_serializer, model_validator

from callboard.config._options import Options
from callboard.config._secrets import in_arguments, in_url, masked
from callboard.config._section import Section, Span
from callboard.messages import AgentKind, Effect, Hazard, KindName

if TYPE_CHECKING:
    from collections.abc import Iterable


_LONGEST_NAME = 100
"""The most characters of a server's name."""


DeviceSerial = Annotated[str, Field(pattern=r"^[^\s/*?\[\]]{1,100}$")]
"""What an Android device is called: a part of an address, which rules match."""


class SystemSettings(Section):
    """Whether people are asked."""

    ask_question: bool = True
    """Whether PENDING asks; otherwise live models are not offered it, and who asks is told that nobody will answer."""
    safe_guard: bool = True
    """Whether approvals are asked for; otherwise what would need one runs. Denials always hold."""


class Models(Section):
    """The model of each kind of agent: `openai:gpt-5`, `scripted:FILE` …; what a host program passes in beats it.

    Further keys are kinds of agents of the host program's own.
    """

    model_config = ConfigDict(extra="allow")
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
    """The operators' model; it has to see pictures."""
    record: Path | None = None
    """A file to which every call of a model is added: what it was shown, as a fingerprint and in short, and what it
    answered. `recorded:FILE` plays it back."""

    def of(self, kind: str) -> str | None:
        """Give the model's name for a kind of agent."""
        name: str | None = getattr(self, kind) if kind in set(AgentKind) else self.further.get(kind)
        return name

    @property
    def further(self) -> dict[str, str | None]:
        """The models of kinds that do not ship."""
        return self.__pydantic_extra__


class Prompts(Section):
    """Prompt files that replace the shipped ones. Further keys are kinds of agents of the host program's own."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Path | None] = Field(init=False)

    host: Path | None = None
    """The HostAgents' prompt."""
    app: Path | None = None
    """The AppAgents' prompt."""
    mobile: Path | None = None
    """The MobileAgents' prompt."""
    linux: Path | None = None
    """The LinuxAgents' prompt."""
    operator: Path | None = None
    """The operators' prompt."""

    def of(self, kind: str) -> Path | None:
        """Give the file of a kind of agent."""
        path: Path | None = getattr(self, kind) if kind in set(AgentKind) else self.further.get(kind)
        return path

    @property
    def further(self) -> dict[str, Path | None]:
        """The files of kinds that do not ship."""
        return self.__pydantic_extra__


class Documents(Section):
    """The documents server: a folder of Word and Excel files."""

    workspace: Path | None = None
    """The folder. Nothing outside of it is ever read or written. None: there are no documents."""
    max_bytes: int = Field(default=50_000_000, ge=1)
    """The largest document that is opened, in bytes."""

    @property
    def wanted(self) -> bool:
        """Whether there is such a surface."""
        return self.workspace is not None


class Desktop(Section):
    """The Linux desktop: windows of running applications."""

    display: str | None = Field(default=None, pattern=r"^(private|user|:\d+(\.\d+)?)$")
    """`private`: a display of its own that nobody sees. `user`: that of the person who is logged in; or the name of a
    display, such as `:1`. None: there is no desktop."""
    size: str = Field(default="1280x800", pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")
    """The width and height of a private display, in pixels."""
    grace: Span = 60.0
    """How long a private desktop stays, with its windows, when the program is killed: the next one takes it over. What
    a task has opened there is closed after the same time, counted from the end of its conversation's last task."""
    folder: Path | None = None
    """Where applications start. None: the program's working directory."""
    applications: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further applications: a command by name, in which `%f` stands for a file to open."""
    installed: bool = True
    """Whether the applications that are installed are offered, too."""

    @property
    def wanted(self) -> bool:
        """Whether there is such a surface."""
        return self.display is not None


class Android(Section):
    """Android devices, for MobileAgents."""

    devices: Literal["all"] | tuple[DeviceSerial, ...] | None = None
    """The serials of the devices that may be used, as `adb devices` lists them. One with a port is connected to over
    the network: `192.168.1.7:5555`. `all`: those that the adb server knows. None: there are none."""
    adb: Path | None = None
    """The program adb. None: that in `ANDROID_HOME`, or on the path."""
    port: int = Field(default=5037, ge=1, le=65_535)
    """Where the adb server listens on this machine. One is started there if none runs."""

    @property
    def wanted(self) -> bool:
        """Whether there is such a surface."""
        return bool(self.devices)


class ShellSettings(Section):
    """One shell, for LinuxAgents."""

    cwd: Path
    """Its workspace: the folder where it starts, and that its commands may change. On another machine it counts from
    the home of the user there."""
    ssh: str | None = Field(default=None, pattern=r"^[^@\s:/-][^@\s:/]*@[^@\s:/-][^@\s:/]*(:\d{1,5})?$")
    """The other machine on which it is, as `user@host` or `user@host:port`. None: this machine."""
    known_hosts: Path = Path("~/.ssh/known_hosts")
    """The file with the keys of known machines. One that is not in it is refused."""
    key: Path | None = None
    """The file with the private key for the other machine. None: those in `~/.ssh`, and of the SSH agent."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """What its commands have in their environment, beside a fixed path and language; never shown. Of this program's own
    environment they have nothing."""
    network: bool = False
    """Whether isolated commands have the network."""
    isolated: bool | None = None
    """Whether commands see their workspace and the system's programs alone, by bubblewrap. None: where that runs."""
    grace: Span = 60.0
    """How long a command goes on when the program is killed, and no other one takes over. On another machine it goes on
    to its end or time limit: there, how long the connection may be lost until the outcome is in doubt."""

    @model_validator(mode="after")
    def _is_not_isolated_elsewhere(self) -> Self:
        if self.ssh is not None and (self.isolated or self.network):
            msg = "commands on another machine are not isolated by Callboard: leave out `isolated` and `network`"
            raise ValueError(msg)
        return self


class McpTool(Section):
    """The operator's settings of one tool; they beat the server's annotations."""

    effect: Effect | None = None
    """Its effect; by default its annotations say it, if the server is trusted."""
    hazards: tuple[Hazard, ...] | None = None
    """Its hazards; an empty list means none. By default its annotations say them."""
    offered: bool = True
    """Whether agents have it; one that is not offered can't be called."""
    seconds: Span | None = None
    """The longest that one call of it may take; by default `limits.command_seconds`."""


def _named(name: str) -> str:
    """Refuse a server's name that can be no part of an address, no folder's name, or that rules could not name."""
    odd = sorted({letter for letter in name if letter in "/\\*?[]" or not letter.isprintable()})
    if odd or not name.strip(" .") or len(name) > _LONGEST_NAME:
        empty = f"is empty, only dots, or longer than {_LONGEST_NAME} characters"
        why = f"has {', '.join(map(repr, odd))}" if odd else empty
        msg = (
            f"the name {why}; a server's name becomes a part of addresses, which rules match, and its folder's name: "
            "choose another one"
        )
        raise ValueError(msg)
    return name


ServerName = Annotated[str, AfterValidator(_named)]
"""What a server is called in the settings."""


class McpServer(Section):
    """A third-party MCP server, as in the ecosystem's `mcpServers` form."""

    command: str | None = None
    """The program to start, for stdio."""
    args: tuple[str, ...] = ()
    """Its arguments; what looks like a key or a password is never shown."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Variables added to its environment; never shown."""
    cwd: Path | None = None
    """The folder it starts in."""
    url: str | None = None
    """Its address, for streamable HTTP; its user, password and query are never shown."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers for HTTP; never shown."""
    start_seconds: Span = 30.0
    """The longest that connecting to it may take; servers start side by side."""
    optional: bool = False
    """Whether the supervisor starts without it if it can't be started; its tools are missing then, with a warning."""
    max_bytes: int = Field(default=10_000_000, ge=1000)
    """The longest message that is taken from it; a longer one ends the connection."""
    surface: Literal["both"] | bool = True
    """`true`: the server is a target, `app/mcp/NAME`, and its tools can be called there alone. `false`: it is no
    target, and agents have its tools wherever they work. `both`: it is a target, and they have them everywhere."""
    agents: tuple[KindName, ...] | None = None
    """The kinds of agent that work on its target, by default `app`, and that have its tools everywhere, by default
    `app`, `mobile` and `linux`."""
    trusted: bool = False
    """Whether its annotations are believed; otherwise each of its tools counts as `once`."""

    tools: dict[str, McpTool] = Field(default_factory=dict)
    """Settings of single tools, by the name that the server gives them."""

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
        """The kinds of agent that work on its target; empty if it is none."""
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
        shown = {"url": self._without_secrets(self.url), "args": self._without_keys(self.args)}
        return [(name, shown.get(name or "", value)) for name, value in super().__repr_args__()]


def _apart(servers: dict[str, McpServer]) -> dict[str, McpServer]:
    """Refuse names of which one goes on with a dot: tools of both servers could have one name."""
    for name in servers:
        other = next((each for each in servers if each.startswith(f"{name}.")), None)
        if other is not None:
            msg = (
                f"a tool of {name!r} could have the name of one of {other!r}, since a tool's name is its server's, "
                "a dot, and its own: choose another name for one of them"
            )
            raise ValueError(msg)
    return servers


McpServers = Annotated[dict[ServerName, McpServer], AfterValidator(_apart)]
"""Third-party MCP servers, by name."""


class SurfacePlugin(Section):
    """A surface of a plug-in. NAME is what its server is called: the targets, `callboard tools` and errors say it."""

    plugin: str = ""
    """The name of the plug-in's entry point, or `DISTRIBUTION:NAME`; by default the key, NAME."""
    options: Options = Field(default_factory=dict)
    """What the plug-in takes; its distribution says what that is. Texts with a name like a key's are never shown."""


class LogSettings(Section):
    """Where the log goes."""

    file: Path | None = None
    """A file that gets one JSON object a line; none by default. Opened anew when it was moved away."""
    max_bytes: int | None = Field(default=50_000_000, ge=1000)
    """How large the file may grow before a new one is begun, in bytes; none: as large as it gets."""
    backups: int = Field(default=3, ge=0)
    """How many earlier files are kept: `<file>.1` is the latest of them."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that file and stream get. Of the logger `callboard` the host program sets the level."""
    stream: Literal["off", "auto", "json", "pretty"] = "off"
    """What the standard error stream gets: nothing, or lines; with `auto` pretty ones on a terminal, JSON elsewhere."""


class BlackboardSettings(Section):
    """How much the blackboard keeps."""

    rows: int = Field(default=1000, ge=1)
    """Rows of one task's board; past that the oldest are dropped, and counted."""
    tasks: int = Field(default=100, ge=1)
    """Ended tasks whose boards are kept; past that the oldest go."""
    shown: int = Field(default=20, ge=0)
    """Entries that each agent is shown of its conversation, the latest: earlier requests, answered questions, notes."""


class EventSettings(Section):
    """How much the event stream keeps."""

    kept: int = Field(default=4_000, ge=1)
    """Events that a late subscriber can still read."""
    queue: int = Field(default=1000, ge=1)
    """Events that wait for one slow subscriber; past that it is told how many it missed."""


class JournalSettings(Section):
    """What survives the process: tasks, messages, answers and results, in one file."""

    path: Path | None = None
    """The file; its pictures stand in a folder beside it. None: nothing survives the process."""
    durability: Literal["full", "process"] = "full"
    """`full`: what was accepted or done is on the disk before anything depends on it, and survives a loss of power.
    `process`: it is with the operating system, and survives a killed process, but not a loss of power."""
    days: float | None = Field(default=30.0, gt=0, allow_inf_nan=False)
    """How long an ended task is kept, in days; none: by size alone. Tasks that are not over are always kept. A time
    between two processes counts as a quarter of these days at most: nobody can tell it from a clock that is wrong."""
    max_bytes: int | None = Field(default=1_000_000_000, ge=1)
    """The size, pictures included, past which the tasks that ended first are dropped; none: it may grow."""
    in_doubt: Literal["ask", "fail"] = "ask"
    """What to do if nobody can tell whether an action was done before a crash: ask a person, or fail the work."""
