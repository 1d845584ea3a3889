"""A shop of three pages on loopback, and pages that are hard to work with."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from support import HELD

"""The prefix of the home of a test's browser."""
LOOPBACK = ("127.0.0.1:*", "localhost:*")
"""The hosts of the shop, as network rules allow them."""
PRICES = {"Content-Disposition": 'attachment; filename="prices.csv"'}
LIST = """<title>Shop</title><h1>The shop</h1>
<form action="/" method="get"><input name="q" aria-label="Search"><button>Search</button></form>
<table id="goods"><thead><tr><th>Item<th>Price</thead><tr><td>Kettle<td>24.50<tr><td>Cup<td>3.20
<tr><td colspan="2">Postage is free</table>
<a href="/order?item=kettle">Order the kettle</a> <a href="/order?item=cup" target="_blank">In a new tab</a>
<a href="/prices.csv">Price list</a>
<button onclick="if (confirm('Delete the cart?')) document.title = 'empty'">Empty the cart</button>
<div id="late"></div><div id="host"></div><iframe src="/frame" title="news"></iframe>
<script>
  host.attachShadow({mode: 'open'}).innerHTML = '<button onclick="document.title = `shadowed`">In the shadow</button>';
</script>"""
ORDER = """<title>Order</title><h1>Order</h1><form action="/confirm" method="post" enctype="{enctype}">
<label>Name <input name="name"></label> <label>Card <input name="card" autocomplete="cc-number"></label>
<label>Size <select name="size"><option>small<option>large</select></label>
<label><input type="checkbox" name="gift"> A gift</label> <label>Note <input type="file" name="note"></label>
<button>Send the order</button></form>"""
LOGIN = """<title>Login</title><form action="/confirm" method="post"><label>User <input name="user"></label>
<label>Password <input type="password" name="password"></label><button>Enter</button></form>"""


class Shop:
    """The shop's server, and what was sent to it."""

    def __init__(self) -> None:
        self.orders: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.pages: dict[str, str] = {}
        """Further pages, by their paths."""
        self.redirects: dict[str, str] = {}
        """Addresses to go to instead, by the paths."""
        self.posts_to: dict[str, tuple[int, str]] = {}
        """Answers without a page to forms, by the paths: the status, and the address of a redirect."""
        self.answers: dict[str, str] = {}
        """Pages after forms, by the paths."""
        self.hanging = threading.Event()
        """Set once a page is asked for that never comes."""
        self.received = threading.Event()
        """Set once something is sent to the path ``/slow``."""
        self.released = threading.Event()
        self.seconds = 0.0
        """The time that each answer takes."""
        shop = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 0.5  # a browser opens connections that it may not use

            def do_GET(self) -> None:
                shop.paths.append(self.path)
                path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
                shop.hold(path)
                if path in shop.redirects:
                    self.answer(b"", status=302, Location=shop.redirects[path])
                    return
                if path == "/prices.csv":
                    self.answer(b"item,price\nkettle,24.50\n", "text/csv", **PRICES)
                    return
                kind = "image/svg+xml" if path.endswith(".svg") else "text/html; charset=utf-8"
                self.answer(shop.page(path, query).encode(), kind)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                shop.paths.append(f"POST {self.path}")
                fields = {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
                shop.orders.append({"body": body} if "multipart" in self.headers["Content-Type"] else fields)
                shop.hold(self.path)
                if self.path in shop.posts_to:
                    status, address = shop.posts_to[self.path]
                    self.answer(b"", status=status, Location=address)
                    return
                thanks = f"<title>Thanks</title><h1>Thank you</h1><p>Order {len(shop.orders)}"
                self.answer(shop.answers.get(self.path, thanks).encode())

            def answer(
                self, body: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str
            ) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A browser closes its connections when it likes."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.other_url = f"http://localhost:{self._server.server_port}"
        """The same shop at another origin."""

    def hold(self, path: str) -> None:
        """Keep an answer back."""
        if path in {"/hang", "/slow"}:
            (self.hanging if path == "/hang" else self.received).set()
            self.released.wait(HELD)
        time.sleep(self.seconds)

    def page(self, path: str, query: dict[str, list[str]]) -> str:
        """Give a page."""
        if path in self.pages:
            return self.pages[path]
        if path == "/":
            return f"{LIST}<p>You searched for {query['q'][0]}" if "q" in query else LIST
        if path == "/order":
            return ORDER.format(enctype=query.get("enctype", ["application/x-www-form-urlencoded"])[0])
        return {"/login": LOGIN, "/frame": "<button onclick=\"this.textContent = 'read'\">Read the news</button>"}.get(
            path, f"<title>{path}</title><p>The page {path}"
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
