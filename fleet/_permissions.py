"""Subjects that a machine may use on its fleet's server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from callboard.fleet._engine import Bucket
from callboard.messages import MachineName

if TYPE_CHECKING:
    from collections.abc import Iterable

_API = "$JS.API"
API = "callboard.api"
"""The prefix of these requests on a machine's own account, which has a JetStream of its own under the usual one."""
_WORK = "callboard-work"
FILES = "callboard-files"
FILE_SUBJECT = "callboard.files"
ALL_MACHINES = "_"
"""The reader of files that all machines may read; no machine has this name."""
_NAME: TypeAdapter[str] = TypeAdapter(MachineName)


def inbox(name: str) -> str:
    """Return the prefix of the subjects at which a machine gets answers."""
    return f"_INBOX.{name}"


def machine_permissions(name: str) -> tuple[str, ...]:
    """Compute the subjects to which a machine may send.

    It may take work from its own queue, send work in its own name, and write and read the entries of buckets and the
    files that it is to write and read. It may neither make nor delete a stream, nor make a consumer of the queues.

    Raises:
        ValueError: If it is no name of a machine.
    """
    _NAME.validate_python(name)
    return (*_work_subjects(name), *_entry_subjects(name), *_reading_subjects(name), *_file_subjects(name))


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


def _reading_subjects(name: str) -> tuple[str, ...]:
    """Return the requests that read all machines, and own entries."""
    watched = {
        Bucket.MACHINES: ">",
        Bucket.SIGNALS: f"{name}.>",
        Bucket.REQUESTS: f"{name}.>",
        Bucket.RESULTS: f"{name}.>",
        Bucket.CLAIMS: f"{name}.>",
    }
    return (
        *(
            subject
            for bucket, keys in watched.items()
            for subject in _stream_reading(f"KV_callboard-{bucket}", f"$KV.callboard-{bucket}.{keys}")
        ),
        *(
            _last_value(f"KV_callboard-{bucket}", f"$KV.callboard-{bucket}.*.{name}.*")
            for bucket in (Bucket.SIGNALS, Bucket.CLAIMS)
        ),
    )


def _stream_reading(stream: str, subject: str) -> tuple[str, ...]:
    """Return the requests that read a subject of a stream.

    The names of consumers are random, so that a machine does not know those of others.
    """
    return (
        f"{_API}.CONSUMER.CREATE.{stream}.*.{subject}",
        f"{_API}.CONSUMER.MSG.NEXT.{stream}.*",
        f"{_API}.CONSUMER.DELETE.{stream}.*",
        _last_value(stream, subject),
    )


def _last_value(stream: str, subject: str) -> str:
    return f"{_API}.DIRECT.GET.{stream}.{subject}"


def _file_subjects(name: str) -> tuple[str, ...]:
    """Return the requests for files that a machine writes or reads."""
    return (
        f"{FILE_SUBJECT}.*.{name}.*",
        f"{FILE_SUBJECT}.{name}.*.*",
        *dict.fromkeys(
            subject
            for reader in (name, ALL_MACHINES)
            for subject in _stream_reading(FILES, f"{FILE_SUBJECT}.{reader}.*.*")
        ),
        _last_value(FILES, f"{FILE_SUBJECT}.*.{name}.*"),
    )


_SYNC_SINCE = (2, 12)
"""The first version of the server for which its settings name `sync_interval`; 2.9 refuses to start with it."""


def syncs_always(version: str) -> bool:
    """Return whether the settings of a server have `sync_interval: always`."""
    return tuple(int(part) for part in version.split(".")[:2]) >= _SYNC_SINCE


def server_settings(version: str) -> str:
    """Return the settings of a server that hold for all machines."""
    sync = (
        "  sync_interval: always        # on the disk before it is confirmed"
        if syncs_always(version)
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


_HUB = "callboard"
"""The account that has the streams."""
_SERVICES = (
    "callboard.work.>",
    "callboard.files.>",
    "$KV.>",
    f"{_API}.STREAM.INFO.*",
    f"{_API}.CONSUMER.INFO.*.*",
    f"{_API}.CONSUMER.CREATE.>",
    f"{_API}.CONSUMER.DELETE.*.*",
    f"{_API}.DIRECT.GET.>",
    "$JS.ACK.>",
)
_SERVICE_OF_MESSAGES = f"{_API}.CONSUMER.MSG.NEXT.*.*"


def services() -> tuple[tuple[str, str], ...]:
    """Return the subjects that other accounts get, with the kind of answer."""
    return *((subject, "singleton") for subject in _SERVICES), (_SERVICE_OF_MESSAGES, "stream")


def authorization(machines: Iterable[str]) -> str:
    """Return the settings of a server that name the machines.

    Each has an account of its own. Permissions in one account would not do: the server sends its answer to any subject
    that a request names, so that a machine could have it write an entry for another. Between accounts, the answer
    reaches the account of the request alone.

    The public key of each is still to be filled in.
    """
    accounts = "\n".join(map(_account, machines))
    exports = "\n".join(f'      {{ service: "{subject}", response_type: {kind} }}' for subject, kind in services())
    return f"""\
accounts {{
  {_HUB} {{
    jetstream: enabled
    users: [{{ nkey: "PUBLIC KEY OF WHO RUNS callboard fleet setup" }}]
    exports: [
{exports}
    ]
  }}
{accounts}
}}
"""


def _account(name: str) -> str:
    imports = "\n".join(map(_import, machine_permissions(name)))
    return f"""\
  machine-{name} {{
    users: [{{ nkey: "PUBLIC KEY OF {name}" }}]
    imports: [
{imports}
    ]
  }}"""


def _import(subject: str) -> str:
    own_name = f', to: "{API}{subject.removeprefix(_API)}"' if subject.startswith(f"{_API}.") else ""
    return f'      {{ service: {{ account: {_HUB}, subject: "{subject}" }}{own_name} }}'
