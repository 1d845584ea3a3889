"""The command `fleet setup`: streams and the server's configuration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from callboard.terminal._commands import fail
from callboard.terminal._fleet_serving import fleet_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def set_up_fleet(path: Path | None, machines: Sequence[str]) -> None:
    """Make the streams of a fleet, and print its server's configuration.

    Args:
        path: The settings file or its folder.
        machines: The machines; by default, the one of the settings.
    """
    settings = fleet_settings(path)
    from callboard.fleet import check_library

    check_library()
    from callboard.fleet import authorization, connection_options, server_settings, set_up

    names = machines or (settings.fleet.machine,)
    try:
        users = authorization(names)
    except ValueError:
        fail(f"--machine {' '.join(names)}: a name has letters, digits and - between them, and at most 40 characters")
    version = asyncio.run(set_up(settings.fleet.url or "", names, **connection_options(settings)))
    typer.echo(f"the streams are there, and the queues of {', '.join(names)}", err=True)
    typer.echo(f"# for nats-server {version}; a public key comes from: nk -gen user -pubout\n")
    typer.echo(server_settings(version))
    typer.echo(users, nl=False)
