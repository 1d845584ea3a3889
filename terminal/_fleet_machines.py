"""The command `fleet`: the machines and the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from callboard.history import numbered, plain
from callboard.terminal._fleet_serving import fleet_settings
from callboard.terminal._journals import print_json, span
from callboard.terminal._text import BAD, GOOD

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.fleet import FleetListing

_STYLES = {"there": GOOD, "draining": "yellow", "away": BAD, "stopped": "dim"}
_DURABILITY = {
    "always": "each message is on its disk before it is confirmed",
    "later": "messages are on its disk some time after they are confirmed",
    "unknown": "durability unknown",
}


def print_machines(console: Console, path: Path | None, *, as_json: bool) -> None:
    """Print the machines of a fleet, a line each, and its server."""
    settings = fleet_settings(path)
    from callboard.fleet import check_library

    check_library()
    from callboard.fleet import list_machines

    listing = asyncio.run(list_machines(settings))
    if as_json:
        print_json(listing.model_dump(mode="json"))
        return
    if listing.machines:
        console.print(_table(listing))
    server = listing.server
    durability = f"{_DURABILITY[server.durability]} ({server.reason})"
    summary = (
        f"{numbered(len(listing.machines), 'machine')}; nats-server {server.version} at {server.url}: {durability}"
    )
    console.print(Text(plain(summary), style="dim"))


def _table(listing: FleetListing) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("machine", style="cyan", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("version", overflow="fold")
    for name in ("targets", "running", "queued", "last sign"):
        table.add_column(name, justify="right")
    for machine in listing.machines:
        state = Text(machine.state, style=_STYLES[machine.state])
        counts = (str(machine.targets), str(machine.running), str(machine.queued))
        table.add_row(plain(machine.name), state, plain(machine.version), *counts, span(machine.seconds))
    return table
