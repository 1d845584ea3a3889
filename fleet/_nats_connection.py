"""The connection to a server of NATS that the settings describe."""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any

from callboard.fleet._nats_engine import NatsEngine
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from callboard.config import Settings

_SEED = re.compile(r"^SU[A-Z2-7]{56}$", re.MULTILINE)


def make_engine(settings: Settings) -> NatsEngine:
    """Make the connection that the settings describe, without opening it.

    On a server of this computer without credentials, the first machine makes the streams.

    Raises:
        SettingsError: If a file can't be read.
    """
    fleet = settings.fleet
    is_open_to_all = (fleet.url or "").startswith("nats:") and fleet.credentials is None
    return NatsEngine(fleet.url or "", fleet.machine, makes_streams=is_open_to_all, **connection_options(settings))


def connection_options(settings: Settings) -> dict[str, Any]:
    """Return the arguments of ``nats.connect`` for encryption and credentials.

    Raises:
        SettingsError: If a file can't be read.
    """
    fleet, options = settings.fleet, dict[str, Any]()
    try:
        if fleet.credentials is not None:
            path = settings.path(fleet.credentials)
            text = path.read_text(encoding="ascii")
            if _SEED.search(text) is None:
                msg = (
                    f"fleet.credentials: {path} has no key: it needs the seed of a user's key (SU...), or a .creds file"
                )
                raise SettingsError(msg)
            options["user_credentials" if "USER JWT" in text else "nkeys_seed"] = str(path)
        if (fleet.url or "").startswith("tls:"):
            options["tls"] = ssl.create_default_context(cafile=None if fleet.ca is None else settings.path(fleet.ca))
    except (OSError, ValueError) as error:
        msg = f"fleet: a file for the connection can't be read: {error}"
        raise SettingsError(msg) from error
    return options
