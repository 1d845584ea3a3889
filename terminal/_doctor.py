"""The command `doctor`: working and missing parts, and commands to install them."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.actors.commands import program_needed
from callboard.actors.processing import named_agents
from callboard.config import Settings, all_check_programs, described, install_command, load_prompts, load_skills
from callboard.history import plain
from callboard.journal import JournalReader
from callboard.messages import AgentKind, JournalError, SettingsError
from callboard.models import named_models
from callboard.surfaces import SHIPPED, shipped_surface, surface_of
from callboard.terminal._journals import print_json
from callboard.terminal._text import BAD, GOOD, print_hanging
from callboard.terminal._tool_list import mcp_offers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from callboard.surfaces import NamedSurface, Need


_OURSELVES = "callboard"
_DEVELOPERS = {"dev", "local-llm", "site", "test"}
"""Extras for work on the package itself."""
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;\s*(?P<marker>.*))?")
_OF_EXTRA = re.compile(r"""\(?\s*extra\s*==\s*['"](?P<extra>[^'"]+)['"]\s*\)?""")
"""A marker that requires an extra alone; one with further conditions is not evaluated."""


def extras() -> tuple[str, ...]:
    """Return the names of the package's extras, without those for its developers."""
    named = importlib.metadata.metadata(_OURSELVES).get_all("Provides-Extra") or []
    return tuple(sorted(set(named) - _DEVELOPERS))


def missing_distributions(extra: str) -> tuple[str, ...]:
    """Return the distributions that an extra requires and that are not installed."""
    return tuple(dict.fromkeys(_missing(_OURSELVES, extra, set())))


def _missing(distribution: str, extra: str, visited: set[tuple[str, str]]) -> list[str]:
    """Follow the requirements of an extra; versions are left to pip."""
    if (distribution, extra) in visited:
        return []
    visited.add((distribution, extra))
    try:
        requirements = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return [distribution]
    missing = []
    for requirement in filter(None, map(_REQUIREMENT.match, requirements)):
        marker = _OF_EXTRA.fullmatch(requirement["marker"] or "")
        if marker is not None and _normal(marker["extra"]) == _normal(extra):
            extras = [part.strip() for part in (requirement["extras"] or "").split(",")]
            missing += [name for part in extras for name in _missing(requirement["name"], part, visited)]
    return missing


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    part: str
    """The checked part: a surface, a model, an extra …"""
    name: str
    works: bool | None
    """None: unknown without starting or reaching it."""
    named: bool = True
    """Whether the settings name it; a failure matters only then."""
    told: tuple[str, ...] = ()
    """Missing parts, and remarks."""
    commands: tuple[str, ...] = ()
    """The commands that install the missing parts."""


def findings(file: Path | None, *, online: bool) -> Iterator[Finding]:
    """Check everything.

    Nothing is sent to another host, and no program started, unless `online`.

    Args:
        file: The settings file; None: the environment and the defaults.
        online: Whether MCP servers are started, and reached, too.
    """
    version = importlib.metadata.version("callboard")
    system = f"Python {platform.python_version()} on {platform.system()}"
    yield Finding(part="program", name=f"callboard {version}", works=True, told=(system,))
    name = "the environment and the defaults" if file is None else str(file)
    settings: Settings | None = None
    try:
        settings = Settings.load(file)
    except SettingsError as error:
        yield Finding(part="settings", name=name, works=False, told=tuple(str(error).splitlines()))
    if settings is not None:
        yield Finding(part="settings", name=name, works=True)
        empty = dict.fromkeys(_kinds(settings), "")
        prompts = _tried("prompts", "of the settings", lambda: load_prompts(settings, empty))
        if not prompts.works:
            yield prompts
        if settings.skills:
            yield _tried("skills", "of the settings", lambda: load_skills(settings))
        yield from _journal(settings)
    yield from _surfaces(settings)
    if settings is not None:
        yield from _servers(settings, online=online)
        yield from _models(settings)
        yield from _agents(settings)
        yield from _check_programs(settings)
        yield from _fleet(settings)
    yield from _extras(settings)


def _kinds(settings: Settings) -> tuple[str, ...]:
    return (*AgentKind, *settings.plugin_kinds)


def _tried(part: str, name: str, check: Callable[[], object], remarks: tuple[str, ...] = ()) -> Finding:
    """Check that an object can be made."""
    try:
        check()
    except SettingsError as error:
        return Finding(part=part, name=name, works=False, told=tuple(str(error).splitlines()), commands=error.commands)
    return Finding(part=part, name=name, works=True, told=remarks)


def _journal(settings: Settings) -> Iterator[Finding]:
    if settings.journal.path is None:
        return
    path = settings.path(settings.journal.path)
    details, works = [], True
    try:
        if path.exists() and path.stat().st_size:
            with JournalReader.open(path, older=True) as reader:
                details.append(f"version {reader.version}")
                holder = reader.holder()
            details += [] if holder is None else [f"in use by process {holder.pid} on {holder.host}"]
        else:
            details.append("the first start creates it")
    except (JournalError, OSError) as error:
        details.append(str(error))
        works = False
    folder = next(parent for parent in path.absolute().parents if parent.exists())  # missing folders are created
    places = [] if os.access(folder, os.W_OK | os.X_OK) else [folder]
    places += [path] if path.exists() and not os.access(path, os.W_OK) else []
    details += [f"{unwritable} can't be written by this user" for unwritable in places]
    yield Finding(part="journal", name=str(path), works=works and not places, told=tuple(details))


def _surfaces(settings: Settings | None) -> Iterator[Finding]:
    """Check the surfaces that ship, named or not, and the named plug-ins."""
    if settings is None:
        yield from (_surface(shipped_surface(name), Settings.model_construct(), named=False) for name in SHIPPED)
        return
    for name in dict.fromkeys((*SHIPPED, *settings.surfaces)):
        try:
            surface = surface_of(name, settings)
        except SettingsError as error:
            yield Finding(part="surface", name=name, works=False, told=(str(error),))
            continue
        yield _surface(surface or shipped_surface(name), settings, named=surface is not None)


def _surface(surface: NamedSurface, settings: Settings, *, named: bool) -> Finding:
    """Check a surface's requirements.

    A surface that is named and complete is made, to check its options.
    """
    owner = () if surface.name in SHIPPED else (f"a plug-in of {described(surface.entry)}",)
    needs: list[Need] = []
    finding = _tried("surface", surface.name, lambda: needs.extend(surface.needs(settings)), owner)
    missing = [need for need in needs if not need.met]
    lacking = any(not need.optional for need in missing)
    if finding.works and named and not lacking:
        finding = _tried("surface", surface.name, lambda: surface.make(settings), owner)
    remarks = tuple(
        f"{need.what} is missing{', but only some features need it' if need.optional else ''}" for need in missing
    )
    return Finding(
        part="surface",
        name=surface.name,
        works=finding.works and not lacking,
        named=named,
        told=(*finding.told, *remarks, *(() if named else ("not configured",))),
        commands=tuple(dict.fromkeys((*finding.commands, *(need.command for need in missing if need.command)))),
    )


def _servers(settings: Settings, *, online: bool) -> Iterator[Finding]:
    """Check third parties' MCP servers.

    The check is whether their program exists, or with `online` whether they answer.
    """
    answers = {server.name: server for server in mcp_offers(settings, settings.mcp_servers)} if online else {}
    for name, server in settings.mcp_servers.items():
        missing = [need for need in program_needed(server) if not need.met]
        answer = answers.get(name)
        remarks = tuple(f"{need.what} is missing" for need in missing)
        if not remarks and answer is not None:
            remarks = (answer.failed or f"{len(answer.tools)} tools",)
        yield Finding(
            part="MCP server",
            name=name,
            works=False if missing else None if answer is None else not answer.failed,
            named=not server.optional,
            told=remarks or (f"was not {'started' if server.url is None else 'reached'}; --online does that",),
            commands=tuple(need.command for need in missing if need.command),
        )


def _models(settings: Settings) -> Iterator[Finding]:
    """Make each model that is named; nothing is sent."""
    for kind in _kinds(settings):
        name = settings.models.of(kind)
        if name is not None:
            make = partial(named_models, settings, [kind])
            yield _tried("model", f"{kind}: {name}", make, ("can be created; it was not called",))


def _agents(settings: Settings) -> Iterator[Finding]:
    if settings.agents:
        yield _tried("agents", ", ".join(settings.agents), lambda: named_agents(settings))


def _check_programs(settings: Settings) -> Iterator[Finding]:
    if names := settings.check_programs:
        yield _tried("check programs", ", ".join(names), lambda: all_check_programs(settings, {}))


def _fleet(settings: Settings) -> Iterator[Finding]:
    """Check the server of `fleet.local`, or the connection to that of `fleet.url`.

    Nothing is started or sent.
    """
    local, url = settings.fleet.local, settings.fleet.url
    if not local and url is None:
        return
    from callboard.fleet import check_library, find_server

    def connection() -> None:
        check_library()
        from callboard.fleet import make_engine

        make_engine(settings)

    if local:
        yield _tried("fleet", f"local: {local}", find_server, ("nats-server is there; it was not started",))
    else:
        yield _tried("fleet", f"url: {url}", connection, ("the server was not reached; callboard fleet does that",))


def _extras(settings: Settings | None) -> Iterator[Finding]:
    """Check the extras, except those that models and surfaces check themselves."""
    observe = Settings.model_construct().observe if settings is None else settings.observe
    switches = {"otel": observe.traces, "prometheus": observe.metrics}
    for extra in extras():
        missing = missing_distributions(extra)
        yield Finding(
            part="extra",
            name=extra,
            works=not missing,
            named=switches.get(extra, False),
            told=tuple(f"the package {name!r} is missing" for name in missing),
            commands=(install_command(extra),) if missing else (),
        )


_INDENT = 8
"""The width of the column before the text: the longest status, and a space."""


def examine(console: Console, file: Path | None, *, online: bool, as_json: bool) -> bool:
    """Print the results. Returns whether everything works that is configured."""
    results: list[Finding] = []
    for finding in findings(file, online=online):
        results.append(finding)
        if not as_json:
            _print_finding(console, finding)
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in results])
    bad = [finding for finding in results if finding.named and finding.works is False]
    if not as_json:
        summary = f"{bad[0].part} {bad[0].name} does not work" if len(bad) == 1 else f"{len(bad)} things do not work"
        console.print()
        print_hanging(console, Text(plain(summary) if bad else "everything that is configured works here"), 0)
    return not bad


def _print_finding(console: Console, finding: Finding) -> None:
    state, style = ("fails", BAD) if finding.named else ("missing", "yellow")
    if finding.works is not False:
        state, style = ("works" if finding.named else "ready", GOOD) if finding.works else ("?", "yellow")
    text = Text(state.ljust(_INDENT), style).append(f"{finding.part} {plain(finding.name)}", "default")
    if len(finding.told) == 1:
        text.append(f": {plain(finding.told[0])}", "default" if finding.works is False else "dim")
    print_hanging(console, text, 0, _INDENT)
    for line in finding.told if len(finding.told) > 1 else ():
        print_hanging(console, Text(plain(line)), _INDENT, 2)
    for command in finding.commands:
        console.print(Text(" " * _INDENT).append(plain(command), "bold"), soft_wrap=True)
