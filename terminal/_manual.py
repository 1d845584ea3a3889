"""The pages of the documentation, which are installed with the package."""

from __future__ import annotations

from pathlib import Path

import callboard
from callboard.messages import did_you_mean
from callboard.terminal._commands import fail

_FOLDER = Path(callboard.__file__).parent / "docs"


def page_names() -> list[str]:
    """List the pages; `README` is their index by purpose."""
    return sorted(each.stem for each in _FOLDER.glob("*.md"))


def page_list() -> str:
    """Return the pages' folder, and the name and title of each page."""
    width = max(map(len, page_names()), default=0)
    lines = [f"{name:<{width}}  {_text(name).splitlines()[0].removeprefix('# ')}" for name in page_names()]
    return "\n".join([f"{_FOLDER}:", "", *lines, "", "Print a page with: callboard docs PAGE", ""])


def page(name: str) -> str:
    """Return the text of a page.

    Only listed names are accepted, also in the form `docs/NAME.md`.
    """
    wanted, known = name.removeprefix("docs/").removesuffix(".md"), page_names()
    if wanted not in known:
        hint = did_you_mean(wanted, known, f"there are: {', '.join(known) or 'none'}")
        fail(f"there is no page {name!r}{hint}")
    return _text(wanted)


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
