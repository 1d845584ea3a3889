"""Program that lists what a browser sends besides the requests of its page, as JSON.

These are the packets that do not go to its proxy, and the servers that it asks its proxy for by itself.

It runs as root, in a network namespace of its own. There, every address is one of this machine, so each attempt to
reach another one is a packet on loopback.

Arguments: the browser's program; a list of what is expected, as JSON. With an empty one the browser is guarded.
Otherwise it has a proxy and no other argument of ours, and ends as soon as it has sent all of them.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from callboard.network import NetworkProxy, NetworkRules
from callboard.surfaces.browser._network_guard import NO_BYPASS, context_options, launch_options

if TYPE_CHECKING:
    import h11

    from callboard.network import ProxyAccess

SETUP = (
    "link set lo up",
    "link add veth-a type veth peer name veth-b",  # WebRTC uses no interface of loopback
    "addr add 10.9.9.1/24 dev veth-a",
    "link set veth-a up",
    "link set veth-b up",
    "route add local 0.0.0.0/0 dev lo",
)
PAGE = """() => {
    document.body.innerHTML = `<form><input name=email autocomplete=email><input name=cc autocomplete=cc-number>
        <input type=password><input type=search name=q></form><textarea></textarea>`;
    document.querySelector('textarea').focus();
    document.execCommand('insertText', false, 'wrongg wrods ');
    for (const rel of ['dns-prefetch', 'preconnect', 'prefetch'])
        document.head.insertAdjacentHTML('beforeend', `<link rel=${rel} href="https://${rel}.test/">`);
    document.head.insertAdjacentHTML('beforeend', `<script type=speculationrules>{"prefetch": [
        {"source": "list", "urls": ["https://speculation.test/"], "eagerness": "immediate"}]}</script>`);
    new WebTransport('https://198.51.100.2/').ready.catch(() => 0);
    const login = {username: 'u', credential: 'p'};
    const peer = new RTCPeerConnection({iceServers: [{urls: ['stun:198.51.100.6:3478', 'stun:stun.test:3478']},
        {urls: ['turn:198.51.100.7:3478?transport=tcp', 'turns:turn.test:443?transport=tcp'], ...login}]});
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
    return new Promise(resolve => {
        peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && resolve('complete');
    });
}"""
_OF_PAGE = {"198.51.100.7:3478"}
_IPV4 = 0x0800
_OUTGOING = 4


def packets_of(frame: bytes) -> tuple[Any, ...] | None:
    """Return a packet's protocol and target; None if it begins no exchange."""
    if struct.unpack("!H", frame[12:14])[0] != _IPV4:
        return None
    header = frame[14:]
    target, payload = socket.inet_ntoa(header[16:20]), header[(header[0] & 15) * 4 :]
    port = struct.unpack("!H", payload[2:4])[0]
    if header[9] == socket.IPPROTO_TCP and payload[13] & 0x12 == 0x02:
        return ("tcp", target, port)
    if header[9] == socket.IPPROTO_UDP:
        return ("dns", name_of(payload[20:])) if port == 53 else ("udp", target, port)
    return None


def name_of(question: bytes) -> str:
    """Return the name in a question to the DNS."""
    labels = []
    while question[0]:
        labels.append(question[1 : 1 + question[0]].decode("latin1"))
        question = question[1 + question[0] :]
    return ".".join(labels)


def record(packets: set[tuple[Any, ...]]) -> None:
    """Record all packets from now on."""
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    sniffer.bind(("lo", 0))

    def read() -> None:
        while True:
            frame, address = sniffer.recvfrom(1 << 16)
            packet = packets_of(frame) if address[2] == _OUTGOING else None
            if packet is not None:
                packets.add(packet)

    threading.Thread(target=read, daemon=True).start()


class AskedProxy(NetworkProxy):
    """A proxy that adds the servers that it is asked for to what the browser has sent, but not those of the page."""

    def __init__(self, sent: set[tuple[Any, ...]]) -> None:
        super().__init__()
        self._sent = sent

    def authenticate(self, request: h11.Request) -> ProxyAccess | None:
        """Note the server of a request."""
        target = request.target.decode()
        server = target if request.method == b"CONNECT" else urlsplit(target).netloc
        if not server.startswith("127.") and not server.endswith((".test", ".test:443")) and server not in _OF_PAGE:
            self._sent.add(("proxy", server))
        return super().authenticate(request)


async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve an empty page."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>home</title>")
    writer.close()


async def main(program: str, expected: str) -> None:
    """Open a page that tries to pass the proxy, and print the packets that did."""
    from playwright.async_api import async_playwright

    packets: set[tuple[Any, ...]] = set()
    record(packets)
    leaks = set(map(tuple, json.loads(expected)))
    server = await asyncio.start_server(site, "127.0.0.2", 0)
    port = server.sockets[0].getsockname()[1]
    proxy = AskedProxy(packets)
    await proxy.open()
    access = proxy.admit(NetworkRules((f"127.0.0.2:{port}",)), lambda _: None)
    unguarded = {"proxy": {"server": proxy.server, "bypass": NO_BYPASS}}
    start = unguarded if leaks else launch_options(proxy.server)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, **start)
        page = await (await browser.new_context(**context_options(access))).new_page()
        await page.goto(f"http://127.0.0.2:{port}/")
        tries = asyncio.ensure_future(page.evaluate(PAGE))
        while not tries.done() and not (leaks and packets >= leaks):
            await asyncio.wait([tries], timeout=0.02)
        await browser.close()
        await asyncio.gather(tries, return_exceptions=True)
    await proxy.close()
    own = {("tcp", "127.0.0.1", int(proxy.server.rpartition(":")[2])), ("tcp", "127.0.0.2", port)}
    sys.stdout.write(json.dumps(sorted(packets - own, key=str)))


if __name__ == "__main__":
    for line in SETUP:
        subprocess.run(["ip", *line.split()], check=True)  # noqa: S607 - it is where the system has it
    asyncio.run(main(*sys.argv[1:]))
