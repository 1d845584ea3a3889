"""The fleet's section of the settings."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from callboard.config._section import NamedPath, Section
from callboard.messages import ANY_MACHINE, Budget, LabelText, MachineName, TaskLimits

_SHARED = "shared:"
_OF_A_SERVER = (
    "url",
    "serve",
    "credentials",
    "monitor",
    "ca",
    "labels",
    "accept",
    "approvals",
    "files",
    "max_file_bytes",
)
"""The settings that have no effect beside `local`: those machines and their server have their own."""
_OF_LOCAL = re.compile(r"local-\d+")


def _as_server(value: str) -> str:
    """Check the address of a server.

    Raises:
        ValueError: If it has no host, or sends others' words unencrypted to another machine.
    """
    parts = urlsplit(value)
    if parts.scheme not in {"nats", "tls"} or not parts.hostname or parts.username or parts.password:
        msg = "write tls://HOST:PORT, or nats://127.0.0.1:PORT for a server on this machine; credentials have a setting"
        raise ValueError(msg)
    if parts.scheme == "nats" and not is_loopback(parts.hostname):
        msg = f"nats:// is not encrypted, and {parts.hostname} is another machine: write tls://"
        raise ValueError(msg)
    return value


def _as_name(value: str) -> str:
    """Check the name of this machine.

    Raises:
        ValueError: If it stands for any machine.
    """
    if value == ANY_MACHINE:
        msg = f"{ANY_MACHINE!r} stands for any machine of the fleet: choose another name"
        raise ValueError(msg)
    return value


def _as_monitor(value: str) -> str:
    """Check a monitoring address.

    Raises:
        ValueError: If it is none.
    """
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        msg = "write http://HOST:PORT"
        raise ValueError(msg)
    return value


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_name() -> str:
    """Make a machine's name of its host name."""
    letters = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in socket.gethostname())
    return letters.strip("-")[:40].strip("-") or "machine"


class AcceptSettings(Section):
    """Terms for the tasks of other machines, which only narrow them."""

    machines: Literal["all"] | tuple[MachineName, ...] = "all"
    """The machines whose work is done."""
    targets: tuple[Annotated[str, Field(min_length=1, max_length=400)], ...] = ("*",)
    """Patterns of the ids of targets that are offered, such as `excel:*`."""
    models: tuple[Annotated[str, Field(min_length=1, max_length=400)], ...] = ()
    """Patterns of the models that a task may name, such as `openai:gpt-5`; a task with another one is refused. Without
    any, the model of a task does not count here."""
    may_change: tuple[Annotated[str, Field(min_length=1, max_length=400)], ...] = ()
    """Patterns of files in the workspace that a task may name in its `may_change`; others are left out."""
    checks: bool = True
    """Whether a task may have checks and a judge; otherwise one that has is refused."""
    programs: bool = False
    """Whether the checks may call functions of this machine's (`program`)."""
    limits: TaskLimits | None = None
    """The largest limits of a task, besides `limits`."""
    budget: Budget | None = None
    """The largest budget of a task, besides `budget.task`."""

    @property
    def offers_all(self) -> bool:
        """True if all targets are offered, and work without one is done."""
        return self.targets == ("*",)


class FleetSettings(Section):
    """A fleet: machines that do each other's subtasks."""

    local: int = Field(default=0, ge=0, le=64)
    """The number of machines of this computer, each a process of its own, that do the subtasks for this supervisor: for
    work that one interpreter is too slow for. It starts them with a server of their own, and they end with it. They
    work on documents and on the surfaces of plug-ins; all other targets stay with this supervisor. 0: none."""
    local_parts: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = None
    """A function of the program, as `MODULE:NAME`, that each of these machines calls for the arguments of its
    `Supervisor.start`: a mapping with `servers`, `models`, `agents` or `checks`."""
    url: Annotated[str, AfterValidator(_as_server)] | None = None
    """The server of NATS that all machines connect to: `tls://HOST:4222`, or `nats://127.0.0.1:4222` on this machine.
    None: no fleet."""
    name: Annotated[MachineName, AfterValidator(_as_name)] | None = None
    """The name of this machine, which no other machine of the fleet may have. None: its host name."""
    credentials: NamedPath | None = None
    """A file with this machine's credentials for the server, as `nsc` writes them, or with the seed of its key."""
    monitor: Annotated[str, AfterValidator(_as_monitor)] | None = None
    """The server's monitoring address, such as `http://127.0.0.1:8222`: on this machine, or on the host of `url`.
    `callboard fleet` reads there whether the server writes to its disk before it confirms."""
    ca: NamedPath | None = None
    """A file with the certificates that the server's is checked with; None: the system's."""
    labels: dict[LabelText, LabelText] = Field(default_factory=dict)
    """Labels of this machine, such as `site: berlin`: tasks for targets of any machine may need some of them. For each
    label there is also a target: any machine that has it and offers all targets, whose HostAgent chooses there."""
    serve: bool = False
    """Whether this machine does subtasks of other machines. `callboard fleet serve` does so in any case."""
    slots: int = Field(default=8, ge=1, le=1_000)
    """The most tasks of other machines that are begun here at once; further ones wait in the queue."""
    on_machine_loss: Literal["wait", "ask", "fail"] = "wait"
    """The consequence for subtasks of a machine that is away: they wait for it, a person is asked whether to wait, or
    they fail. Work that is given up is cancelled there, when the machine is back; what it did before is not known."""
    accept: AcceptSettings = AcceptSettings()
    """The terms that tasks of other machines may set."""
    approvals: Literal["submitter", "here"] = "submitter"
    """The place where approvals for the work of other machines are asked: on the machine that submitted it, or on this
    one alone. With `here`, a verdict of the other machine is refused; it is told that the work waits."""
    files: Literal["store", "same"] | Annotated[str, StringConstraints(pattern=r"^shared:.")] = "store"
    """The way of files between machines. `store`: they are sent through the server. `shared:/mnt/fleet`: those above
    `max_file_bytes` are copied into a folder that the machines share, each under a path of its own. `same`: all
    machines have the same files under the same paths, as those of one computer have; nothing is sent, and results name
    the paths as they are."""
    max_file_bytes: int = Field(default=100_000_000, ge=0)
    """The largest file that is sent through the server, in bytes. A larger one stays where it is, without a shared
    folder."""

    @property
    def shared_folder(self) -> str | None:
        """The folder that the machines share."""
        return self.files.removeprefix(_SHARED) if self.files.startswith(_SHARED) else None

    @property
    def machine(self) -> str:
        """The name of this machine."""
        return self.name or _own_name()

    @property
    def has_tools_elsewhere(self) -> bool:
        """True if other processes here have tools that this one lacks.

        They are those of `local_parts`. In a machine of `local`, which serves without `url`, they are its supervisor's.
        """
        return self.local_parts is not None or (self.serve and self.url is None)

    @model_validator(mode="after")
    def _names_one_server(self) -> Self:
        if self.local:
            self._check_local()
        if self.local_parts is not None and not self.local:
            msg = "`local_parts` is for the machines that `local` starts: set their number"
            raise ValueError(msg)
        if self.serve and self.url is None:
            msg = "`serve` needs the address of the fleet's server: set `url`"
            raise ValueError(msg)
        host = urlsplit(self.monitor or "").hostname
        if host is not None and not is_loopback(host) and host != urlsplit(self.url or "").hostname:
            msg = f"`monitor` is at {host}, which is neither this machine nor the host of `url`"
            raise ValueError(msg)
        return self

    def _check_local(self) -> None:
        fields = type(self).model_fields
        idle = [
            f"`{name}`"
            for name in _OF_A_SERVER
            if getattr(self, name) != fields[name].get_default(call_default_factory=True)
        ]
        if idle:
            names = " and ".join(idle)
            msg = f"`local` starts machines with a server and settings of their own: leave {names} out, or `local`"
            raise ValueError(msg)
        if _OF_LOCAL.fullmatch(self.machine):
            msg = f"{self.machine} is the name of a machine that `local` starts: set another `name` for this one"
            raise ValueError(msg)
