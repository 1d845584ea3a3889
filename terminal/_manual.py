"""The pages of the documentation, which are installed with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.markdown import CodeBlock, Heading, Markdown
from rich.text import Text

import callboard
from callboard.messages import did_you_mean
from callboard.terminal._commands import fail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions

_FOLDER = Path(callboard.__file__).resolve().parent / "docs"


class _Code(CodeBlock):
    """Code as it is written, so that people can copy it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield Text(self.text.plain.rstrip(), style="cyan", no_wrap=True, overflow="ignore")


class _Heading(Heading):
    """A heading at the left margin."""

    LEVEL_ALIGN: ClassVar = {}


class _Layout(Markdown):
    """A page with tables and the addresses of links."""

    elements: ClassVar = {**Markdown.elements, "fence": _Code, "code_block": _Code, "heading_open": _Heading}


def page_names() -> list[str]:
    """List the pages; `README` is their index by purpose."""
    return sorted(page.stem for page in _FOLDER.glob("*.md"))


def page_list() -> str:
    """Return the pages' folder, and the name and title of each page."""
    width = max(map(len, page_names()), default=0)
    lines = [f"{name:<{width}}  {_text(name).splitlines()[0].removeprefix('# ')}" for name in page_names()]
    return "\n".join([f"{_FOLDER}:", "", *lines, "", "Print a page with: callboard docs PAGE", ""])


def print_page(console: Console, name: str) -> None:
    """Print a page.

    A terminal shows its layout; a file or pipe gets its Markdown. Only listed
    names are accepted, also in the form `docs/NAME.md`.
    """
    page, names = name.removeprefix("docs/").removesuffix(".md"), page_names()
    if page not in names:
        hint = did_you_mean(page, names, f"there are: {', '.join(names) or 'none'}")
        fail(f"there is no page {name!r}{hint}")
    if console.is_terminal:
        console.print(_Layout(_text(page), hyperlinks=False), crop=False)
    else:
        console.out(_text(page), end="", highlight=False)


def _text(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
