"""The proxy, with servers and clients on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import ipaddress
import socket

import pytest

from callboard.network._network_proxy import NetworkProxy, ProxyLimits, resolve_name
from callboard.network._network_rules import NetworkRules
from support import PATIENCE

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Own: 1\r\n\r\nhello"


class Upstream:
    """A server that keeps what it gets, and answers with fixed bytes."""

    def __init__(self, answer: bytes = OK, *, stays_open: bool = False) -> None:
        self.answer = answer
        self.stays_open = stays_open
        self.received: list[bytes] = []
        self.peers: list[str] = []
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            self.received.append(await reader.readuntil(b"\r\n\r\n"))
            self.begun.set()
            writer.write(self.answer)
            if self.stays_open:
                while data := await reader.read(1 << 16):
                    self.received.append(data)
                    writer.write(data.upper())
        except (OSError, asyncio.IncompleteReadError):
            self.received.append(b"")
        finally:
            writer.close()
            self.ended.set()


class Client:
    """A client of the proxy that writes bytes."""

    def __init__(self, proxy, access=None) -> None:
        self._port = int(proxy.server.rpartition(":")[2])
        pair = f"{access.username}:{access.password}" if access is not None else ""
        self.login = f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n" if pair else ""

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def head(self):
        return (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode()

    async def answer(self):
        """Read an answer with a length; give its first line and its body."""
        head = await self.head()
        length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
        body = await asyncio.wait_for(self.reader.readexactly(length), PATIENCE)
        return head.splitlines()[0].removeprefix("HTTP/1.1 "), body.decode()

    def write(self, request: str, headers: str, body: bytes = b""):
        self.writer.write(f"{request} HTTP/1.1\r\nHost: ignored.test\r\n{headers}\r\n".encode() + body)

    async def ask(self, request: str, *, headers: str = "", body: bytes = b"", login: str | None = None):
        """Send a request line with headers, and read the answer."""
        login = self.login if login is None else login
        self.write(request, headers + login, body)
        return await self.answer()

    async def tunnel(self, target: str):
        self.writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{self.login}\r\n".encode())
        return await self.head()

    async def rest(self):
        return await asyncio.wait_for(self.reader.read(), PATIENCE)


@pytest.fixture
async def opened():
    """Open proxies, and close them."""
    proxies = []

    async def open_proxy(**options):
        proxy = NetworkProxy(**options)
        await proxy.open()
        proxies.append(proxy)
        return proxy

    yield open_proxy
    for proxy in proxies:
        await proxy.close()


@pytest.fixture
async def upstream():
    async with Upstream() as server:
        yield server


def resolver(*answers):
    """Make a resolver that gives its answers one after the other, the last one for ever."""
    remaining = list(answers)

    async def resolve(name):
        answer = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if isinstance(answer, Exception):
            raise answer
        return [answer] if isinstance(answer, str) else answer

    return resolve


def admit(proxy, *allow, deny=()):
    """Make credentials; give them, and the list of refusals."""
    refusals = []
    return proxy.admit(NetworkRules(allow, tuple(deny)), refusals.append), refusals


async def test_request_is_forwarded_without_headers_of_the_connection(opened, upstream):
    proxy = await opened()
    access, refusals = admit(proxy, f"127.0.0.1:{upstream.port}")
    own = "Connection: X-Own\r\nX-Own: 1\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nX-Kept: 2\r\n"
    async with Client(proxy, access) as client:
        answer = await client.ask(f"GET http://127.0.0.1:{upstream.port}/a?b=c", headers=own)
    assert answer == ("200 OK", "hello")
    assert upstream.received == [
        f"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{upstream.port}\r\nX-Kept: 2\r\n"
        "Via: 1.1 callboard-agents\r\nConnection: close\r\n\r\n".encode()
    ]
    assert refusals == []


async def test_several_requests_share_a_connection_to_the_proxy(opened, upstream):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        for _ in range(3):
            assert await client.ask(f"GET http://127.0.0.1:{upstream.port}") == ("200 OK", "hello")
        assert (await client.ask("GET http://127.0.0.1:1/"))[0] == "403 Forbidden"
        assert await client.ask(f"GET http://127.0.0.1:{upstream.port}/") == ("200 OK", "hello")
    assert len(upstream.received) == 4


@pytest.mark.parametrize("chunked", [False, True])
async def test_body_is_forwarded(opened, chunked):
    async with Upstream(b"", stays_open=True) as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        headers, body = (
            ("Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n")
            if chunked
            else ("Content-Length: 5\r\n", b"hello")
        )
        server.answer = OK
        async with Client(proxy, access) as client:
            assert (await client.ask(f"POST http://127.0.0.1:{server.port}/", headers=headers, body=body))[
                0
            ] == "200 OK"
        await asyncio.wait_for(server.ended.wait(), PATIENCE)
    head, sent = server.received[0].decode(), b"".join(server.received[1:])
    assert head.count(headers.strip()) == 1
    assert b"hello" in sent


async def test_response_is_forwarded_in_all_its_framings(opened):
    answers = {
        b"HTTP/1.0 200 OK\r\n\r\nto the end": "to the end",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n": "abc",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok": "ok",
    }
    proxy = await opened()
    for answer, expected in answers.items():
        async with Upstream(answer) as server:
            access, _ = admit(proxy, f"127.0.0.1:{server.port}")
            async with Client(proxy, access) as client:
                client.write(f"GET http://127.0.0.1:{server.port}/", f"Connection: close\r\n{client.login}")
                assert expected in (await client.rest()).decode()


async def test_answer_that_is_cut_off_is_not_completed(opened):
    async with Upstream(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nonly this") as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as client:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.ask(f"GET http://127.0.0.1:{server.port}/")


async def test_tunnel_passes_bytes_in_both_directions(opened):
    async with Upstream(b"ready", stays_open=True) as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as client:
            assert (await client.tunnel(f"127.0.0.1:{server.port}")).startswith("HTTP/1.1 200 ")
            client.writer.write(b"hello\r\n\r\nmore")
            client.writer.write_eof()
            assert (await client.rest()) == b"readyMORE"
        assert server.received == [b"hello\r\n\r\n", b"more"]


async def test_websocket_is_forwarded(opened):
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: x\r\n\r\n"
    async with Upstream(switch, stays_open=True) as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as client:
            own = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
            client.write(f"GET http://127.0.0.1:{server.port}/chat", own + client.login)
            head = await client.head()
            assert "101 Switching Protocols" in head
            assert "Upgrade: websocket" in head
            client.writer.write(b"frame")
            assert await client.reader.readexactly(5) == b"FRAME"
        await asyncio.wait_for(server.ended.wait(), PATIENCE)
        assert b"Upgrade: websocket" in server.received[0]


async def test_other_protocols_are_not_switched_to(opened, upstream):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    own = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
    async with Client(proxy, access) as client:
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/", headers=own))[0] == "200 OK"
    assert b"h2c" not in upstream.received[0]


@pytest.mark.parametrize(
    "login", ["", "Proxy-Authorization: Basic eDp5\r\n", "Proxy-Authorization: Basic !\r\n", "Bearer"]
)
async def test_request_without_valid_credentials_is_refused(opened, upstream, login):
    proxy = await opened()
    access, refusals = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        login = client.login.replace("Basic", "Bearer") if login == "Bearer" else login
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/", login=login))[0].startswith("407 ")
        assert (await client.ask(f"CONNECT 127.0.0.1:{upstream.port}", login=login))[0].startswith("407 ")
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/", login=client.login * 2))[0].startswith(
            "407 "
        )
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/"))[0] == "200 OK"
    assert len(upstream.received) == 1
    assert refusals == []


async def test_each_context_has_its_own_rules(opened, upstream):
    proxy = await opened()
    (one, refused), (two, _) = admit(proxy), admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, one) as client:
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/"))[0] == "403 Forbidden"
        login = Client(proxy, two).login
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/", login=login))[0].startswith("407 ")
    assert [(refusal.host, refusal.port) for refusal in refused] == [("127.0.0.1", upstream.port)]


async def test_closed_context_loses_credentials_and_connections(opened):
    async with Upstream(b"ready", stays_open=True) as server:
        proxy = await opened()
        (one, _), (two, _) = admit(proxy, f"127.0.0.1:{server.port}"), admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, one) as cut, Client(proxy, two) as kept:
            for client in (cut, kept):
                await client.tunnel(f"127.0.0.1:{server.port}")
                client.writer.write(b"\r\n\r\n")
                assert await client.reader.readexactly(5) == b"ready"
            await proxy.withdraw(one)
            with contextlib.suppress(ConnectionError):
                assert await cut.rest() == b""
            assert not one.connections
            kept.writer.write(b"still")
            assert await kept.reader.readexactly(5) == b"STILL"
        async with Client(proxy, one) as client:
            assert (await client.ask(f"GET http://127.0.0.1:{server.port}/"))[0].startswith("407 ")


async def test_name_that_changes_to_loopback_is_refused_and_not_reached(opened, upstream):
    """DNS rebinding: each connection's addresses are checked, and exactly these are connected to."""
    public, loopback = "203.0.113.7", "127.0.0.1"
    proxy = await opened(resolver=resolver(public, loopback), limits=ProxyLimits(connect_seconds=0.05))
    access, refusals = admit(proxy, "*", f"*:{upstream.port}", deny=["203.0.113.0/24"])
    for name, address in (("203.0.113.7", public), ("127.0.0.1", loopback)):
        async with Client(proxy, access) as client:
            status, body = await client.ask(f"GET http://rebind.test:{upstream.port}/")
            assert status == "403 Forbidden"
            assert name in body
        assert refusals[-1].address == address
    assert upstream.received == []


async def test_connection_goes_to_the_address_that_was_checked(opened, upstream, monkeypatch):
    """The name is resolved once: a second lookup that would give another address is never made."""
    lookups = []

    async def resolve(name):
        lookups.append(name)
        return ["127.0.0.1"]

    proxy = await opened(resolver=resolve)
    access, _ = admit(proxy, f"shop.test:{upstream.port}", f"127.0.0.1:{upstream.port}")
    hosts, connect = [], asyncio.open_connection

    async def recorded(host, port):
        hosts.append(host)
        return await connect(host, port)

    async with Client(proxy, access) as client:
        monkeypatch.setattr(asyncio, "open_connection", recorded)
        assert (await client.ask(f"GET http://shop.test:{upstream.port}/"))[0] == "200 OK"
    assert (lookups, hosts) == (["shop.test"], ["127.0.0.1"])
    assert f"Host: shop.test:{upstream.port}\r\n".encode() in upstream.received[0]


async def test_name_with_one_refused_address_is_refused(opened):
    proxy = await opened(resolver=resolver(["9.9.9.9", "::ffff:10.0.0.1"]))
    access, refusals = admit(proxy, "*")
    async with Client(proxy, access) as client:
        assert (await client.ask("GET http://example.org/"))[0] == "403 Forbidden"
    assert ipaddress.ip_address(refusals[0].address) == ipaddress.ip_address("::ffff:10.0.0.1")


@pytest.mark.parametrize(
    ("request_line", "rule"),
    [
        ("GET http://2130706433/", "its address is loopback, and no rule names it"),
        ("GET http://0x7f.1/", "its address is loopback, and no rule names it"),
        ("GET http://[::ffff:127.0.0.1]/", "its address is loopback, and no rule names it"),
        ("CONNECT 169.254.169.254:443", "its address is link-local, and no rule names it"),
        ("CONNECT example.org:22", "no rule names its port 22"),
        ("CONNECT example.org:8080", "no rule names its port 8080"),
        ("GET http://example.org:8080/", "no rule names its port 8080"),
        ("GET http://denied.test/", "denied by 'denied.test'"),
    ],
)
async def test_refusal_is_an_answer_and_a_record(opened, request_line, rule):
    proxy = await opened(resolver=resolver("9.9.9.9"))
    access, refusals = admit(proxy, "*", deny=["denied.test"])
    async with Client(proxy, access) as client:
        status, body = await client.ask(request_line)
    assert status == "403 Forbidden"
    assert body == f"Refused by the network rules.\n\n{refusals[0]}\n"
    assert refusals[0].rule == rule


async def test_refused_request_with_a_body_is_answered_on_the_same_connection(opened, upstream):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        body = b"x" * 300_000
        status, _ = await client.ask("POST http://10.0.0.1/", headers=f"Content-Length: {len(body)}\r\n", body=body)
        assert status == "403 Forbidden"
        assert (await client.ask(f"GET http://127.0.0.1:{upstream.port}/"))[0] == "200 OK"


async def test_own_answer_is_plain_text_that_never_runs(opened):
    proxy = await opened()
    access, _ = admit(proxy, deny=["*"])
    async with Client(proxy, access) as client:
        client.write("GET http://a.test/<script>", client.login)
        head = await client.head()
    assert "Content-Type: text/plain; charset=utf-8\r\nContent-Length: " in head
    assert "X-Content-Type-Options: nosniff\r\n" in head


async def test_proxy_is_not_reached_through_itself(opened):
    proxy = await opened(resolver=resolver("127.0.0.1"))
    port = int(proxy.server.rpartition(":")[2])
    access, refusals = admit(proxy, "127.0.0.0/8:*", "proxy.test:*")
    async with Client(proxy, access) as client:
        for host in ("127.0.0.1", "127.9.9.9", "proxy.test"):
            status, _ = await client.ask(f"CONNECT {host}:{port}")
            assert status == "403 Forbidden"
    assert [refusal.rule for refusal in refusals] == ["it is the proxy itself"] * 3


SMUGGLED = [
    "GET / ",
    "GET https://127.0.0.1/",
    "GET ftp://127.0.0.1/",
    "GET http://",
    "GET http://user@127.0.0.1/",
    "GET http://127.0.0.1:99999/",
    "GET http://127.0.0.1:/",
    "GET http://exa<mple/",
    "GET http://a\\b/",
    "OPTIONS *",
    "CONNECT 127.0.0.1",
    "CONNECT 127.0.0.1:443/",
    "CONNECT http://127.0.0.1:443",
    "CONNECT :443",
]


@pytest.mark.parametrize("request_line", SMUGGLED)
async def test_request_that_is_none_for_a_proxy_is_refused(opened, request_line):
    proxy = await opened()
    access, refusals = admit(proxy, "*:*", "127.0.0.1:*")
    async with Client(proxy, access) as client:
        assert (await client.ask(request_line))[0] == "400 Bad Request"
    assert refusals == []


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 4\r\n",
        "Content-Length: +3\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: a\r\n folded\r\nContent Length: 3\r\n",
        "X: a\rTransfer-Encoding: chunked\r\n",
        "X: \0\r\n",
    ],
)
async def test_request_with_two_readings_is_not_forwarded(opened, upstream, headers):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        status, _ = await client.ask(
            f"POST http://127.0.0.1:{upstream.port}/", headers=headers, body=b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"
        )
        assert status.partition(" ")[0] in {"400", "501"}
    assert upstream.received == []


async def test_connection_header_does_not_remove_the_length(opened, upstream):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        await client.ask(
            f"POST http://127.0.0.1:{upstream.port}/",
            headers="Connection: Content-Length, Host\r\nContent-Length: 3\r\n",
            body=b"abc",
        )
    assert b"Content-Length: 3\r\n" in upstream.received[0]
    assert f"Host: 127.0.0.1:{upstream.port}".encode() in upstream.received[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no http\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "no http", "two lengths", "a challenge of a proxy", "long headers"],
)
async def test_server_without_a_valid_answer_is_a_bad_gateway(opened, answer):
    async with Upstream(answer) as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as client:
            status, body = await client.ask(f"GET http://127.0.0.1:{server.port}/")
        assert status == "502 Bad Gateway"
        assert "The server does not answer" in body


async def test_server_that_is_not_there_is_a_bad_gateway(opened, upstream):
    await upstream.__aexit__()
    proxy = await opened(resolver=resolver(OSError("no such name"), []))
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}", "*")
    async with Client(proxy, access) as client:
        for url, reason in (
            (f"http://127.0.0.1:{upstream.port}/", "can't be reached"),
            ("http://one.test/", "can't be resolved (no such name)"),
            ("http://two.test/", "has no address"),
        ):
            status, body = await client.ask(f"GET {url}")
            assert status == "502 Bad Gateway"
            assert reason in body


async def test_long_headers_are_refused(opened, upstream):
    proxy = await opened()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client:
        with contextlib.suppress(ConnectionError):  # what was not read resets the connection
            answer = await client.ask(f"GET http://127.0.0.1:{upstream.port}/", headers=f"X: {'x' * 200_000}\r\n")
            assert answer[0].startswith("431 ")
    assert upstream.received == []


async def test_too_many_connections_of_a_context_are_refused(opened):
    async with Upstream(b"ready", stays_open=True) as server:
        proxy = await opened(limits=ProxyLimits(context_connections=1))
        (access, _), (other, _) = admit(proxy, f"127.0.0.1:{server.port}"), admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as first, Client(proxy, access) as second, Client(proxy, other) as third:
            assert "200" in await first.tunnel(f"127.0.0.1:{server.port}")
            assert (await second.ask(f"CONNECT 127.0.0.1:{server.port}"))[0].startswith("503 ")
            assert "200" in await third.tunnel(f"127.0.0.1:{server.port}")


async def test_too_many_connections_in_total_are_cut(opened):
    proxy = await opened(limits=ProxyLimits(connections=1))
    access, _ = admit(proxy)
    async with Client(proxy, access) as first:
        assert (await first.ask("GET http://a.test/"))[0] == "403 Forbidden"
        async with Client(proxy, access) as second:
            with contextlib.suppress(ConnectionError):
                assert await second.rest() == b""
        assert (await first.ask("GET http://a.test/"))[0] == "403 Forbidden"


async def test_connection_is_closed_whose_task_is_cancelled_before_it_begins(opened):
    """As at the end of the program, right after a browser has connected once more."""
    proxy = await opened()
    others, port = asyncio.all_tasks(), int(proxy.server.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        serving = set()
        while not serving:
            await asyncio.sleep(0)
            begun = asyncio.all_tasks() - others
            serving = {task for task in begun if "_accept_connection" not in task.get_coro().__qualname__}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0.01)
        with contextlib.suppress(ConnectionError):
            assert client.recv(1) == b""


async def test_idle_connections_are_cut(opened):
    async with Upstream(b"ready", stays_open=True) as server:
        proxy = await opened(limits=ProxyLimits(idle_seconds=0.05, login_seconds=0.05))
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy) as silent, Client(proxy, access) as client:
            await client.tunnel(f"127.0.0.1:{server.port}")
            for connection in (silent, client):
                with contextlib.suppress(ConnectionError):
                    assert await connection.rest() == b""


async def test_server_is_cut_off_when_the_browser_gives_up(opened):
    async with Upstream(b"", stays_open=True) as server:
        proxy = await opened()
        access, _ = admit(proxy, f"127.0.0.1:{server.port}")
        async with Client(proxy, access) as client:
            client.write(f"GET http://127.0.0.1:{server.port}/", client.login)
            await asyncio.wait_for(server.begun.wait(), PATIENCE)
        await asyncio.wait_for(server.ended.wait(), PATIENCE)


async def test_close_leaves_nothing_behind(upstream):
    before = asyncio.all_tasks()
    proxy = NetworkProxy()
    await proxy.open()
    access, _ = admit(proxy, f"127.0.0.1:{upstream.port}")
    async with Client(proxy, access) as client, Client(proxy) as silent:
        await client.tunnel(f"127.0.0.1:{upstream.port}")
        await proxy.close()
        await proxy.close()
        for connection in (client, silent):
            with contextlib.suppress(ConnectionError):
                assert await connection.rest() == b""
        with pytest.raises(OSError, match=r"refused|Connect"):
            await Client(proxy).__aenter__()
    await asyncio.wait_for(upstream.ended.wait(), PATIENCE)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == set()
    gc.collect()


async def test_names_are_resolved_as_this_machine_does():
    assert "127.0.0.1" in await resolve_name("localhost")
