"""Agents' browsers do not reach the console, wherever it is served."""

from __future__ import annotations

import http.client
import json

import pytest

from callboard.config import NetworkSettings
from callboard.console import ConsoleServer
from callboard.messages import Look
from callboard.surfaces import ToolError
from support import PATIENCE, wait_for

EVERYWHERE = NetworkSettings(allow=("*", "127.0.0.0/8:*", "localhost:*", "[::1]:*"))


@pytest.fixture
def console(tmp_path):
    """Serve a console."""
    server = ConsoleServer(tmp_path / "journal.db", port=0)
    server.start()
    yield server
    server.stop()


def test_agents_browser_gets_nothing_whatever_hosts_are_allowed(console, debugging_port, opened, open_in):
    link = console.link()
    with opened(cdp_url=debugging_port, network=EVERYWHERE) as surface:
        assert open_in(surface, link).look().text == "agents may not use the console"
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
    fields = json.dumps({"link": link.partition("#")[2]})
    connection.request("POST", "/session", fields, {"origin": f"http://127.0.0.1:{console.port}"})
    assert connection.getresponse().read().startswith(b'{"token"')  # the agent's page did not use the link
    connection.close()


def test_unguarded_browser_has_no_tab_with_the_console(console, debugging_port, opened, open_in, run):
    address = f"http://127.0.0.1:{console.port}/health"
    with opened(cdp_url=debugging_port, network=NetworkSettings(guarded=False)) as surface:
        tab = open_in(surface, address)
        wait_for(lambda: [target.id for target in run(surface.targets())] == ["browser"])  # once it has its title
        with pytest.raises(ToolError, match="is closed"):
            run(surface.observe(tab.target, Look()))
