"""Subjects that a machine may use on its fleet's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import TypeAdapter

from callboard.fleet._engine import Bucket
from callboard.messages import MachineName

if TYPE_CHECKING:
    from collections.abc import Iterable

_WATCHED = tuple(Bucket)
_API = "$JS.API"
_WORK = "callboard-work"
_FILES = "callboard-files"
_NAME: TypeAdapter[str] = TypeAdapter(MachineName)


class Permissions(NamedTuple):
    """The subjects of one machine; all others are refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def machine_permissions(name: str) -> Permissions:
    """Compute the permissions of a machine.

    It may take work from its own queue, send work in its own name, and write the entries of buckets that it is to
    write. It may neither make nor delete a stream, nor make a consumer of the queues.

    Raises:
        ValueError: If it is no name of a machine.
    """
    _NAME.validate_python(name)
    return Permissions(
        publish=(*_work_subjects(name), *_entry_subjects(name), *_reading_subjects(), *_file_subjects()),
        subscribe=(f"{inbox(name)}.>",),
    )


def inbox(name: str) -> str:
    """Return the prefix of the subjects at which a machine gets answers."""
    return f"_INBOX.{name}"


def _work_subjects(name: str) -> tuple[str, ...]:
    consumer = f"{_WORK}.machine-{name}"
    return (
        f"callboard.work.*.{name}",
        f"{_API}.STREAM.INFO.{_WORK}",
        f"{_API}.CONSUMER.INFO.{consumer}",
        f"{_API}.CONSUMER.MSG.NEXT.{consumer}",
        f"$JS.ACK.{consumer}.>",
    )


def _entry_subjects(name: str) -> tuple[str, ...]:
    """Return the entries that a machine writes.

    Those that begin with its name are for it alone: it deletes them.
    """
    return (
        f"$KV.callboard-{Bucket.MACHINES}.{name}.*",
        f"$KV.callboard-{Bucket.SIGNALS}.*.{name}.*",
        *(
            f"$KV.callboard-{bucket}.{key}.*"
            for bucket in (Bucket.REQUESTS, Bucket.RESULTS, Bucket.CLAIMS)
            for key in (f"*.{name}", f"{name}.*")
        ),
    )


def _reading_subjects() -> tuple[str, ...]:
    streams = [f"KV_callboard-{bucket}" for bucket in _WATCHED]
    return (
        *(f"{_API}.STREAM.INFO.KV_callboard-{bucket}" for bucket in Bucket),
        *(f"{_API}.{call}.{stream}" for stream in streams for call in ("STREAM.MSG.GET", "CONSUMER.CREATE")),
        *(subject for stream in streams for subject in (f"{_API}.CONSUMER.INFO.{stream}.*", f"$JS.FC.{stream}.>")),
    )


def _file_subjects() -> tuple[str, ...]:
    stream = f"OBJ_{_FILES}"
    calls = ("STREAM.INFO", "STREAM.MSG.GET", "STREAM.PURGE", "CONSUMER.CREATE")
    return (
        f"{_API}.STREAM.NAMES",
        f"$O.{_FILES}.>",
        f"{_API}.DIRECT.GET.{stream}.>",
        *(f"{_API}.{call}.{stream}" for call in calls),
        f"{_API}.CONSUMER.INFO.{stream}.*",
        f"$JS.FC.{stream}.>",
    )


_SYNC_SINCE = (2, 12)
"""The first version of the server for which these settings name `sync_interval`; 2.9 refuses to start with it."""


def server_settings(version: str) -> str:
    """Return the settings of a server that hold for all machines."""
    numbers = tuple(int(part) for part in version.split(".")[:2])
    synced = numbers >= _SYNC_SINCE
    sync = (
        "  sync_interval: always        # on the disk before it is confirmed"
        if synced
        else f"  # no sync_interval: version {version} may not know it; a failure of power can lose the last 2 minutes"
    )
    return f"""\
listen: 0.0.0.0:4222             # 127.0.0.1:4222 for machines of one host
http: 127.0.0.1:8222             # fleet.monitor
jetstream {{
  store_dir: /var/lib/callboard-fleet
{sync}
}}
tls {{                            # leave it out on 127.0.0.1
  cert_file: /etc/nats/server.crt
  key_file: /etc/nats/server.key
}}
"""


def authorization(machines: Iterable[str]) -> str:
    """Return the settings of a server that name the machines.

    The public key of each is still to be filled in.
    """
    users = "\n".join(_user(name) for name in machines)
    return f"""\
authorization {{
  users: [
    {{ nkey: "PUBLIC KEY OF WHO RUNS callboard fleet setup" }}
{users}
  ]
}}
"""


def _user(name: str) -> str:
    permissions = machine_permissions(name)
    publish, subscribe = ("".join(f'\n          "{subject}"' for subject in subjects) for subjects in permissions)
    return f"""\
    {{ nkey: "PUBLIC KEY OF {name}", permissions: {{
        publish: [{publish}
        ]
        subscribe: [{subscribe}
        ]
    }} }}"""
