"""One tab of a browser, and what happens in it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.config import HostLog
from callboard.messages import Hazard
from callboard.surfaces import current_call
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._form_hazards import PressFacts
from callboard.surfaces.browser._page_addresses import origin_of
from callboard.surfaces.browser._page_end import close_page
from callboard.surfaces.browser._page_loads import PageLoads
from callboard.surfaces.browser._page_looks import LOOK_SECONDS, PageLooks
from callboard.surfaces.browser._page_snapshot import DIALOGS
from callboard.surfaces.browser._playwright_errors import as_tool_error
from callboard.surfaces.browser._sent_forms import SentForms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import CDPSession, Dialog, Download, Frame, Page

    from callboard.messages import Box
    from callboard.network import NetworkRules
    from callboard.surfaces.browser._page_snapshot import PageNode, PageSnapshot

_T = TypeVar("_T")
_log = HostLog()
_GIVE_UP_SECONDS = 1.0
"""The time that a cancelled call waits for the end of what it has begun."""
_STALL_SECONDS = 1.0
"""The time in which a page that loads may still answer."""
_MOST_NOTES = 20
_MOST_DIALOGS = 10
"""The dialogs that a page may show in a row, without another action; with the next one, it is closed."""


class DialogOpenError(ToolError):
    """A dialog of the page is open."""

    def __init__(self, dialog: Dialog) -> None:
        kind, message = dialog.type, dialog.message
        super().__init__(f"the page shows a dialog ({kind}: {message!r}): accept_dialog or dismiss_dialog answers it")


class LoadingError(ToolError):
    """A page does not answer while it loads another document.

    Chromium keeps all calls for a page back until the server has answered.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(f"the page still loads {address}: wait_for waits for it, open and back leave it")


class Tab:
    """A tab.

    Args:
        tab_id: The id of its target.
        page: Its page.
        session: A session of the Chrome DevTools Protocol with the page.
        owner: The session of the task that opened it; empty if a person did.
        documents: The numbers of documents that it and its frames have shown before.
        target: The browser's name of the page.
        rules: The hosts that its pages may reach; None for all.
        on_change: Called after its address has changed.
    """

    def __init__(
        self,
        tab_id: str,
        page: Page,
        session: CDPSession,
        owner: str,
        *,
        documents: tuple[int, ...] = (0, 0),
        target: str = "",
        rules: NetworkRules | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.id = tab_id
        self.page = page
        self.owner = owner
        self.target = target
        self.rules = rules
        self.documents = (documents[0], documents[1])
        """The numbers of documents that it and its frames have shown, which ids of controls tell apart."""
        self.dialog: Dialog | None = None
        """The dialog that the page shows."""
        self.dialog_url = ""
        """The address of the document that shows it, which may be that of a frame."""
        self.dialogs = 0
        """The number of dialogs since the last action other than an answer."""
        self.offer: asyncio.Future[Download] | None = None
        """The download that a call waits for."""
        self.notes: list[str] = []
        """Things that were refused since the last observation."""
        self.judged: PressFacts | None = None
        """The facts of the call that the policy has ruled on last; None before the first."""
        self.judged_call: tuple[str, str] | None = None
        """The tool and arguments of that call, until an action begins."""
        self.forms = SentForms()
        self.opener: Tab | None = None
        """The tab whose page has opened this one, and may send its forms to it."""
        self.repeats = True
        """Whether pages that come now may be loaded again unseen: no hazard of the last action stands against it."""
        self._hazard_document = -1
        """The number of the document in which an action had a hazard last."""
        self.is_repeatable = True
        """Whether the page that it shows may be."""
        self.boxes: dict[str, Box] | None = None
        """The places of the controls at the last observation for an agent; None after an action."""
        self.pointer: tuple[float, float] | None = None
        """The point where the pointer rests, as far as it is known."""
        self.title = ""
        self._session = session
        self._on_change = on_change
        self._dialog_opened = asyncio.Event()
        self._loads = PageLoads(page, session)
        self._looks = PageLooks(page, session, lambda: bool(self.loads), lambda: self.documents)
        for event, handler in (
            ("dialog", self._on_dialog),
            ("download", self._on_download),
            ("framenavigated", self._on_navigated),
        ):
            page.on(event, handler)  # type: ignore[call-overload]  # one overload an event
        session.on("Page.frameNavigated", self._on_document)
        session.on("Page.javascriptDialogOpening", self._on_dialog_url)

    # Events

    def note(self, text: str) -> None:
        """Add a note for the next observation, once."""
        if text not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes.append(text)

    def _on_dialog(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self.dialogs += 1
        self._dialog_opened.set()
        if self.dialogs > _MOST_DIALOGS and self.owner:  # a page in a loop answers nothing else
            _log.warning("a page showed more than %d dialogs in a row; its tab %s is closed", _MOST_DIALOGS, self.id)
            asyncio.ensure_future(self.close()).add_done_callback(_forget)

    @property
    def is_dialog_framed(self) -> bool:
        """True if a frame of another origin shows the dialog."""
        return bool(self.dialog_url) and origin_of(self.dialog_url) != origin_of(self.page.url)

    def _on_dialog_url(self, event: dict[str, Any]) -> None:
        self.dialog_url = event["url"]

    def _on_download(self, download: Download) -> None:
        self._loads.end(self.page.main_frame)
        if self.offer is not None and not self.offer.done():
            self.offer.set_result(download)
            return
        self.note(
            f"The page offered the file {download.suggested_filename!r}; it was not fetched. The tool download does."
        )
        asyncio.ensure_future(download.cancel()).add_done_callback(_forget)

    def _on_document(self, event: dict[str, Any]) -> None:
        """Count documents of the page itself.

        Its script can change the address without a new one, also while an answer is awaited. Only the browser tells
        both apart, and only for frames of the page's process.
        """
        if "parentId" not in event["frame"]:
            self.forms.stopped.clear()
            self.documents = (self.documents[0] + 1, self.documents[1] + 1)
            self.is_repeatable = self.repeats
            self._on_change()

    def _on_navigated(self, frame: Frame) -> None:
        """Note a new address, and count documents of frames."""
        if frame is self.page.main_frame:
            self.is_repeatable = self.repeats and self.is_repeatable
        elif self._loads.end(frame) or not frame.url.startswith("http"):
            self.documents = (self.documents[0], self.documents[1] + 1)
        self._on_change()

    @property
    def is_busy(self) -> bool:
        """True while the page, or a tab that it opens, loads."""
        return self.dialog is None and self._loads.is_busy

    @property
    def loads(self) -> str:
        """The address of the document that it loads, or empty."""
        return self._loads.address

    # Calls

    async def run(self, call: Awaitable[_T], seconds: float | None = None) -> _T:
        """Await a call of Playwright, unless the page shows a dialog.

        A call that opens a dialog ends when the dialog is answered, and counts as done. A cancelled call is stopped.

        Args:
            call: The call.
            seconds: The time limit of one that only reads; a shorter one counts while the page loads.

        Raises:
            DialogOpenError: If a dialog opens before the call has ended.
            LoadingError: If the call takes too long because the page loads.
            ToolError: If the call fails; the text gives the reason.
        """
        task: asyncio.Future[_T] = asyncio.ensure_future(call)
        opened = asyncio.ensure_future(self._dialog_opened.wait())
        try:
            await self._wait_for(task, opened, seconds)
        except asyncio.CancelledError:
            await self._give_up(task)
            raise
        finally:
            opened.cancel()
        if not task.done():
            task.add_done_callback(_forget)
            if self.dialog is not None:
                raise DialogOpenError(self.dialog)
            if self.loads:
                raise LoadingError(self.loads)
            msg = "the page does not answer" + (f" within {seconds:g} s" if seconds is not None else "")
            raise ToolError(msg)
        with as_tool_error():
            return await task

    async def _wait_for(self, task: asyncio.Future[Any], opened: asyncio.Future[Any], seconds: float | None) -> None:
        """Wait until a call ends, or has to be given up.

        These are a dialog, the time limit, and a second in which the page only loads.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        while not (task.done() or opened.done()) and (left := end - time.monotonic()) > 0:
            loaded = self.loads
            limit = None if seconds is None else min(left, _STALL_SECONDS)
            await asyncio.wait({task, opened}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if seconds is not None and loaded and self.loads:
                return

    async def _give_up(self, task: asyncio.Future[Any]) -> None:
        """Stop the work of a cancelled call.

        It must have no effect later.
        """
        with contextlib.suppress(Exception):  # the page may be gone
            await asyncio.wait_for(self.stop_loading(), _GIVE_UP_SECONDS)
        await asyncio.wait({task}, timeout=_GIVE_UP_SECONDS)
        task.cancel()
        task.add_done_callback(_forget)

    async def stop_loading(self) -> None:
        """Stop all navigation in the page."""
        self._loads.clear()
        await self._session.send("Page.stopLoading")

    async def answer_dialog(self, *, accept: bool, text: str | None = None) -> None:
        """Answer the open dialog.

        Raises:
            ToolError: If there is none.
        """
        dialog, self.dialog, self.dialog_url = self.dialog, None, ""
        self._dialog_opened.clear()
        if dialog is None:
            msg = "the page shows no dialog"
            raise ToolError(msg)
        ruled, self.judged_call = self.ruled, None
        if accept and ruled is not None and ruled.hazards:
            self._forbid_repeats()
        with as_tool_error():
            await (dialog.dismiss() if not accept else dialog.accept(text) if text is not None else dialog.accept())

    def begin(self, *, may_send: bool, pays: bool) -> None:
        """Begin an action.

        Args:
            may_send: Whether the page may send the forms that the policy has ruled on.
            pays: Whether the page has a field for a card: a script may pay then, also by GET.
        """
        ruled = self.ruled
        self.dialogs = 0
        acted, self.judged_call = self.judged_call if may_send else None, None
        origins: frozenset[str] | None = frozenset()
        if may_send and ruled is None:
            origins = None
        elif may_send and ruled is not None and Hazard.SENDS in ruled.hazards:
            origins = ruled.origins or frozenset({origin_of(self.page.url)})
        self.forms.begin(origins, self.documents[0], acted)
        if may_send and (pays or (ruled is not None and ruled.hazards)):
            self._forbid_repeats()
        elif may_send and not self.loads and self.documents[0] != self._hazard_document:
            self.repeats = True  # a page that still loads is that of an earlier action

    def _forbid_repeats(self) -> None:
        """Note that an action has a hazard.

        Pages that its document opens later, by a script that waits, may be its effect too.
        """
        self.repeats = False
        self._hazard_document = self.documents[0]

    @property
    def ruled(self) -> PressFacts | None:
        """The facts that the policy has ruled on for the running call.

        They are empty for a call that it has not ruled on, and None for one outside of a supervisor, without a policy.
        """
        if self.judged_call is not None:
            return self.judged
        return PressFacts() if current_call().id else None

    def check_no_dialog(self) -> None:
        """Check that no dialog of the page waits for an answer.

        Raises:
            DialogOpenError: If it does.
        """
        if self.dialog is not None:
            raise DialogOpenError(self.dialog)

    async def close(self) -> None:
        """Close the page, whatever dialogs it shows.

        Chromium 150 crashes if one of a frame of another origin is open then, so it is dismissed before.

        Raises:
            ToolError: If it does not close.
        """
        if self.dialog is not None and self.is_dialog_framed:
            asyncio.ensure_future(self.dialog.dismiss()).add_done_callback(_forget)
        await close_page(self.page)

    # Looks

    async def snapshot(self, *, boxes: bool = False) -> PageSnapshot:
        """Take an accessibility snapshot of the page.

        Raises:
            DialogOpenError: If the page shows a dialog.
            LoadingError: If the page loads another document, or shows one after the other.
            ToolError: If the page does not answer.
        """
        self.check_no_dialog()
        if self.page.is_closed():
            msg = f"{self.id} is closed"
            raise ToolError(msg)
        snapshot = await self.run(self._looks.snapshot(boxes=boxes), LOOK_SECONDS)
        if snapshot is None:
            raise LoadingError(self.loads or self.page.url)
        return snapshot

    async def part(self, node: PageNode) -> PageNode | None:
        """Look again at a part of the last snapshot.

        None if it is gone. Its name may have changed, and with it its ref.

        Raises:
            ToolError: As `snapshot`.
        """
        part = await self.run(self._looks.part(node.ref), LOOK_SECONDS)
        if part is None:
            return None
        if any(ancestor.role in DIALOGS for ancestor in node.ancestors()):  # its question may have changed, too
            return next((other for other in (await self.snapshot()).nodes if other.ref == part.ref), None)
        return part.instead_of(node)

    async def picture(self) -> bytes:
        """Take a picture of the visible part of the page, as PNG.

        Raises:
            DialogOpenError: If the page shows a dialog.
            LoadingError: If the page loads another document.
            ToolError: If the page does not answer.
        """
        return await self.run(self._looks.picture(), LOOK_SECONDS)


def _forget(task: asyncio.Future[Any]) -> None:
    """Take a failure that no caller waits for."""
    if not task.cancelled():
        task.exception()
