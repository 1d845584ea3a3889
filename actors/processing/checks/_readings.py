"""Readings of surfaces: read-only calls under the policy, and controls."""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.commands import damage, digests_of, find_target, join_files
from callboard.actors.processing._collect import COMPARED, in_time, on_lane
from callboard.actors.processing._permit import ruling
from callboard.actors.processing._services import digest
from callboard.actors.processing.checks._matchers import UnreadableError, value_at
from callboard.actors.states import evolve
from callboard.config import Verdict, fits
from callboard.messages import (
    Action,
    AgentKind,
    Command,
    CommandType,
    Effect,
    Observation,
    ResultStatus,
    SupervisorStoppedError,
    TargetKind,
    agent_kind,
)
from callboard.models import LONGEST_WAIT
from callboard.surfaces import Server, ToolError, observed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.actors.commands import BoundTool, Tools
    from callboard.actors.processing._context import Context
    from callboard.actors.processing.checks._matchers import Missing
    from callboard.actors.runtime import Lease
    from callboard.actors.states import Run
    from callboard.messages import Check, Control, ControlQuery, PageQuery, Reading, Seconds, Target

_T = TypeVar("_T")
_NO_DOCUMENTS = frozenset({TargetKind.APPLICATION, TargetKind.DEVICE, TargetKind.SHELL})
PART_TOOL = "read_part"
"""The tool of a surface that reads `cells`, `table`, `text` and `chart`."""
_PAUSE = 0.05
_PAGE_ADDRESS = "url"
"""The kind of the resources of a surface of pages, and the fact about a window that has the address."""
_SHELL_TOOL = "run"
_APART_TOOL = "read_command"
"""The tool of a surface that runs a shell's command apart from all others."""


def check_running(lease: Lease) -> None:
    """Check that the supervisor does not stop.

    Raises:
        SupervisorStoppedError: If it does.
    """
    if lease.suspended:
        msg = "the supervisor stops; the next one on the journal runs the checks"
        raise SupervisorStoppedError(msg)


class Reader:
    """The readings of one pass over all checks.

    It keeps the fingerprints of the surfaces that it read.

    Args:
        context: The context of the step.
        run: The run that finishes.
        program: Whether the host program named the checks. A model's own reach only the tools that models may call,
            are ruled as an action of the target's agent, and get only secrets that are granted to models.
    """

    def __init__(self, context: Context, run: Run, *, program: bool) -> None:
        self.context = context
        self.run = run
        self._program = program
        self._targets: tuple[Target, ...] | None = None
        self._files: Mapping[str, Path] | None = None
        self._marks: dict[str, tuple[Server, Target, str]] = {}
        self._digests: dict[str, str | None] = {}
        """The digests of the files that were compared; None for one that is not there."""
        self._all_files = False
        self.restless: set[str] = set()
        """The ids of the surfaces that were read and may change by themselves."""
        self.unmarked: set[str] = set()
        """The ids of the shells that were read: their fingerprints say nothing about files and programs."""

    async def value(self, reading: Reading) -> JsonValue | Missing:
        """Return the value of a reading.

        Raises:
            UnreadableError: If it can't be read.
        """
        return value_at(await self._whole(reading), reading.path)

    async def _whole(self, reading: Reading) -> JsonValue:
        if reading.control is not None:
            return await self._control(reading.control)
        if reading.page is not None:
            return await self._page(reading.page)
        if reading.command is not None:
            return await self._command(reading.command, reading.args, reading.target)
        if reading.tool is not None:
            return await self._tool(reading.tool, reading.args, reading.target)
        document, _, part = str(getattr(reading, reading.form)).partition("!")
        return await self.part(document, reading.form, part, reading.args)

    async def part(
        self, document: str, form: str, part: str = "", args: Mapping[str, JsonValue] | None = None
    ) -> JsonValue:
        """Read a part of a document."""
        target = await self._document(document)
        arguments: dict[str, JsonValue] = {"form": form, "part": part, "args": dict(args or {})}
        tools = self._tools(target)
        if PART_TOOL not in tools:
            msg = f"{document!r} has no `{form}`: its surface has no tool {PART_TOOL!r}; name one of its tools"
            raise UnreadableError(msg)
        return await self._call(tools, PART_TOOL, arguments, target)

    async def _tool(self, name: str, arguments: Mapping[str, JsonValue], target_name: str | None) -> JsonValue:
        target = None if target_name is None else await self._target(target_name)
        tools = self._callable(target)
        if name not in tools:
            listed = ", ".join(sorted(tools)) or "none"
            msg = f"{target_name or 'a HostAgent'} has no tool {name!r}; there are: {listed}"
            raise UnreadableError(msg)
        return await self._call(tools, name, dict(arguments), target)

    async def _command(self, command: str, more: Mapping[str, JsonValue], shell_name: str | None) -> JsonValue:
        if shell_name is None:
            shells = [target for target in await self.listed() if target.kind is TargetKind.SHELL]
            if len(shells) != 1:
                names = ", ".join(shell.id for shell in shells) or "none"
                msg = f"`target` must name the shell of a command; there are: {names}"
                raise UnreadableError(msg)
            shell_name = shells[0].id
        answer = await self._run(shell_name, {**more, "command": command})
        if not isinstance(answer, dict) or "exit_code" not in answer:
            msg = f"{shell_name!r} is no shell: {_SHELL_TOOL} gave no exit code"
            raise UnreadableError(msg)
        if answer["exit_code"] != 0:
            msg = f"the command ended with the exit code {answer['exit_code']}: {answer.get('stderr', '')}"
            raise UnreadableError(msg)
        return answer["value"] if "value" in answer else str(answer.get("stdout", "")).removesuffix("\n")

    async def _run(self, shell_name: str, arguments: dict[str, JsonValue]) -> JsonValue:
        """Run a command in the shell's own folder and environment.

        What the agent did there before, such as ``cd``, does not count. The policy's rules for `run` do.
        """
        target = await self._target(shell_name)
        callable_tools, tools = self._callable(target), self._tools(target)
        if _SHELL_TOOL not in callable_tools or _APART_TOOL not in tools:
            return await self._tool(_SHELL_TOOL, arguments, shell_name)
        run_tool, action = callable_tools[_SHELL_TOOL], self._action(_SHELL_TOOL, arguments)
        if (problem := run_tool.check(arguments)) is not None:
            raise UnreadableError(problem)
        await self._check_allowed(run_tool, action, target)
        return await self._call(tools, _APART_TOOL, arguments, target)

    def _seconds(self, allowed: Seconds) -> Seconds:
        return allowed if self._program else min(allowed, LONGEST_WAIT)

    def _action(self, name: str, arguments: dict[str, JsonValue]) -> Action:
        return Action(tool=name, arguments=arguments, program=self._program)

    def _tools(self, target: Target | None) -> Tools:
        kind = AgentKind.HOST if target is None else agent_kind(target.address)
        return self.context.services.toolbox.tools(kind, target)

    def _callable(self, target: Target | None) -> Tools:
        """Return the tools that a check may name."""
        kind = AgentKind.HOST if target is None else agent_kind(target.address)
        toolbox = self.context.services.toolbox
        return toolbox.tools(kind, target) if self._program else toolbox.actions(kind, target)

    async def _call(self, tools: Tools, name: str, arguments: dict[str, JsonValue], target: Target | None) -> JsonValue:
        """Call a tool that only reads, if the policy allows it."""
        context, run, tool = self.context, self.run, tools[name]
        problem = tool.check(arguments)
        if problem is not None:
            raise UnreadableError(problem)
        effect = await self._check_allowed(tool, self._action(name, arguments), target)
        if effect is not Effect.READ:
            msg = f"{name} may change something, and a check only reads"
            raise UnreadableError(msg)
        if target is not None:
            await self._mark(target)
        context.meter.amounts["commands"] += 1
        command = Command(
            task_id=run.assign.task_id,
            run_id=run.assign.run_id,
            token=run.assign.token,
            call_id=f"{run.assign.run_id}.{run.steps + 1}.check-{uuid.uuid4().hex}",  # no tool may answer from before
            state=run.status,
            step=run.steps + 1,
            type=CommandType.DATA_COLLECTION,
            tool=name,
            parameters=arguments,
            program=self._program,
            effect=Effect.READ,
            timeout=self._seconds(tool.seconds or run.limits.command_seconds),
        )
        result = await context.services.dispatcher.run(command, tools, context.lease, redacted=not self._program)
        if result.status is not ResultStatus.SUCCESS:
            raise UnreadableError(result.error)
        return result.value

    async def _check_allowed(self, tool: BoundTool, action: Action, target: Target | None) -> Effect:
        """Return the effect of a call that the policy allows.

        Raises:
            UnreadableError: If the policy does not allow it.
        """
        context, observation, run = self.context, self.context.meter.seen or Observation(), self.run
        if target is not None and not self._program:
            run = evolve(run, assign=run.assign.model_copy(update={"address": target.address}))
        ruled, facts = await ruling(context, run, observation, action, tool, approved="", results=())
        if ruled.verdict is not Verdict.ALLOW:
            how = "denies it" if ruled.verdict is Verdict.DENY else "wants an approval"
            msg = f"{action.tool} was not called, because the policy {how}: {ruled.reason}"
            raise UnreadableError(msg)
        return facts.effect or tool.info.effect

    async def _control(self, query: ControlQuery) -> JsonValue:
        """Find the one control that a query describes."""
        target = await self._target(query.target)
        surface = self.context.services.toolbox.surface(target)
        await self._mark(target)
        observation = await on_lane(
            self.context, surface, target, functools.partial(observed, surface, target, COMPARED)
        )
        matches = [control for control in observation.controls if _fits(control, query)]
        if len(matches) != 1:
            kind = query.kind or "control"
            name = f" called {query.name!r}" if query.name else ""
            listed = ", ".join(repr(candidate.name) for candidate in (matches or observation.controls)[:20])
            msg = (
                f"{query.target} has {len(matches) or 'no'} {kind}{'s' * (len(matches) > 1)}{name}; there are: {listed}"
            )
            raise UnreadableError(msg)
        control_data: JsonValue = matches[0].model_dump(mode="json")
        return control_data

    async def _page(self, query: PageQuery) -> JsonValue:
        """Find the one page of a browser that a query describes."""
        pages: list[dict[str, JsonValue]] = []
        for target in await self.listed():
            surface = self.context.services.toolbox.surface(target)
            if _PAGE_ADDRESS not in surface.resource_kinds or target.kind is TargetKind.APPLICATION:
                continue
            await self._mark(target)
            look = functools.partial(observed, surface, target, COMPARED)
            observation = await on_lane(self.context, surface, target, look)
            facts = {name: observation.window.get(name, "") for name in (_PAGE_ADDRESS, "title")}
            pages.append({"target": target.id, **facts, "text": observation.text})
        fitting_pages = [page for page in pages if fits(query.url, str(page[_PAGE_ADDRESS]))]
        with_text = [page for page in fitting_pages if _words(query.contains) in _words(str(page["text"]))]
        if len(with_text) != 1:
            text = f" with the text {query.contains!r}" if query.contains and fitting_pages else ""
            listed = ", ".join(str(page[_PAGE_ADDRESS]) for page in pages[:20]) or "none"
            msg = f"{len(with_text) or 'no'} open pages fit {query.url!r}{text}; there are: {listed}"
            raise UnreadableError(msg)
        return dict(with_text[0])

    async def is_document(self, name: str) -> bool:
        """Return whether a target is the document at this path."""
        return any(target.id == name for target in await self.listed())

    async def _document(self, path: str) -> Target:
        """Find a document by its whole path.

        Several folders may have a file of the same name.
        """
        targets = await self.listed()
        target = next((target for target in targets if target.id == path), None)
        if target is None:
            paths = [candidate.id for candidate in targets if candidate.kind not in _NO_DOCUMENTS]
            msg = f"there is no document {path!r}{self._others(paths)}"
            raise UnreadableError(msg)
        return target

    async def _target(self, target_name: str) -> Target:
        """Find a target that the task may see.

        It is found by its id or address, or by a name that no other one has.
        """
        own_target, listed = self.run.assign.target, await self.listed()
        if own_target is not None and own_target.native.id not in {target.id for target in listed}:
            listed = (*listed, own_target.native)
        target = find_target(listed, target_name)
        if target is None:
            windows = [listed_target for listed_target in listed if listed_target.kind is TargetKind.WINDOW]
            fitting_windows = [window for window in windows if fits(target_name, window.name)]
            target = fitting_windows[0] if len(fitting_windows) == 1 and "*" in target_name else None
        if target is None or target.kind is TargetKind.APPLICATION:
            named = [candidate.id for candidate in listed if candidate.kind is not TargetKind.APPLICATION]
            msg = f"there is no {target_name!r}{self._others(named)}"
            raise UnreadableError(msg)
        return target

    def _others(self, ids: Sequence[str]) -> str:
        """List targets for an error.

        The program's checks of a task with one target name no others: its caller may not know of them.
        """
        if self._program and self.run.assign.target is not None:
            return ""
        return f"; there are: {', '.join(ids[:20]) or 'none'}"

    async def listed(self) -> tuple[Target, ...]:
        """Return the targets that the task may see."""
        if self._targets is None:
            assign = self.run.assign
            candidates: list[Target] = []
            for surface in self.context.services.toolbox.surfaces:
                candidates += await on_lane(self.context, surface, None, surface.targets)
            self._targets = tuple(target for target in candidates if target.open_to(assign.task_id, assign.session))
        return self._targets

    async def windows(self) -> set[str]:
        """Return the ids of windows on screens, open or closed."""
        toolbox, listed = self.context.services.toolbox, await self.listed()
        windows = {target.id for target in listed if _on_screen(toolbox.surface(target), target)}
        if any(surface.pictures for surface in toolbox.surfaces):
            listed_ids = {target.id for target in listed}
            worked = {name for done in self.run.own_subtasks for name in done.changed if name not in listed_ids}
            windows |= {name for name in worked if not name.startswith("/") and name not in self._tools(None)}
        return windows

    async def files(self) -> Mapping[str, Path]:
        """Return the files of all surfaces, by name."""
        if self._files is None:
            surfaces = self.context.services.toolbox.surfaces
            self._files = join_files(
                [await on_lane(self.context, surface, None, surface.files) for surface in surfaces]
            )
        return self._files

    async def _mark(self, target: Target) -> None:
        """Note the fingerprint of a surface before its first reading.

        One that may change by itself is only named. While another agent works on a screen, it is waited for.
        """
        surface = self.context.services.toolbox.surface(target)
        if surface.settles or surface.pictures:
            await self._free(target)
        if surface.settles:
            self.restless.add(target.id)
            return
        if target.kind is TargetKind.SHELL:
            self.unmarked.add(target.id)
        if target.address not in self._marks:
            self._marks[target.address] = (surface, target, await self._fingerprint(surface, target))

    async def changed(self) -> list[str]:
        """Return the surfaces and files that changed since they were read."""
        marks = self._marks.values()
        changed = [target.id for surface, target, mark in marks if await self._fingerprint(surface, target) != mark]
        if not self._digests and not self._all_files:
            return changed
        self._files = None
        now = await self._digests_of(None if self._all_files else tuple(self._digests))
        names = self._digests.keys() | now.keys() if self._all_files else self._digests.keys()
        return changed + sorted(name for name in names if self._digests.get(name) != now.get(name))

    async def _fingerprint(self, surface: Server, target: Target) -> str:
        try:
            if type(surface).fingerprint is not Server.fingerprint:
                return await on_lane(self.context, surface, target, functools.partial(surface.fingerprint, target))
            look = functools.partial(observed, surface, target, COMPARED)
            observation = await on_lane(self.context, surface, target, look)
        except ToolError as error:
            return f"unreadable: {error}"
        return observation.fingerprint or digest(
            observation.controls, observation.text, sorted(observation.window.items())
        )

    async def _free(self, target: Target) -> None:
        """Wait until no other agent works on a surface."""
        lease, end = self.context.lease, time.monotonic() + self.run.limits.command_seconds
        while (holder := lease.holder_of(target.lease_key)) and holder != self.run.assign.address:
            check_running(lease)
            if time.monotonic() > end:
                msg = f"{holder} works on {target.id}"
                raise UnreadableError(msg)
            await asyncio.sleep(_PAUSE)

    def expectation(self, check: Check) -> Check:
        """Fill in the secrets in a check's expectation."""
        expected = {name: getattr(check, name) for name in ("equals", "contains", "one_of")}
        return check.model_copy(update=self.filled(expected)) if self._program else check

    async def open(self, name: str) -> None:
        """Check that a file without a surface can be opened.

        Raises:
            UnreadableError: If it is damaged.
        """
        path = (await self.files())[name]
        problem = await self.context.services.lanes.run("opening of files", lambda: damage(path))
        if problem:
            msg = f"{name} can't be opened: {problem}"
            raise UnreadableError(msg)

    def filled(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Fill in the secrets of a function's arguments."""
        return self.context.services.secrets.fill(self.run.assign.task_id, dict(arguments), None)

    async def in_time(self, work: Awaitable[_T], what: str) -> _T:
        """Await some work with the limit of a tool call."""
        return await in_time(self.context, work, what)

    async def digests(self, names: Collection[str] | None) -> dict[str, str]:
        """Return the digests of all files, or of those named.

        Each file is read once; `changed` compares the digests with later ones.
        """
        unread = None if names is None else [name for name in names if name not in self._digests]
        if not self._all_files and (unread is None or unread):
            digests = await self._digests_of(unread)
            self._digests = dict.fromkeys(unread or ()) | digests | self._digests
            self._all_files = unread is None
        return {name: mark for name, mark in self._digests.items() if mark and (names is None or name in names)}

    async def _digests_of(self, names: Collection[str] | None) -> dict[str, str]:
        files = await self.files()
        return await self.context.services.lanes.run("digests of files", lambda: digests_of(files, names))


def _on_screen(surface: Server, target: Target) -> bool:
    return surface.pictures and target.kind is TargetKind.WINDOW


def _words(text: str) -> str:
    return " ".join(text.split())


def _fits(control: Control, query: ControlQuery) -> bool:
    same_name = not query.name or " ".join(control.name.split()) == " ".join(query.name.split())
    return same_name and (not query.kind or control.kind == query.kind)
