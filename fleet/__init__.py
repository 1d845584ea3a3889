"""A fleet: supervisors on several machines that give each other work.

They do so through an engine, in memory or on NATS JetStream.
"""

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names
from callboard.fleet._engine import (
    ACK_SECONDS,
    Bucket,
    BucketEntry,
    ConflictError,
    DamagedFileError,
    Delivery,
    EngineAwayError,
    FleetEngine,
    QueueFullError,
    StoredFile,
)
from callboard.fleet._fleet_link import FleetLink, check_library
from callboard.fleet._local_machines import LocalMachines, LocalStart, read_start
from callboard.fleet._memory_engine import MemoryEngine, MemoryHub
from callboard.fleet._permissions import authorization, machine_permissions, server_settings
from callboard.fleet._private_server import find_server

if TYPE_CHECKING:
    from callboard.fleet._machine_list import Durability, FleetListing, Presence, list_machines
    from callboard.fleet._nats_connection import connection_options, make_engine
    from callboard.fleet._nats_engine import NatsEngine, set_up

__all__ = [
    "ACK_SECONDS",
    "Bucket",
    "BucketEntry",
    "ConflictError",
    "DamagedFileError",
    "Delivery",
    "Durability",
    "EngineAwayError",
    "FleetEngine",
    "FleetLink",
    "FleetListing",
    "LocalMachines",
    "LocalStart",
    "MemoryEngine",
    "MemoryHub",
    "NatsEngine",
    "Presence",
    "QueueFullError",
    "StoredFile",
    "authorization",
    "check_library",
    "connection_options",
    "find_server",
    "list_machines",
    "machine_permissions",
    "make_engine",
    "read_start",
    "server_settings",
    "set_up",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of this package's
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "callboard.fleet._machine_list": ("Durability", "FleetListing", "Presence", "list_machines"),
            "callboard.fleet._nats_connection": ("connection_options", "make_engine"),
            "callboard.fleet._nats_engine": ("NatsEngine", "set_up"),
        },
    )
