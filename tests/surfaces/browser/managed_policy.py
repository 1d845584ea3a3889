"""Program that opens addresses in a browser with the managed policy, and prints the errors, as JSON.

It runs as root, in namespaces of its own for mounts and networks, so that no other browser gets the policy.

Arguments: the browser's program, and the addresses; each is opened as a page, and in a frame.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from callboard.network import NetworkProxy, NetworkRules
from callboard.surfaces.browser._network_guard import MANAGED_POLICY, context_options, launch_options

CONFIGURATION = Path("/etc/chromium")
FRAME = """url => new Promise(resolve => {
    const frame = document.createElement('iframe');
    frame.onload = resolve; frame.src = url; document.body.append(frame); })"""


async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve an empty page."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>home</title>")
    writer.close()


async def main(program: str, *urls: str) -> None:
    """Print the error of each address as a page, and the text of each as a frame."""
    from playwright.async_api import Error, async_playwright

    server = await asyncio.start_server(site, "127.0.0.2", 0)
    home = f"127.0.0.2:{server.sockets[0].getsockname()[1]}"
    proxy = NetworkProxy()
    await proxy.open()
    access = proxy.admit(NetworkRules((home,)), lambda _: None)
    errors = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, **launch_options(proxy.server))
        context = await browser.new_context(**context_options(access))
        for url in urls:
            page = await context.new_page()
            await page.goto(f"http://{home}/")
            if url.startswith("data:"):  # pages open no other ones in frames
                await page.evaluate(FRAME, url)
                errors[f"frame of {url}"] = page.frames[1].url
            try:
                await page.goto(url)
            except Error as error:
                errors[url] = error.message.split(" at ")[0]
        await browser.close()
    await proxy.close()
    sys.stdout.write(json.dumps(errors))


if __name__ == "__main__":
    for command in ("ip link set lo up", f"mount -t tmpfs none {CONFIGURATION}"):
        subprocess.run(command.split(), check=True)
    folder = CONFIGURATION / "policies" / "managed"
    folder.mkdir(parents=True)
    (folder / "callboard.json").write_text(json.dumps(MANAGED_POLICY))
    asyncio.run(main(*sys.argv[1:]))
