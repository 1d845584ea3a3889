"""Addresses of documents, links and forms, resolved as browsers do."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from callboard.network import canonical_host

if TYPE_CHECKING:
    from playwright.async_api import Frame

_EDGES = "".join(map(chr, range(33)))
"""C0 controls and the space, which are stripped from both ends. Source: the URL standard, "basic URL parser"."""
_WEB = re.compile("(https?):(/*)", re.IGNORECASE)
_SCHEME = re.compile("[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_OWN_TEXT = "about:srcdoc"
"""The address of a document whose text is in the page around it."""
_PORTS = {"http": ":80", "https": ":443"}


def origin_of(url: str) -> str:
    """Return the origin of an address; empty for one without.

    >>> origin_of("http://ada@Shop.example.:80/order")
    'http://shop.example'
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        return ""
    try:
        netloc = _plain_netloc(parts)
    except ValueError:  # browsers open a few names that we do not
        netloc = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{netloc}"


def without_query(url: str) -> str:
    """Return the origin and path of an address.

    >>> without_query("https://shop.example/order?card=4111#end")
    'https://shop.example/order'
    """
    return origin_of(url) + urlsplit(url).path


def resolved(base: str, reference: str) -> str:
    r"""Resolve a reference as browsers do; empty if it is uncertain.

    >>> resolved("http://shop.example/a/b", " \\\\Evil.example:80\\x ")
    'http://evil.example/x'
    """
    text = re.sub("[\t\n\r]", "", reference.strip(_EDGES))
    web = _WEB.match(text)
    if web is None and _SCHEME.match(text):
        return text  # no page of the web
    end = re.search("[?#]", text)
    head, tail = (text, "") if end is None else (text[: end.start()], text[end.start() :])
    head = head.replace("\\", "/")
    web, base_scheme = _WEB.match(head), urlsplit(base).scheme
    if web is not None:
        is_relative = web[1].lower() == base_scheme and len(web[2]) < 2
        head = web[2] + head[web.end() :] if is_relative else f"{web[1]}://{head[web.end() :]}"
    elif head.startswith("//"):
        head = f"//{head.lstrip('/')}"
    try:
        return _with_plain_host(urljoin(base, head + tail))
    except ValueError:  # no address
        return ""


def _with_plain_host(url: str) -> str:
    """Return an address with its host in one form, or empty.

    Raises:
        ValueError: If it is no address.
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, _plain_netloc(parts), *parts[2:])) if parts.scheme in _PORTS else ""


def _plain_netloc(parts: SplitResult) -> str:
    """Return the host of an address in one form.

    A port that is not the usual one follows.

    Raises:
        ValueError: If it is not certain which host that is.
    """
    text = parts.hostname or ""
    plain = unicodedata.normalize("NFKC", unquote(text))
    if ":" in plain and plain != text:
        msg = f"{text!r} is no host"
        raise ValueError(msg)
    host = canonical_host(plain)
    if isinstance(host, IPv6Address):
        mapped = host.ipv4_mapped  # newer Pythons write it with dots, browsers never do
        host = f"[::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}]" if mapped is not None else f"[{host}]"
    port = "" if parts.port is None else f":{parts.port}"
    return f"{host}{port.removesuffix(_PORTS[parts.scheme])}"


def document_url(frame: Frame) -> str:
    """Return the address of a frame's document; empty if uncertain.

    An empty document has that of the one around it. But all pages further out can put one of their own there, too.
    """
    parent = frame.parent_frame
    if urlsplit(frame.url).scheme != "about" or parent is None:
        return frame.url
    urls = frame_urls(parent)
    return urls[0] if frame.url == _OWN_TEXT or len(set(map(origin_of, urls))) == 1 else ""


def frame_urls(frame: Frame) -> list[str]:
    """Return the addresses of a frame's document and of those around it."""
    urls = [document_url(frame)]
    return urls if frame.parent_frame is None else [*urls, *frame_urls(frame.parent_frame)]


async def base_url(frame: Frame) -> str:
    """Return the address that references in a frame's document are relative to."""
    page_url = document_url(frame)
    for base in await frame.locator("base[href]").element_handles():
        url = resolved(page_url, await base.get_attribute("href") or "")
        return url if not url or origin_of(url) else page_url  # those of other schemes have no effect
    return page_url
