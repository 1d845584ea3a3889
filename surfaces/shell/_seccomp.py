"""The filter of system calls for isolated commands, a seccomp program."""

from __future__ import annotations

import errno
import platform
import socket
import struct
from typing import NamedTuple

_NEW_USER = 0x10000000
_CREATES = 0o100 | 0o20000000
"""The flags of `open` with which it takes a mode: O_CREAT and O_TMPFILE."""
_SET_ID = 0o6000
_PUSH_INPUT, _LINUX_CONSOLE = 0x5412, 0x541C
"""The requests TIOCSTI and TIOCLINUX, which type into a terminal."""
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
"""The kernel's codes of machines, and their columns in the table of numbers."""


class _Check(NamedTuple):
    argument: int
    test: int
    value: int
    holds: bool = True


class _Rule(NamedTuple):
    """A system call that fails if all checks of its arguments hold."""

    numbers: tuple[int | None, int | None]
    """The call's numbers on x86_64 and on other machines; None where it does not exist."""
    error: int
    checks: tuple[_Check, ...] = ()


def _sets_id(mode: int, flags: int | None = None) -> tuple[_Check, ...]:
    creates = () if flags is None else (_Check(flags, _ANY_BIT, _CREATES),)
    return (*creates, _Check(mode, _ANY_BIT, _SET_ID))


_RULES = (
    *(_Rule((number, generic), errno.ENOSYS) for number, generic in ((248, 217), (249, 218), (250, 219))),  # keyrings
    # their arguments are in memory, where no filter sees them; programs fall back on `clone` and `openat`
    *(_Rule((number, number), errno.ENOSYS) for number in (435, 437, 425, 426, 427)),  # clone3, openat2, io_uring
    _Rule((308, 268), errno.EPERM),  # setns
    _Rule((56, 220), errno.EPERM, (_Check(0, _ANY_BIT, _NEW_USER),)),  # clone
    _Rule((272, 97), errno.EPERM, (_Check(0, _ANY_BIT, _NEW_USER),)),  # unshare
    *(_Rule((16, 29), errno.EPERM, (_Check(1, _EQUAL, request),)) for request in (_PUSH_INPUT, _LINUX_CONSOLE)),
    _Rule((41, 198), errno.EAFNOSUPPORT, tuple(_Check(0, _EQUAL, family, holds=False) for family in _FAMILIES)),
    _Rule((90, None), errno.EPERM, _sets_id(1)),  # chmod
    _Rule((91, 52), errno.EPERM, _sets_id(1)),  # fchmod
    _Rule((268, 53), errno.EPERM, _sets_id(2)),  # fchmodat
    _Rule((452, 452), errno.EPERM, _sets_id(2)),  # fchmodat2
    _Rule((85, None), errno.EPERM, _sets_id(1)),  # creat
    _Rule((2, None), errno.EPERM, _sets_id(2, flags=1)),  # open
    _Rule((257, 56), errno.EPERM, _sets_id(3, flags=2)),  # openat
    _Rule((133, None), errno.EPERM, _sets_id(1)),  # mknod
    _Rule((259, 33), errno.EPERM, _sets_id(2)),  # mknodat
)


def seccomp_program(machine: str = "") -> bytes | None:
    """Return the filter's program for the kernel.

    It refuses new user namespaces, the kernel's keyrings, set-user-ID and set-group-ID files, input for a terminal, and
    sockets of families that no network namespace confines. A program of another machine, such as a 32-bit one, is
    killed: it has other numbers for the calls.

    Args:
        machine: The machine, as `platform.machine` names it; by default this one.

    Returns:
        None for a machine whose numbers of system calls are not known here.
    """
    code, column = _MACHINES.get(machine or platform.machine(), (0, 0))
    if not code:
        return None
    lines = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, code),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_ANY_BIT, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    for rule in _RULES:
        number = rule.numbers[column]
        if number is not None:
            lines += _lines_of(number, rule)
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _lines_of(number: int, rule: _Rule) -> list[tuple[int, int, int, int]]:
    jump = 2 * len(rule.checks) + 1
    lines = [(_LOAD, 0, 0, _NUMBER_AT), (_EQUAL, 0, jump, number)]
    for check in rule.checks:
        jump -= 2
        skips = (0, jump) if check.holds else (jump, 0)
        lines += [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * check.argument), (check.test, *skips, check.value)]
    return [*lines, (_RETURN, 0, 0, _ERROR | rule.error)]
