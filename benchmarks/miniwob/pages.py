"""The pages of the package ``miniwob``, served on loopback.

The package is installed with ``pip install --no-deps miniwob``: the pages need nothing of its gym. Two lines are added
to a page: the seed of its random numbers, and a time limit of 1,000 s, as the gym has it.
"""

from __future__ import annotations

import importlib.util
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from callboard.config import NetworkSettings

LOCAL = NetworkSettings(allow=("127.0.0.1:*",))
"""The only host that the pages may reach."""
MISSING = "the pages are missing: pip install --no-deps miniwob"
_ADDED = "<script>core.EPISODE_MAX_TIME = 1000000; Math.seedrandom('{seed}')</script>"
_STARTED = "<script>addEventListener('load', () => core.startEpisodeReal())</script>"
"""Starts a page, for an agent that is not asked to do so."""


def pages_folder() -> Path | None:
    """Find the folder of the pages; None if the package is missing."""
    spec = importlib.util.find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "html")


def page_names() -> list[str]:
    """List the pages.

    Raises:
        FileNotFoundError: If the package is missing.
    """
    folder = pages_folder()
    if folder is None:
        raise FileNotFoundError(MISSING)
    return sorted(path.stem for path in (folder / "miniwob").glob("*.html"))


class _Handler(SimpleHTTPRequestHandler):
    """Serve files; a page with a seed gets the added lines."""

    timeout = 0.5  # a browser opens connections that it may not use

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        seeds = query.get("seed")
        if seeds is None:
            super().do_GET()
            return
        page = Path(self.translate_path(self.path)).read_bytes()
        body = page + f"{_ADDED.format(seed=int(seeds[0]))}{_STARTED if 'start' in query else ''}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore connections that the browser has closed."""


class Pages:
    """The server of the pages."""

    def __init__(self) -> None:
        folder = pages_folder()
        if folder is None:
            raise FileNotFoundError(MISSING)
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))

    def url(self, name: str, seed: int) -> str:
        """Return the address of a page."""
        return f"http://127.0.0.1:{self._server.server_port}/miniwob/{name}.html?seed={seed}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
