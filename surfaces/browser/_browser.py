"""Browser surface: each tab is a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from callboard.config import NetworkSettings, install_command
from callboard.messages import AgentKind, Control, Hazard, Look, Observation, Probe, SettingsError, Target, TargetKind
from callboard.network import NetworkRules
from callboard.surfaces import current_call
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect
from callboard.surfaces.browser._call_facts import judge, judged_facts, touched_addresses
from callboard.surfaces.browser._control_tools import ControlTools
from callboard.surfaces.browser._launch import PLAYWRIGHT, BrowserLaunch, find_browser
from callboard.surfaces.browser._navigation_tools import NavigationTools, full_address, open_address
from callboard.surfaces.browser._network_guard import DICTIONARY_HOST
from callboard.surfaces.browser._open_browser import OpenBrowser
from callboard.surfaces.browser._page_addresses import origin_of, resolved
from callboard.surfaces.browser._page_rules import BLANK
from callboard.surfaces.browser._page_snapshot import DIALOG, MOST_TEXT
from callboard.surfaces.browser._page_tools import PageTools
from callboard.surfaces.browser._pointer_tools import PointerTools
from callboard.surfaces.browser._tab import DialogOpenError, LoadingError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import Foreseen, Intent
    from callboard.surfaces._stage import Stage
    from callboard.surfaces.browser._page_snapshot import PageSnapshot
    from callboard.surfaces.browser._tab import Tab

_PLAYWRIGHTS = "playwright install chromium"
_PROGRAMS = "apt-get install chromium chromium-sandbox libatomic1"
_MOST_URL = 2_000
_MOST_NAME = 200
_MOST_PICTURES = 3
"""The pictures that are taken of a page whose fields move."""
_GUARDED = NetworkSettings()
_ADDRESS = {"type": "string", "minLength": 1, "maxLength": 8_000, "description": "The address to open."}


class BrowserSurface(Server):
    """The surface of a browser's tabs.

    Args:
        executable: The program: a path, a name on the path, or ``playwright`` for Playwright's own browser.
        cdp_url: The debugging port of a running browser, in place of a program.
        cdp_hosts: The hosts other than this machine that it may name.
        profile: The folder of a profile, ``shared`` for the running browser's, or None for an empty one for each
            conversation.
        sandbox: Whether the browser isolates pages from this machine.
        headless: Whether it has no windows.
        viewport: The width and height of pages.
        network: The hosts that pages may reach.
        grace: The seconds for which the browser stays, with its tabs, after this program is killed. Also the seconds
            after a conversation's last task until its tabs are closed.
        workspace: The folder from which files may be uploaded.
    """

    name = "browser"
    pictures = True
    blocks = False
    resource_kinds = ("origin", "url")

    def __init__(
        self,
        executable: str | None = None,
        *,
        cdp_url: str | None = None,
        cdp_hosts: Sequence[str] = (),
        profile: Literal["shared"] | Path | None = None,
        sandbox: bool = True,
        headless: bool = True,
        viewport: str = "1280x800",
        network: NetworkSettings = _GUARDED,
        grace: float = 60.0,
        workspace: Path | None = None,
    ) -> None:
        self._launch = BrowserLaunch(
            executable=executable,
            cdp_url=cdp_url,
            cdp_hosts=tuple(cdp_hosts),
            profile=profile,
            sandbox=sandbox,
            headless=headless,
            viewport=viewport,
            network=NetworkRules(network.allow, (*network.deny, DICTIONARY_HOST)) if network.guarded else None,
        )
        self._grace = self.closes_after = grace
        self._browser: OpenBrowser | None = None
        self._workspace = workspace
        self._parts = (
            NavigationTools(self._tab),
            ControlTools(self._tab),
            PageTools(self._tab, workspace),
            PointerTools(self._tab),
        )

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require the extra's packages, and the browser's program."""
        needs = [Need.package(name, install_command("browser")) for name in ("playwright", "PIL", "h11")]
        executable = options.get("executable")
        if options.get("cdp_url") is None:
            program = executable or "chromium"
            command = _PLAYWRIGHTS if program == PLAYWRIGHT else _PROGRAMS
            needs.append(Need(what=f"the program {program!r}", met=find_browser(program) is not None, command=command))
        return needs

    async def open(self, stage: Stage) -> None:
        """Start the browser, or connect to a running one.

        A browser that an earlier process has left is taken over, with its tabs. If it has ended, their addresses are
        opened again.

        Raises:
            SettingsError: If it may not be used in this way; the text gives the reason.
            RuntimeError: If it can't be started.
            ToolError: If it can't be reached.
        """
        self._launch.check()
        if self._workspace is not None and not self._workspace.is_dir():
            msg = f"browser.workspace: there is no folder {str(self._workspace)!r}: make it, or leave the setting out"
            raise SettingsError(msg)
        self._browser = OpenBrowser(self._launch, stage.folder, self._grace if stage.lasting else 0.0)
        await self._browser.open()

    async def close(self) -> None:
        """End the browser, or disconnect from one that was running before."""
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.close()

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tools of AppAgents."""
        return tuple(entry for part in self._parts for entry in collect(part))

    async def targets(self) -> tuple[Target, ...]:  # type: ignore[override]
        """List the tabs, and the browser that opens new ones."""
        application = Target(
            id=self.name,
            name="Browser",
            kind=TargetKind.APPLICATION,
            address=f"app/{self.name}/*",
            server=self.name,
            takes={"type": "object", "properties": {"address": _ADDRESS}},
        )
        return (*map(self._target, await self._open_browser().tabs()), application)

    async def start(self, target: Target, arguments: Mapping[str, JsonValue]) -> Target:
        """Open an address in a new tab, which belongs to the task.

        Raises:
            ToolError: If it can't be opened; the tab is closed again.
        """
        address = full_address(str(arguments.get("address") or BLANK))
        tab = await self._open_browser().new_tab(current_call().session)
        try:
            await open_address(tab, address)
        except BaseException:
            await tab.close()
            raise
        return self._target(tab)

    async def stop(self, target: Target) -> None:
        """Close a tab.

        Raises:
            ToolError: If it does not answer.
        """
        await (await self._tab(target.id)).close()

    async def observe(self, target: Target, look: Look) -> Observation:  # type: ignore[override]
        """Observe a tab: its controls, its readable text, and its picture.

        Raises:
            ToolError: If it is closed, or does not answer.
        """
        tab = await self._tab(target.id)
        try:
            return await _observation(tab, look)
        except DialogOpenError:
            return _dialog_observation(tab, tab.page.url[:_MOST_URL])
        except LoadingError as error:
            facts: dict[str, JsonValue] = {"url": tab.page.url[:_MOST_URL], "loading": error.address[:_MOST_URL]}
            return Observation(window=facts, fingerprint=f"loading {error.address}", notes=(str(error),))

    async def fingerprint(self, target: Target) -> str:  # type: ignore[override]
        """Return the fingerprint of a tab's parts, without a picture."""
        tab = await self._tab(target.id)
        try:
            snapshot = await tab.snapshot(boxes=tab.boxes is None)
        except DialogOpenError:
            return _dialog_observation(tab, "").fingerprint
        except LoadingError as error:
            return f"loading {error.address}"
        if tab.boxes is None:
            tab.boxes = {control.id: control.box for control in snapshot.controls() if control.box is not None}
        return snapshot.fingerprint()

    async def busy(self, target: Target) -> bool | None:  # type: ignore[override]
        """Return True while the page or a part loads; else None."""
        return (await self._tab(target.id)).is_busy or None

    async def hazards(  # type: ignore[override]
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], made: Collection[str]
    ) -> set[Hazard]:
        """Return the hazards of the parts that a call presses.

        They are looked up again right before the press.

        Raises:
            ToolError: If the tab is closed, or does not answer.
        """
        tab = await self._tab(target.id)
        return set((await judge(tab, tool, arguments)).hazards)

    async def recipient(  # type: ignore[override]
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue]
    ) -> str:
        """Name the origins that the form of a call is sent to."""
        facts = await judged_facts(await self._tab(target.id), tool, arguments)
        return ", ".join(sorted(origin or "an unknown address" for origin in facts.origins))

    def canonical(
        self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return the address of a call in one form.

        Raises:
            ToolError: If it is not that of a page.
        """
        if tool == "open":
            return {**arguments, "address": full_address(str(arguments["address"]))}
        if tool == f"open_in_{self.name}":
            return {**arguments, "arguments": {"address": full_address(_opened_address(arguments))}}
        return arguments

    async def resources(  # type: ignore[override]
        self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]
    ) -> Collection[str]:
        """Name the pages of a call.

        The forms are ``url:<address>`` and ``origin:<origin>``. The pages are the tab's own, the frames with the part
        that the call acts on, and those that its link or form opens.
        """
        urls: list[str] = []
        if tool == "open":
            urls.append(str(arguments["address"]))
        elif tool == f"open_in_{self.name}":
            urls.append(_opened_address(arguments))
        elif target is None:
            return (UNKNOWN,)
        else:
            urls += await touched_addresses(await self._tab(target.id), tool, arguments)
        return tuple(dict.fromkeys(name for url in urls for name in _resources_of(url)))

    def no_target(self, name: str) -> str:
        """Explain how an address is opened."""
        if "://" not in name and not name.startswith("tab-"):
            return ""
        return f"tabs are targets while they are open; a HostAgent opens an address in one, with open_in_{self.name}"

    async def probe(  # type: ignore[override]
        self, target: Target | None, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str
    ) -> Probe:
        """Tell from a call's note whether it was begun.

        A page does not tell whether a form was sent: a person is asked about a call that was begun.
        """
        if target is not None and not intent.noted:
            return Probe.NOT_DONE
        return Probe.UNKNOWN

    def _open_browser(self) -> OpenBrowser:
        if self._browser is None:
            msg = "the browser is not open"
            raise ToolError(msg)
        return self._browser

    async def _tab(self, tab_id: str) -> Tab:
        return await self._open_browser().tab(tab_id)

    def _target(self, tab: Tab) -> Target:
        return Target(
            id=tab.id,
            name=tab.page.url[:_MOST_URL],
            kind=TargetKind.WINDOW,
            address=f"app/{self.name}/{tab.id}",
            server=self.name,
            binds={"tab": tab.id},
            kinds=(AgentKind.APP, AgentKind.OPERATOR),
            owner=tab.owner,
            group=f"{self.name}:profile" if isinstance(self._launch.profile, Path) else "",
        )


async def _observation(tab: Tab, look: Look) -> Observation:
    """Observe a page that answers."""
    snapshot, picture = await tab.snapshot(boxes=True), None
    if look.picture:
        snapshot, picture = await _pictured(tab, snapshot)
    controls = snapshot.controls()
    if look.shown or tab.boxes is None:
        tab.boxes = {control.id: control.box for control in controls if control.box is not None}
    text, most = snapshot.text(), min(MOST_TEXT, look.budget.text) if look.shown else look.budget.text
    notes = tab.notes if look.shown else []
    if look.shown:
        tab.notes = []
    if not snapshot.nodes and snapshot.url != BLANK:
        notes = [*notes, "The page has no text and no controls: it is empty, an image or other data."]
    if len(text) > most:
        notes = [*notes, f"The page has {len(text) - most:,} more characters of text; the tool read gives them."]
    facts: dict[str, JsonValue] = {"url": snapshot.url[:_MOST_URL], "title": await tab.run(tab.page.title())}
    return Observation(
        controls=controls,
        text=text[:most],
        window=facts,
        picture=picture,
        fingerprint=snapshot.fingerprint(),
        notes=tuple(notes),
    )


async def _pictured(tab: Tab, snapshot: PageSnapshot) -> tuple[PageSnapshot, bytes | None]:
    """Take a picture, with a snapshot of the same moment.

    A field that holds a secret is made black at its place. If fields keep moving, there is no picture.
    """
    for _ in range(_MOST_PICTURES):
        picture, places = await tab.picture(), snapshot.filled_boxes()
        if not places:
            return snapshot, picture
        snapshot = await tab.snapshot(boxes=True)
        if snapshot.filled_boxes() == places:
            return snapshot, picture
    tab.note("There is no picture: fields with texts move on the page, and what they hold could be seen beside them.")
    return snapshot, None


def _opened_address(arguments: Mapping[str, JsonValue]) -> str:
    """Return the address of a HostAgent's call that opens a tab."""
    opening = arguments.get("arguments")
    return str(opening.get("address") or BLANK) if isinstance(opening, dict) else BLANK


def _dialog_observation(tab: Tab, url: str) -> Observation:
    """Return the observation of a page whose dialog is open.

    Nothing else of it answers.
    """
    if tab.dialog is None:  # it was answered meanwhile
        return Observation(window={"url": url}, fingerprint="dialog")
    facts: dict[str, JsonValue] = {"kind": tab.dialog.type, "message": tab.dialog.message}
    if tab.is_dialog_framed:
        facts["frame"] = tab.dialog_url[:_MOST_URL]
    if tab.dialog.type == "prompt":
        facts["answer"] = tab.dialog.default_value
    control = Control(id="dialog", name=tab.dialog.message[:_MOST_NAME] or tab.dialog.type, kind=DIALOG)
    notes, tab.notes = (*tab.notes, "The page waits: accept_dialog or dismiss_dialog answers its dialog."), []
    return Observation(
        controls=(control,), window={"url": url, "dialog": facts}, fingerprint=f"dialog {facts!r}", notes=notes
    )


def _resources_of(url: str) -> tuple[str, ...]:
    """Name an address and its origin; an uncertain one is unknown."""
    url = resolved("", url) or url
    if not url:
        return (UNKNOWN,)
    page = f"url:{url[:_MOST_URL]}"
    return (page, f"origin:{origin_of(url)}") if origin_of(url) else (page,)
