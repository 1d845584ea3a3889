"""Looks at a page: accessibility snapshots and pictures."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import hashlib
import re
from typing import TYPE_CHECKING, Any

from callboard.surfaces.browser._drawn_boxes import find_labels
from callboard.surfaces.browser._hidden_pages import hidden_picture
from callboard.surfaces.browser._page_snapshot import FIELDS, Inset, PageNode, PageSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from playwright.async_api import CDPSession, Frame, Page

LOOK_SECONDS = 20.0
"""The time limit for a page to be looked at: one that computes does not answer."""
_SHOWN_MS = 500
"""The time in which a page that is shown is drawn, in milliseconds."""
_MOST_LOOKS = 3
"""The looks at a page that shows another document meanwhile; it counts as loading then."""
_MOST_FIELDS = 20
_MOST_CHECKED = 500
"""The fields that are asked for their types again."""
_KINDS = ("password", "file")
_FIELD = "input[type={}]"
_FIELD_LINE = re.compile(rf"^ *- ['\"]?(?:{'|'.join(sorted(FIELDS))}) .*$", re.MULTILINE)
_REF = re.compile(r"\[ref=(\w+)\]")
_HIDES_TEXT = "translate(@type, 'PASWORD', 'pasword') = 'password'"
_TYPES = {f"xpath=self::*[not({_HIDES_TEXT})]": False, f"xpath=self::*[{_HIDES_TEXT}]": True}
_LONG_SNAPSHOT = 50_000
"""The characters above which a snapshot is read in a thread, so that other tasks go on meanwhile."""
_INSET = """frame => {
    const style = getComputedStyle(frame), box = frame.getBoundingClientRect();
    const across = box.width / frame.offsetWidth || 1, down = box.height / frame.offsetHeight || 1;
    return [(frame.clientLeft + parseFloat(style.paddingLeft)) * across,
        (frame.clientTop + parseFloat(style.paddingTop)) * down, across, down];
}"""


class PageLooks:
    """Looks at one page, one after the other.

    Args:
        page: The page.
        session: A session of the Chrome DevTools Protocol with it.
        loads: Returns whether it loads a document.
        documents: Returns the numbers of documents that it and its frames have shown.
    """

    def __init__(
        self, page: Page, session: CDPSession, loads: Callable[[], bool], documents: Callable[[], tuple[int, int]]
    ) -> None:
        self._page = page
        self._session = session
        self._loads = loads
        self._documents = documents
        self._looking = asyncio.Lock()
        self._snapshots: collections.deque[tuple[dict[str, Any], PageSnapshot]] = collections.deque(maxlen=2)
        """The last snapshots, as a rule one with places and one without, each with its arguments."""
        self._mixed = 0
        """The number of snapshots of frames that showed other documents meanwhile."""

    async def snapshot(self, *, boxes: bool) -> PageSnapshot | None:
        """Take an accessibility snapshot, with the places of parts if wanted.

        None if the page shows one document after the other meanwhile. Parts of frames that do so have ids that no other
        snapshot has.
        """
        async with self._looking:  # also until the end of one that is no longer waited for: they would pile up
            for looks_left in reversed(range(_MOST_LOOKS)):
                page, frames = self._shown()
                facts = await self._facts(boxes=boxes, is_last=not looks_left)
                is_same, are_frames_same = [old == new for old, new in zip((page, frames), self._shown(), strict=True)]
                if facts is not None and is_same and (are_frames_same or not looks_left):
                    self._mixed += not are_frames_same
                    page_suffix, frame_suffix = map(_suffix, self._documents())
                    frame_suffix += "" if are_frames_same else f"-mixed{self._mixed}"
                    return await self._read({**facts, "url": self._page.url, "suffixes": (page_suffix, frame_suffix)})
        return None

    async def _read(self, facts: dict[str, Any]) -> PageSnapshot:
        """Read a snapshot, unless it is the same as the last one.

        A page is looked at several times for one action.
        """
        text = facts["text"]
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        key = {**facts, "text": digest}  # it has passwords
        for last_key, snapshot in self._snapshots:
            if last_key == key:
                return snapshot
        read = functools.partial(PageSnapshot, **facts)
        snapshot = await asyncio.to_thread(read) if len(text) > _LONG_SNAPSHOT else read()
        with contextlib.suppress(Exception):  # as below
            await find_labels(self._page, snapshot)
        self._snapshots.append((key, snapshot))
        return snapshot

    async def part(self, ref: str) -> PageNode | None:
        """Look again at an element of the last snapshot.

        None if it is gone. Other refs of its frame find nothing then, until the next snapshot.
        """
        async with self._looking:
            with contextlib.suppress(Exception):  # it is gone, or hidden
                text = await self._page.locator(f"aria-ref={ref}").aria_snapshot(mode="ai", timeout=LOOK_SECONDS * 1000)
                return next((node for node in PageSnapshot(text, passwords=None).nodes if node.ref), None)
        return None

    def _shown(self) -> tuple[object, object]:
        """Return facts of page and frames that differ between documents."""
        (page, frames), url = self._documents(), self._page.url.partition("#")[0]
        return (page, url), (frames, [(frame, frame.url) for frame in self._page.frames])

    async def _facts(self, *, boxes: bool, is_last: bool) -> dict[str, Any] | None:
        """Return the arguments of a snapshot.

        None if fields in it are gone by now: their types are unknown. In the last look, they count as passwords.
        """
        # First, since refs are of the last snapshot
        passwords, files = await self._fields()
        if not (self._loads() or await self._page.locator("body, frameset").count()):
            return {"text": ""}  # an image or other data, no document
        text = await self._page.aria_snapshot(mode="ai", boxes=boxes, timeout=LOOK_SECONDS * 1000)
        if passwords is not None:
            answers = await self._check(text, passwords, checks_all=is_last)
            if None in answers.values() and not is_last:
                return None
            passwords |= {ref for ref, answer in answers.items() if answer is not False}
        insets = await self._insets(text) if boxes else {}
        return {"text": text, "passwords": passwords, "files": files, "insets": insets}

    async def _fields(self) -> tuple[set[str] | None, set[str] | None]:
        """Return the refs of all fields for passwords, and for files.

        None if there are too many to ask for. Neither type has a role.
        """
        counts = await self._counts(", ".join(map(_FIELD.format, _KINDS)))
        frames = [frame for frame, count in counts.items() if count]
        passwords, files = [await self._refs(kind, frames) for kind in _KINDS]
        return passwords, files

    async def _counts(self, selector: str) -> dict[Frame, int]:
        """Count elements in each frame."""

        async def count(frame: Frame) -> int:
            with contextlib.suppress(Exception):  # it may be gone by now
                return await frame.locator(selector).count()
            return 0

        frames = self._page.frames
        return dict(zip(frames, await asyncio.gather(*map(count, frames)), strict=True))

    async def _refs(self, kind: str, frames: Iterable[Frame]) -> set[str] | None:
        """Return the refs of the fields of a type in frames."""
        refs: set[str] = set()
        for frame in frames:
            fields = frame.locator(_FIELD.format(kind))
            with contextlib.suppress(Exception):  # as above
                count = await fields.count()
                if count > _MOST_FIELDS:
                    return None
                for number in range(count):
                    text = await fields.nth(number).aria_snapshot(mode="ai", timeout=LOOK_SECONDS * 1000)
                    refs |= {node.ref for node in PageSnapshot(text).nodes}
        return refs

    async def _check(self, text: str, passwords: set[str], *, checks_all: bool) -> dict[str, bool | None]:
        """Tell which other fields in a snapshot are for passwords.

        The page may have shown them after those were listed. None for a field that is gone. Those beyond the most that
        are asked count as such.
        """
        refs = {ref for line in _FIELD_LINE.findall(text) for ref in _REF.findall(line)} - passwords
        if len(refs) > _MOST_FIELDS and not (passwords or checks_all):
            checks_all = any((await self._counts(_FIELD.format("password"))).values())
            if not checks_all:
                return {}
        answers = await asyncio.gather(*map(self._is_password, sorted(refs)[:_MOST_CHECKED]))
        return dict.fromkeys(refs, True) | dict(zip(sorted(refs), answers, strict=False))

    async def _is_password(self, ref: str) -> bool | None:
        element = self._page.locator(f"aria-ref={ref}")
        with contextlib.suppress(Exception):  # as above
            for path, answer in _TYPES.items():
                if await element.locator(path).count():
                    return answer
        return None

    async def _insets(self, text: str) -> dict[str, Inset]:
        """Return the places of the contents of frames, by the frames' refs."""

        async def inset(ref: str) -> Inset | None:
            with contextlib.suppress(Exception):  # as above
                return Inset(*await self._page.locator(f"aria-ref={ref}").evaluate(_INSET, timeout=1_000))
            return None

        refs = re.findall(r"^ *- '?iframe [^\n]*?\[ref=(\w+)\]", text, re.MULTILINE)
        insets = zip(refs, await asyncio.gather(*map(inset, refs)), strict=True)
        return {ref: place for ref, place in insets if place is not None}

    async def picture(self) -> bytes:
        """Take a picture of the visible part of the page, as PNG."""
        from playwright.async_api import TimeoutError as LateError

        try:
            return await self._page.screenshot(timeout=_SHOWN_MS, scale="css")
        except LateError:  # a person may look at another tab, which stays in front
            return await hidden_picture(self._session)


def _suffix(documents: int) -> str:
    return f"-{documents}" if documents > 1 else ""
