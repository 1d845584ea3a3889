"""Check the links, anchors and resources of a built site."""
# ruff: noqa: INP001 - imported by build.py

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lxml import etree, html

if TYPE_CHECKING:
    from pathlib import Path

MOST_CLICKS = 2
"""The most clicks from the start page to any page."""
_RESOURCES = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
_NONE = "data-none"
"""An attribute that no element has."""
_NO_RESOURCE = {"canonical", "next", "prev", "alternate"}


class _Page:
    """The ids, links and resources of a page."""

    def __init__(self, text: str) -> None:
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        root = html.document_fromstring(text) if text.strip() else ()
        for element in root.iter(etree.Element) if len(root) else ():
            values = element.attrib
            self.ids |= {values[name] for name in ("id", "name") if name in values}
            if element.tag == "a" and "href" in values:
                self.links.append(values["href"])
            address = values.get(_RESOURCES.get(element.tag, _NONE), "")
            if address and values.get("rel") not in _NO_RESOURCE:
                self.resources.append(address)


@dataclass
class Report:
    """The number of pages and links, and the faults, as lines."""

    pages: int = 0
    links: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.pages} pages, {self.links} links, {len(self.faults)} faults"


def report(site: Path) -> Report:
    """Check all pages of a site below its start page, ``index.html``."""
    site = site.resolve()
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    result = Report(pages=len(pages))
    reached: dict[Path, set[Path]] = {}
    for path, page in pages.items():
        place = path.relative_to(site)
        for address in page.resources:
            if urlsplit(address).netloc:
                result.faults.append(f"{place}: loads {address}")
        targets = [address for address in (*page.links, *page.resources) if not _is_external(address)]
        result.links += len(targets)
        reached[path] = {_target(path, site, address) for address in targets}
        lost = [address for address in targets if not _leads_somewhere(path, site, address, pages)]
        result.faults += [f"{place}: {address} leads nowhere" for address in lost]
    far = _far(site, pages, reached)
    result.faults += [f"{path.relative_to(site)}: more than {MOST_CLICKS} clicks from the start" for path in far]
    return result


def _is_external(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc)


def _target(page: Path, site: Path, address: str) -> Path:
    return _file(page, site, unquote(urlsplit(address).path))


@functools.lru_cache(maxsize=100_000)
def _file(page: Path, site: Path, path: str) -> Path:
    target = page if not path else (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    return target / "index.html" if target.is_dir() else target


def _leads_somewhere(page: Path, site: Path, address: str, pages: dict[Path, _Page]) -> bool:
    target, anchor = _target(page, site, address), unquote(urlsplit(address).fragment)
    if not target.exists() or not target.is_relative_to(site):
        return False
    return not anchor or target not in pages or anchor in pages[target].ids


def _far(site: Path, pages: dict[Path, _Page], reached: dict[Path, set[Path]]) -> list[Path]:
    near = {site / "index.html", site / "404.html"}
    for _ in range(MOST_CLICKS):
        near |= {target for page in near for target in reached.get(page, ())}
    return [page for page in pages if page not in near]
