"""A hardware counter of the instructions of all threads of a process.

Not every system lets a process read one. The counts are stable within 1 %, even where times are not. Only the standard
library is imported, as in `protocol`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_INSTRUCTIONS = 1
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


class _Attributes(ctypes.Structure):
    """The beginning of Linux's ``perf_event_attr``; the rest is zero."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 12),
    )


class Counter:
    """Count user-space instructions of this thread and all later threads."""

    def __init__(self) -> None:
        """Open the counter.

        Raises:
            OSError: If the system has no such counter, or the process may not read it.
        """
        number = _PERF_EVENT_OPEN.get(os.uname().machine) if sys.platform == "linux" else None
        if number is None:
            msg = "instructions are counted on Linux alone, on x86_64 and aarch64"
            raise OSError(msg)
        attributes = _Attributes(
            size=ctypes.sizeof(_Attributes), config=_INSTRUCTIONS, flags=_INHERIT | _NO_KERNEL | _NO_HYPERVISOR
        )
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.syscall(number, ctypes.byref(attributes), 0, -1, -1, 0)
        if self._descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def read(self) -> int:
        """Give the number so far."""
        fields: tuple[int] = struct.unpack("Q", os.read(self._descriptor, 8))
        return fields[0]


def opened() -> Counter | None:
    """Open a counter; None if there is none."""
    try:
        return Counter()
    except OSError:
        return None
