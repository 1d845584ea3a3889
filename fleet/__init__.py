"""A fleet: supervisors on several machines that give each other work.

So far it has the engine through which they do, in memory and on NATS JetStream.
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
from callboard.fleet._memory_engine import MemoryEngine, MemoryHub

if TYPE_CHECKING:
    from callboard.fleet._nats_engine import NatsEngine, set_up

__all__ = [
    "ACK_SECONDS",
    "Bucket",
    "BucketEntry",
    "ConflictError",
    "DamagedFileError",
    "Delivery",
    "EngineAwayError",
    "FleetEngine",
    "MemoryEngine",
    "MemoryHub",
    "NatsEngine",
    "QueueFullError",
    "StoredFile",
    "set_up",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of this package's
    __getattr__, __dir__ = lazy_names(__name__, {"callboard.fleet._nats_engine": ("NatsEngine", "set_up")})
