"""The agents' side of an oracle: a coroutine as an agent's model.

It acts by the agent's tools alone. What the surface does not show, such as the colour of a box, it looks up in the
document; a person would see it in the picture.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from callboard import ModelRequest
    from callboard.messages import CommandResult
    from callboard.surface import Control, Observation
    from callboard.surfaces.browser import BrowserSurface

    Solver = Callable[["PageView"], Awaitable[None]]

Call = tuple[str, dict[str, Any]]
"""A tool's name, and its arguments."""
_QUERY = "() => core.getUtterance()"
_BOXES = """selector => [...document.querySelectorAll(selector)].map(part => {
    const box = part.getBoundingClientRect();
    return {x: Math.round(box.x), y: Math.round(box.y), width: Math.round(box.width), height: Math.round(box.height),
            text: part.textContent.trim(), name: part.className.baseVal ?? part.className, tag: part.tagName};
})"""
_START = "START"
_IS_LOADED = "() => document.readyState === 'complete'"
_CHANGED = ("look again", "the picture changed")
"""Words of the errors after which an agent looks, and tries again."""
_MOST_TRIES = 4


class UnsolvedError(Exception):
    """The oracle found no way on; the text is the reason."""


@dataclass(frozen=True)
class Part:
    """A part of the document, with its place in the picture."""

    x: int
    y: int
    width: int
    height: int
    text: str
    name: str
    """Its class."""
    tag: str

    @property
    def center(self) -> tuple[int, int]:
        """Its middle."""
        return self.x + self.width // 2, self.y + self.height // 2


class PageView:
    """A page as its agent sees it, and the agent's calls.

    Args:
        surface: The surface, for facts that are looked up.
    """

    def __init__(self, surface: BrowserSurface) -> None:
        self._surface = surface
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._requests: asyncio.Queue[ModelRequest] = asyncio.Queue()
        self._request: ModelRequest | None = None
        self._work: asyncio.Task[None] | None = None
        self.query = ""
        self.steps = self.calls = 0
        self.reward: float | None = None
        self.reason = ""

    async def answer(self, request: ModelRequest, solver: Solver) -> dict[str, Any]:
        """Give the model's answer to a request."""
        self._request = request
        if self._work is None:
            self._work = asyncio.create_task(self._solve(solver))
        else:
            self._requests.put_nowait(request)
        return await self._answers.get()

    def stop(self) -> None:
        """Stop the solver of a run that ended without it."""
        if self._work is not None and not self._work.done():
            self._work.get_loop().call_soon_threadsafe(self._work.cancel)

    async def _solve(self, solver: Solver) -> None:
        try:
            await self._start()
            await solver(self)
            self.reward = await self.facts("() => WOB_DONE_GLOBAL ? WOB_RAW_REWARD_GLOBAL : null")
            self.reason = "the page gave no reward" if self.reward is None else ""
        except Exception as error:  # an edge: the next page is tried
            self.reason = f"{type(error).__name__}: {error}"
        self._answers.put_nowait({"Status": "FINISH"})

    async def _start(self) -> None:
        if self.is_operator:
            if not await self.facts(_IS_LOADED):
                await self.do(("wait", {"seconds": 1.0}))
            await self.do(("click_at", {"x": 80, "y": 105}))
        else:
            if _START not in [control.name for control in self.observation.controls]:
                await self.do(("wait_for", {"control": _START}))
            await self.click(_START)
        self.query = await self.facts(_QUERY)

    # What is there

    @property
    def request(self) -> ModelRequest:
        """The last request to the model."""
        assert self._request is not None  # noqa: S101 - a solver runs after the first request
        return self._request

    @property
    def is_operator(self) -> bool:
        """True if the agent sees the picture only."""
        return self.request.is_operator

    @property
    def observation(self) -> Observation:
        """The last observation."""
        return self.request.observation

    @property
    def controls(self) -> Sequence[Control]:
        """The controls of the page."""
        return [control for control in self.observation.controls if control.name != _START]

    def of_kind(self, *kinds: str) -> list[Control]:
        """List the controls of some kinds."""
        return [control for control in self.controls if control.kind in kinds]

    def control(self, name: str, *kinds: str) -> Control:
        """Return the control with a name.

        Raises:
            UnsolvedError: If it is not listed.
        """
        for control in self.observation.controls:
            if control.name == name and (not kinds or control.kind in kinds):
                return control
        msg = f"no control {name!r}"
        raise UnsolvedError(msg)

    def words(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a pattern in the query.

        Raises:
            UnsolvedError: If it does not match.
        """
        match = re.search(pattern, self.query)
        if match is None:
            msg = f"the query is {self.query!r}"
            raise UnsolvedError(msg)
        return match.groups()

    async def facts(self, script: str, argument: Any = None) -> Any:
        """Look up facts in the document."""
        target = self.request.target
        assert target is not None  # noqa: S101 - the agent has a target
        tab = await self._surface._tab(target.id.partition(":")[2] or target.id)
        return await tab.page.evaluate(script, argument)

    async def parts(self, selector: str) -> list[Part]:
        """Look up parts of the document, with their places."""
        return [Part(**part) for part in await self.facts(_BOXES, selector)]

    # Actions

    async def do(self, *calls: Call) -> None:
        """Make calls in one step; repeat those that came too late.

        Raises:
            UnsolvedError: If one of them fails.
        """
        for _ in range(_MOST_TRIES):
            results = await self._step(calls)
            failed = next((index for index, result in enumerate(results) if result.status.value != "success"), None)
            if failed is None:
                return
            error = f"{results[failed].tool}: {results[failed].error}"
            if not any(words in error for words in _CHANGED):
                break
            calls = calls[failed:]
        raise UnsolvedError(error)

    async def _step(self, calls: Sequence[Call]) -> Sequence[CommandResult]:
        self.steps += 1
        self.calls += len(calls)
        actions = [{"Function": name, "Args": arguments} for name, arguments in calls]
        self._answers.put_nowait({"Status": "CONTINUE", "Actions": actions})
        self._request = await self._requests.get()
        return self._request.memory[-1].results

    async def click(self, *names: str | Control) -> None:
        """Click on controls in one step."""
        controls = [self.control(name) if isinstance(name, str) else name for name in names]
        await self.do(*(("click", {"control_id": control.id}) for control in controls))

    async def fill(self, *texts: str, submit: str = "Submit") -> None:
        """Fill the fields in order, and press a button, in one step."""
        fields = self.of_kind("textbox", "spinbutton", "searchbox")
        calls: list[Call] = [
            ("fill", {"control_id": field.id, "text": text}) for field, text in zip(fields, texts, strict=False) if text
        ]
        await self.do(*calls, *([("click", {"control_id": self.control(submit).id})] if submit else []))

    async def click_at(self, *parts: Part | tuple[int, int]) -> None:
        """Click on points in one step."""
        points = [part.center if isinstance(part, Part) else part for part in parts]
        await self.do(*(("click_at", {"x": x, "y": y}) for x, y in points))

    async def drag_at(self, *points: tuple[int, int, int, int]) -> None:
        """Drag from points to others in one step."""
        await self.do(
            *(("drag_at", {"x": x, "y": y, "to_x": to_x, "to_y": to_y}) for x, y, to_x, to_y in points)
        )  # fmt: skip

    async def click_part(self, selector: str) -> None:
        """Click on the first part of a selector.

        Raises:
            UnsolvedError: If there is none.
        """
        parts = await self.parts(selector)
        if not parts:
            msg = f"no part {selector!r}"
            raise UnsolvedError(msg)
        await self.click_at(parts[0])


async def film_texts(page: PageView) -> list[str]:
    """Return the texts of a search for films, in its fields' order."""
    genre, name, year = page.words(r"Search for (\w+) movies directed by (.*) from year (\d+)")
    texts = {"genre": genre, "director": name, "year": year, "released": year}
    labels = await page.facts(
        "() => [...document.querySelectorAll('#area input')].map("
        "input => input.closest('p, tr, .row, .field, .ui-entry').innerText.toLowerCase())"
    )
    return [next(text for word, text in texts.items() if word in label) for label in labels]
