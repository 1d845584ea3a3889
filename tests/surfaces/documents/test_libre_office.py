"""The warm LibreOffice: one program in place of it, that hangs, crashes or outlives nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import openpyxl
import pytest

from callboard.actors.runtime import Lease
from callboard.errors import ToolError
from callboard.surfaces import EffectGuard
from callboard.surfaces.documents import _libre_office
from callboard.surfaces.documents._libre_office import LibreOffice, OfficeFailedError
from forks import Program
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAKE = """#!/bin/sh
profile=${1#-env:UserInstallation=file://}
echo $$ >> LOG.pids
env > LOG.env
case "$*" in
*--terminate_after_init*) exit 81;;
*scalc*) touch $profile/.lock; exec sleep 1000;;
esac
for book; do :; done
BODY
"""
COPIED = 'cp "$book" out/'
BOOK = b"PK\x03\x04"
"""The beginning of a workbook."""


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], LibreOffice]]:
    """Give a program in place of LibreOffice; its argument is what it does with a workbook."""
    made = LibreOffice()

    def make(body: str = COPIED) -> LibreOffice:
        program = tmp_path / "soffice"
        program.write_text(FAKE.replace("LOG", str(tmp_path / "log")).replace("BODY", body))
        program.chmod(0o755)
        monkeypatch.setattr(_libre_office.shutil, "which", lambda _: str(program))
        return made

    made.open()
    yield make
    made.close()


def running(tmp_path: Path) -> list[int]:
    """List the processes that were started in place of LibreOffice and run."""
    pids = {int(line) for line in (tmp_path / "log.pids").read_text().split()}
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found += [pid] if state not in "ZX" else []
    return found


def until(done: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_workbooks_are_converted_by_one_program(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office()
    first, second, third = (BOOK + name for name in (b"one", b"two", b"three"))
    assert program.convert([first, second]) == [None, second]  # this double copies the last one
    started = len((tmp_path / "log.pids").read_text().split())
    assert program.convert([third]) == [third]
    assert len((tmp_path / "log.pids").read_text().split()) == started + 1


def test_the_program_gets_no_variables_and_a_profile_of_its_own(
    office: Callable[..., LibreOffice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "hush")
    profile = 'cat profile/user/registrymodifications.xcu > "out/$(basename $book)"'
    (settings,) = office(profile).convert([BOOK])
    assert "hush" not in (tmp_path / "log.env").read_text()
    assert settings is not None
    assert b"DisableMacrosExecution" in settings


def test_a_computation_that_hangs_is_killed(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office("exec sleep 1000")
    with pytest.raises(OfficeFailedError):
        program.convert([BOOK], seconds=1)
    assert running(tmp_path) == []


def test_a_computation_ends_with_its_call(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office("touch LOG.began; exec sleep 1000".replace("LOG", str(tmp_path / "log")))
    lease = Lease("here", 1)

    def stop() -> None:
        until((tmp_path / "log.began").exists)
        lease.suspended = True  # as when the supervisor stops

    threading.Thread(target=stop).start()
    with EffectGuard(lease).active(), pytest.raises(ToolError, match="stopped"):
        program.convert([BOOK], seconds=PATIENCE)
    assert running(tmp_path) == []


def test_a_crash_fails_one_computation_and_leaves_nothing(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office("kill -9 $PPID; exec sleep 1000")
    with pytest.raises(OfficeFailedError):
        program.convert([BOOK])
    until(lambda: running(tmp_path) == [])
    assert office().convert([BOOK]) == [BOOK]


def test_the_last_user_ends_the_program(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office()
    program.open()
    program.convert([BOOK])
    program.close()
    assert running(tmp_path) != []
    program.close()
    assert running(tmp_path) == []
    program.open()


@pytest.mark.parametrize("body", [COPIED, "touch LOG.began; exec sleep 1000"], ids=["idle", "computing"])
def test_the_program_ends_with_a_killed_process(office: Callable[..., LibreOffice], tmp_path: Path, body: str) -> None:
    office(body.replace("LOG", str(tmp_path / "log")))
    program = (
        "from callboard.surfaces.documents import _libre_office as o;"
        f"o.shutil.which = lambda _: {str(tmp_path / 'soffice')!r};"
        "o.LIBRE_OFFICE.convert([b'PK\\3\\4']); open('done', 'w'); import time; time.sleep(1000)"
    )
    (tmp_path / "host.py").write_text(program)
    host = Program([sys.executable, "host.py"], cwd=tmp_path)
    until(lambda: (tmp_path / "done").exists() or (tmp_path / "log.began").exists())
    assert running(tmp_path) != []
    host.kill()
    host.wait()
    until(lambda: running(tmp_path) == [])


def test_a_forked_child_leaves_the_program_to_its_parent(office: Callable[..., LibreOffice], tmp_path: Path) -> None:
    program = office()
    program.convert([BOOK])
    before = running(tmp_path)
    assert program._holder is not None
    assert program._holder.stdin is not None
    kept = os.dup(program._holder.stdin.fileno())  # the parent's end of the pipe: without it, the program would end
    program.forget()  # as in the child
    program.open()
    program.close()
    assert running(tmp_path) == before != []
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    os.close(kept)


@pytest.fixture(scope="module")
def real() -> Iterator[LibreOffice]:
    """Give a LibreOffice."""
    if shutil.which("soffice") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")
    office = LibreOffice()
    office.open()
    yield office
    office.close()


def test_no_formula_reads_a_file_or_reaches_a_network(real: LibreOffice, tmp_path: Path) -> None:
    secret, book = tmp_path / "secret.xlsx", openpyxl.Workbook()
    book.active["A1"] = "SECRET"
    book.save(secret)
    book = openpyxl.Workbook()
    for text in (
        f"INDIRECT(\"'file://{secret}'#$Sheet.A1\")",
        f"INDIRECT(\"'[file://{secret}]Sheet'!A1\")",
        f"INDIRECT(\"'{secret.parent}/[{secret.name}]Sheet'!A1\")",
        f"'file://{secret}'#$Sheet.A1",
        f'WEBSERVICE("file://{secret}")',
        f'DDE("soffice","{secret}","Sheet.A1")',
        "1+1",
    ):
        book.active.append([f"={text}"])
    book.save(tmp_path / "book.xlsx")
    (computed,) = real.convert([(tmp_path / "book.xlsx").read_bytes()])
    assert computed is not None
    (tmp_path / "computed.xlsx").write_bytes(computed)
    values = [row[0].value for row in openpyxl.load_workbook(tmp_path / "computed.xlsx", data_only=True).active]
    assert values[-1] == 2
    with zipfile.ZipFile(tmp_path / "computed.xlsx") as archive:
        assert not any(b"SECRET" in archive.read(name) for name in archive.namelist())


def test_libreoffice_has_no_network_where_the_kernel_allows(real: LibreOffice) -> None:
    real.convert([BOOK])
    holder = real._holder
    assert holder is not None
    lines = Path(f"/proc/{holder.pid}/net/dev").read_text().splitlines()[2:]
    own = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    if Path(f"/proc/{holder.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
        pytest.skip("this user may not make a network namespace")
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]
    assert len(own) >= 1
