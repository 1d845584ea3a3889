"""The shell surface: each shell of the settings is a target."""

from __future__ import annotations

import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import install_command
from callboard.messages import Coverage, Effect, Hazard, Look, Observation, Probe, Target, TargetKind
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect
from callboard.surfaces.shell._command_tools import CommandTools
from callboard.surfaces.shell._file_tools import FileTools
from callboard.surfaces.shell._isolation import why_not
from callboard.surfaces.shell._local import LocalShell
from callboard.surfaces.shell.judging import UNSEEN, Judgement, command_form, file_kind, judge, named_files, privileged

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.config import ShellSettings
    from callboard.messages import Foreseen, Intent
    from callboard.surfaces._stage import Stage
    from callboard.surfaces.shell._base_shell import BaseShell

_APART = "read_command"
_COMMANDS = frozenset({"run", "start", _APART})
_FILES = frozenset({"read_file", "write_file", "edit_file", "list_dir", "find", "search"})
_WRITING = frozenset({"write_file", "edit_file"})
_LITERAL = re.compile(r"[^*?\[]*")
_NAMES = 200
_SIZE = re.compile(r" \(\d+\)$")
_END_SECONDS = 5.0


class ShellSurface(Server):
    """The surface of shells on this and other machines.

    Args:
        shells: The settings of each shell, by its name.
    """

    name = "shells"
    resource_kinds = ("file",)
    settles = False  # the child processes of a command end with it

    def __init__(self, shells: Mapping[str, ShellSettings]) -> None:
        self._settings = dict(shells)
        self._shells: dict[str, BaseShell] = {}
        self._commands = CommandTools(self._shell)
        self._parts = (self._commands, FileTools(self._shell))

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require the workspaces and bash.

        Bubblewrap, for the isolation of commands, and tree-sitter, for their analysis, are optional.
        """
        shells = options.get("shells", {})
        local = {name: shell for name, shell in shells.items() if shell.ssh is None}
        requirements = [
            *(
                Need(what=f"the folder {shell.cwd} of the shell {name!r}", met=shell.cwd.is_dir())
                for name, shell in local.items()
            ),
            *(
                Need(what=f"the file {shell.known_hosts} with the key of {shell.ssh}", met=shell.known_hosts.is_file())
                for name, shell in shells.items()
                if name not in local
            ),
        ]
        if len(local) < len(shells):
            requirements.append(Need.package("asyncssh", install_command("ssh")))
        if local:
            why = why_not()
            what = f"isolation of commands{f' ({why})' if why else ''}"
            required = any(shell.isolated for shell in local.values())
            requirements.append(Need.program("bash", "apt-get install bash"))
            requirements.append(Need.package("tree_sitter_bash", install_command("shell"), optional=True))
            command = "apt-get install bubblewrap" if shutil.which("bwrap") is None else ""  # else `why` has the remedy
            requirements.append(Need(what=what, met=not why, command=command, optional=not required))
        return requirements

    def open(self, stage: Stage) -> None:
        """Open the shells, with their saved state and running commands."""
        for name, settings in self._settings.items():
            data_folder = stage.folder / name
            if settings.ssh is not None:
                from callboard.surfaces.shell._remote import RemoteShell  # noqa: PLC0415 - an extra

                self._shells[name] = RemoteShell(name, data_folder, settings, lasting=stage.lasting)
                continue
            self._shells[name] = LocalShell(
                name,
                data_folder,
                settings.cwd,
                environment={key: value.get_secret_value() for key, value in settings.env.items()},
                network=settings.network,
                isolated=settings.isolated,
                grace=settings.grace if stage.lasting else 0.0,
            )

    def close(self) -> None:
        """Kill all running commands with their child processes."""
        shells = tuple(self._shells.values())
        self._shells.clear()
        if not shells:
            return
        with ThreadPoolExecutor(len(shells)) as side_by_side:
            for shell in shells:
                side_by_side.submit(shell.end, _END_SECONDS)
        for shell in shells:
            shell.close()

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the command tools and the file tools."""
        return tuple(entry for part in self._parts for entry in collect(part))

    def targets(self) -> tuple[Target, ...]:
        """List the shells."""
        return tuple(
            Target(
                id=name,
                name=f"shell {name}",
                kind=TargetKind.SHELL,
                address=f"linux/{name}",
                server=self.name,
                binds={"shell": name},
            )
            for name in self._settings
        )

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Observe a shell: its working directory, files and background commands."""
        shell = self._shell(target.id)
        cwd = shell.here()
        entries, remaining_count = shell.files.entries(cwd, _NAMES)
        names = [entry.partition(" -> ")[0] if " -> " in entry else _SIZE.sub("", entry) for entry in entries]
        facts: dict[str, Any] = {
            "cwd": str(cwd),
            "workspace": str(shell.workspace),
            "isolation": "commands see the workspace and the system's programs alone"
            if shell.isolated
            else f"none: commands can do all that this user can ({shell.why_not_isolated})",
            "environment": sorted(shell.state.environment),
            "background": {handle: shell.job(handle).stage().value for handle in shell.state.jobs},
        }
        text = "\n".join((*names, *([f"… and {remaining_count} more"] if remaining_count > 0 else ())))
        content = repr((facts, text, shell.state.last, sorted(shell.state.environment.items())))
        return Observation(window=facts, text=text, fingerprint=hashlib.sha256(content.encode()).hexdigest())

    def hazards(
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], made: Collection[str]
    ) -> set[Hazard]:
        """Return the hazards of a call."""
        shell = self._shell(target.id)
        if tool in _COMMANDS:
            refused = privileged(str(arguments["command"]))  # the tool refuses it, so no approval is needed
            return set() if refused else set(self._judgement(shell, tool, arguments, made).hazards)
        if tool not in _FILES:
            return set()
        path = shell.inside(str(arguments.get("path", "")))
        outside = set() if shell.is_inside(path) else {Hazard.LEAVES}
        replaces = tool in _WRITING and shell.files.exists(path) and str(path) not in made
        return outside | ({Hazard.OVERWRITES} if replaces else set())

    def effect(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> Effect | None:
        """Return a command's effect, as far as its text shows it."""
        if tool not in {"run", _APART}:
            return None
        shell = self._shell(target.id)
        command_effect = self._judgement(shell, tool, arguments).effect
        if tool == _APART:
            return command_effect
        moves = command_effect is not Effect.ONCE and shell.inside(str(arguments.get("cwd", ""))) != shell.here()
        return Effect.ONCE if moves else command_effect

    def resources(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Collection[str]:
        """Name the files and folders that a call touches."""
        if target is not None and tool in _COMMANDS:
            return self._judgement(self._shell(target.id), tool, arguments).resources
        if target is None or tool not in _FILES:
            return (UNKNOWN,) if tool in _COMMANDS else ()
        shell = self._shell(target.id)
        return (f"{_machine(shell)}{shell.inside(str(arguments.get('path', '')))}",)

    def form(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Return a command's words, with programs, operators and options as keys."""
        return command_form(str(arguments["command"])) if tool in _COMMANDS else None

    def relies_on(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the kinds of the files and folders that a call names."""
        shell = self._shell(target.id)
        folder = shell.workspace / str(arguments.get("cwd", "")) if tool == _APART else None
        return self._named(shell, tool, arguments, folder or shell.inside(str(arguments.get("cwd", ""))))

    def leaves(
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], answer: JsonValue
    ) -> dict[str, JsonValue]:
        """Return a command's exit code, form of JSON, and kinds of files.

        Those of a background command are not made yet.
        """
        shell = self._shell(target.id)
        facts: dict[str, JsonValue] = {}
        if isinstance(answer, dict) and "exit_code" in answer:
            facts["exit code"] = answer["exit_code"]
        if isinstance(answer, dict) and "value" in answer:
            facts["JSON output"] = _json_kind(answer["value"])
        if tool in {"run", _APART} and shell.began_in is not None:
            facts |= self._named(shell, tool, arguments, shell.began_in)
        elif tool in _WRITING:
            facts |= self._named(shell, tool, arguments, shell.here())
        return facts

    @staticmethod
    def _named(shell: BaseShell, tool: str, arguments: Mapping[str, JsonValue], cwd: Path) -> dict[str, JsonValue]:
        if tool in _FILES:
            path = str(arguments.get("path", ""))
            kind = file_kind(shell.disk(), str(shell.inside(path))) if path else ""
            return {path: kind} if kind else {}
        if tool not in _COMMANDS:
            return {}
        environment = shell.own_environment if tool == _APART else shell.environment
        return {**named_files(str(arguments["command"]), cwd=cwd, disk=shell.disk(), environment=environment)}

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Compare a pattern with a file or a folder's content."""
        base_coverage = super().coverage(target, pattern, resource)
        shell = self._shells.get(target.id) if target is not None else None
        if (
            base_coverage is Coverage.ALL
            or shell is None
            or not shell.may_be_folder(resource.removeprefix(_machine(shell)))
        ):
            return base_coverage
        inside, begins = f"{resource.rstrip('/')}/", _LITERAL.match(pattern)
        start = begins[0] if begins and not pattern.startswith("re:") else ""
        return Coverage.PART if start.startswith(inside) or inside.startswith(start) else Coverage.NONE

    def canonical(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Resolve the path in the arguments."""
        if target is None or tool not in _FILES:
            return arguments
        return {**arguments, "path": str(self._shell(target.id).inside(str(arguments.get("path", ""))))}

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Ask the command's process, or compare the file's bytes."""
        if target is None:
            return Probe.UNKNOWN
        shell = self._shell(target.id)
        try:
            outcome = self._commands.probe(shell, intent)
            if outcome is not None:
                return outcome
            path = foreseen[-1].path.removeprefix(f"{shell.host}:") if foreseen else ""
            now = shell.files.digest(Path(path)) if path else ""
        except ToolError:  # the machine can't be reached
            return Probe.UNKNOWN
        if not foreseen:
            return Probe.NOT_DONE if intent.tool in _WRITING else super().probe(target, intent, foreseen, fingerprint)
        outcomes = {foreseen[-1].before: Probe.NOT_DONE, foreseen[-1].after: Probe.DONE}
        return outcomes.get(now, Probe.UNKNOWN)

    def _judgement(
        self, shell: BaseShell, tool: str, arguments: Mapping[str, JsonValue], own_files: Collection[str] = ()
    ) -> Judgement:
        folder, environment = str(arguments.get("cwd", "")), shell.environment
        if tool == _APART:
            folder, environment = str(shell.workspace / folder), shell.own_environment
        try:
            cwd, disk = shell.inside(folder), shell.disk()
        except ToolError:
            return UNSEEN
        command = str(arguments["command"])
        judgement = judge(command, cwd=cwd, disk=disk, environment=environment, own_files=own_files)
        named = tuple(resource.replace("file:", _machine(shell), 1) for resource in judgement.resources)
        return replace(judgement, resources=named)

    def _shell(self, name: str) -> BaseShell:
        if name not in self._shells:
            msg = f"there is no shell {name!r}"
            raise ToolError(msg)
        return self._shells[name]


def _machine(shell: BaseShell) -> str:
    """Return the prefix of the names of a shell's files in rules."""
    return f"file:ssh://{shell.host}" if shell.host else "file:"


def _json_kind(value: JsonValue) -> str:
    """Name the form of a JSON value."""
    match value:
        case dict():
            return f"an object with {', '.join(sorted(value)) or 'no members'}"
        case list():
            return "a list"
        case _:
            return "a text" if isinstance(value, str) else "a number, true, false or null"
