"""The table of the solved pages, and the reasons for the others."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WHOLE = "no whole pixel has the full reward with each seed, by the page's own formula for all of them"
TWINS = "two letters are by the same person, and the page expects one of them"
REASONS = {
    "bisect-angle": WHOLE,
    "chase-circle": "the reward is the share of time in a circle that the pointer can't be in from the start",
    "circle-center": WHOLE,
    "click-pie": "a click on the entry that the page has chosen already does nothing",
    "click-pie-nodelay": "a click on the entry that the page has chosen already does nothing",
    "draw-circle": "a circle has to be drawn in one drag; `drag_at` is straight",
    "email-inbox-forward": TWINS,
    "email-inbox-noscroll": TWINS,
    "find-midpoint": WHOLE,
    "hover-shape": "the page has no end but its time limit, which is a failure",
    "moving-items": "ten circles pass in 10 s, and none may be missed",
    "right-angle": WHOLE,
    "stock-market": "the price changes ten times a second, also between the look and the click",
    "tic-tac-toe": "the oracle plays simply, and a draw counts as a failure",
}
"""The reasons why pages are not solved with each seed."""


def miniwob_lines(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Draw the table of solved pages, and list the others."""
    pages = {cell.partition("/")[2]: said[-1] for cell, said in answers.items() if cell.startswith("miniwob/")}
    if not pages:
        return
    solved = {name: page for name, page in pages.items() if page.get("solved") == page.get("seeds")}
    yield "| solved by | pages | steps | calls | s |"
    yield "| --- | --: | --: | --: | --: |"
    for title, kinds in (("an AppAgent", ("app",)), ("an operator", ("operator",)), ("both", ("app", "operator"))):
        chosen = [page for page in solved.values() if page["by"] in kinds]
        if chosen:
            medians = [
                statistics.median(n for page in chosen for n in page[key]) for key in ("steps", "calls", "times")
            ]
            count = f"{len(chosen)} of {len(pages)}" if len(kinds) > 1 else str(len(chosen))
            yield f"| {title} | {count} | {medians[0]:g} | {medians[1]:g} | {medians[2]:.1f} |"
    if len(solved) == len(pages):
        return
    yield ""
    yield "| not solved | solved seeds | least reward | reason |"
    yield "| --- | --: | --: | --- |"
    for name, page in pages.items():
        if name not in solved:
            reward = f"{page['reward']:.4g}" if "reward" in page else ""
            reason = REASONS.get(name) or "; ".join(page.get("reasons", [])) or page.get("error", "")
            yield f"| `{name}` | {page.get('solved', 0)} of {page.get('seeds', '')} | {reward} | {reason} |"
