"""One warm LibreOffice of this process, which computes workbooks and converts documents."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces import current_call
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import plain_environment
from callboard.surfaces.documents._hidden_sheets import without_hidden_areas
from callboard.surfaces.documents._real_format import OLD_SHEETS, OLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 40
"""The longest time of a conversion, with a start of LibreOffice, in seconds."""
PDF_SECONDS = 120
"""The longest time in which LibreOffice makes a PDF."""
_PAUSE_SECONDS = 0.05
_ENDING_SECONDS = 3
_MOST_USES = 500
"""LibreOffice is started again after so many conversions, since its memory grows."""
_HOLDER = Path(__file__).with_name("_office_holder.py")
_ZIP = b"PK\x03\x04"
_SOURCES: dict[str, tuple[str, bytes | tuple[bytes, ...]]] = {
    ".doc": ("writer", OLE),
    ".docx": ("writer", _ZIP),
    ".odt": ("writer", _ZIP),
    ".rtf": ("writer", b"{\\rtf"),
    ".xls": ("calc", (OLE, *OLD_SHEETS)),
    ".xlsx": ("calc", _ZIP),
    ".ods": ("calc", _ZIP),
    ".ppt": ("impress", OLE),
    ".pptx": ("impress", _ZIP),
    ".odp": ("impress", _ZIP),
}
"""The part of LibreOffice that reads a format, and the first bytes of its files.

A file of other bytes is not handed over: LibreOffice would read it by its contents, such as a web page named `.doc`.
"""
_INPUT_FILTERS = {".xls": "MS Excel 97"}
"""The filters that read a format. Without one, a damaged ``.xls`` file would be read as lines of text."""
_FILTERS = {
    ("writer", "docx"): "MS Word 2007 XML",
    ("calc", "xlsx"): "Calc MS Excel 2007 XML",
    ("impress", "pptx"): "Impress MS PowerPoint 2007 XML",
    ("writer", "pdf"): "writer_pdf_Export",
    ("calc", "pdf"): "calc_pdf_Export",
    ("impress", "pdf"): "impress_pdf_Export",
}
"""The filters that write a format, by the part of LibreOffice and the new suffix."""
_LIBRARIES = {"calc": "libsclo.so", "writer": "libswlo.so", "impress": "libsdlo.so"}
_FACTORIES = {"calc": "scalc", "writer": "swriter", "impress": "simpress"}
_ITEM = '<item oor:path="/org.openoffice.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>\n'
_ISOLATION = (
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Office.Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Office.Common/Misc", "FirstRun", "false"),
    ("Office.Calc/Content/Update", "Link", "2"),
    ("Office.Writer/Content/Update", "Link", "0"),
)
"""No macros, no active content, and no update of links: "never" is 0 in Writer, and 2 in Calc."""
_COMPUTING = (
    ("Office.Calc/Formula/Load", "OOXMLRecalcMode", "0"),
    ("Setup/L10N", "ooSetupSystemLocale", "en-US"),
)
"""All formulas are computed at load, by the rules of one locale."""
_SCHEMES = {
    "file": "com.sun.star.ucb.FileContentProvider",
    "vnd.sun.star.hier": "com.sun.star.ucb.HierarchyContentProvider",
    "vnd.sun.star.pkg": "com.sun.star.ucb.PackageContentProvider",
    "vnd.sun.star.zip": "com.sun.star.ucb.PackageContentProvider",
    "vnd.sun.star.expand": "com.sun.star.ucb.ExpandContentProvider",
    "vnd.sun.star.tdoc": "com.sun.star.ucb.TransientDocumentsContentProvider",
    "private": "",
}
"""The only addresses that LibreOffice can open: `BlockUntrustedRefererLinks` lets Calc and Impress fetch pictures."""
_SCHEME = (
    '<node oor:name="{}" oor:op="replace"><prop oor:name="ServiceName"><value>{}</value></prop>'
    '<prop oor:name="URLTemplate"><value>{}</value></prop><prop oor:name="Arguments"><value/></prop></node>\n'
)


def profile(*settings: tuple[str, str, str]) -> str:
    """Return the settings of LibreOffice, as its profile holds them.

    It runs no macros, and fetches nothing from a network.

    Args:
        settings: Further ones: a path, a name and a value.
    """
    items = "".join(_ITEM.format(*setting) for setting in (*_ISOLATION, *settings))
    schemes = "".join(
        _SCHEME.format(f"Provider{number}", service, scheme)
        for number, (scheme, service) in enumerate(_SCHEMES.items())
    )
    schema = 'xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<oor:items {schema}>\n{items}'
        '<item oor:path="/org.openoffice.ucb.Configuration/ContentProviders/Local/SecondaryKeys">'
        f'<node oor:name="Office" oor:op="replace"><node oor:name="ProviderData">\n{schemes}</node></node></item>\n'
        "</oor:items>\n"
    )


class OfficeFailedError(Exception):
    """LibreOffice is not installed, was not started, crashed or took too long."""

    def __init__(self, reason: str = "LibreOffice did not start, crashed or took too long") -> None:
        """Keep the reason, as a text for people and models."""
        super().__init__(reason)


_OFFICES: weakref.WeakSet[LibreOffice] = weakref.WeakSet()


class LibreOffice:
    """A LibreOffice with a profile of its own, started on use.

    Threads may share it; one converts at a time. It ends with the last surface that uses it, and with this process,
    also if this is killed.
    """

    def __init__(self, settings: Sequence[tuple[str, str, str]] = _COMPUTING) -> None:
        """Keep further settings for its profile; nothing is started yet."""
        self._settings = settings
        self._reset()
        _OFFICES.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._uses = 0
        self._holder: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._counting = threading.Lock()

    def open(self) -> None:
        """Register a user."""
        with self._counting:
            self._users += 1

    def close(self) -> None:
        """Take away a user; the last one ends LibreOffice at once."""
        with self._counting:
            self._users -= 1
            if self._users == 0:
                self._end()

    def convert(
        self, files: Sequence[bytes], suffix: str = ".xlsx", to: str = "xlsx", *, seconds: float = SECONDS
    ) -> list[bytes | None]:
        """Convert files, and return them as LibreOffice saves them, with computed formulas.

        A file that it can't read, or that begins otherwise than files of its format, is None. A PDF of a workbook
        leaves out its hidden sheets.

        Args:
            files: The files, all of one format.
            suffix: Their suffix, in lower case: ``.doc``, ``.docx``, ``.odt``, ``.rtf``, ``.xls``, ``.xlsx``, ``.ods``,
                ``.ppt``, ``.pptx`` or ``.odp``.
            to: The new format: ``pdf``, or ``docx``, ``xlsx`` or ``pptx`` for the kind of document that it is.
            seconds: The longest time.

        Raises:
            OfficeFailedError: If it or its part for the format is not installed, if it can't be started, crashes or
                takes too long.
            ToolError: If the running call was cancelled, or the supervisor stops.
        """
        part, first_bytes = _SOURCES[suffix]
        if reason := lacking_office(suffix):
            raise OfficeFailedError(reason)
        until = time.monotonic() + seconds
        while not self._lock.acquire(timeout=_PAUSE_SECONDS):
            _check(until)
        try:
            readable = {number: file for number, file in enumerate(files) if file.startswith(first_bytes)}
            if (part, to) == ("calc", "pdf"):
                if suffix != ".xlsx":
                    readable, suffix = self._convert_files(readable, suffix, "xlsx", until), ".xlsx"
                readable = {number: without_hidden_areas(file) for number, file in readable.items()}
            results = self._convert_files(readable, suffix, to, until)
        except BaseException:
            self._end()
            raise
        finally:
            self._lock.release()
        return [results.get(number) for number in range(len(files))]

    def _convert_files(self, files: Mapping[int, bytes], suffix: str, to: str, until: float) -> dict[int, bytes]:
        """Convert numbered files; those that LibreOffice can't read are left out."""
        if not files:
            return {}
        if self._uses >= _MOST_USES:
            self._end()
        if self._holder is None or self._holder.poll() is not None:
            self._start(until)
        folder, holder = self._folder, self._holder
        if folder is None or holder is None or holder.stdin is None:  # closed meanwhile
            raise OfficeFailedError
        self._uses += 1
        paths = {number: folder / f"{number}{suffix}" for number in files}
        outputs = {number: folder / "out" / f"{number}.{to}" for number in files}
        try:
            for number, file in files.items():
                paths[number].write_bytes(file)
            output_filter = f"{to}:{_FILTERS[_SOURCES[suffix][0], to]}"
            filters = {"input_filter": _INPUT_FILTERS.get(suffix, ""), "filter": output_filter}
            request = json.dumps({**filters, "paths": list(map(str, paths.values()))})
            holder.stdin.write(request.encode() + b"\n")
            holder.stdin.flush()
            self._wait(holder, b"done\n", until)
            return {number: path.read_bytes() for number, path in outputs.items() if path.is_file()}
        except OSError as error:
            raise OfficeFailedError from error
        finally:
            for path in (*paths.values(), *outputs.values()):
                path.unlink(missing_ok=True)

    def _start(self, until: float) -> None:
        """Start the holder, and wait for LibreOffice."""
        self._end()
        program = shutil.which("soffice")
        if program is None:
            raise OfficeFailedError
        folder = Path(tempfile.mkdtemp(prefix="callboard-calc-"))
        user = folder / "profile" / "user"
        user.mkdir(parents=True)
        user.joinpath("registrymodifications.xcu").write_text(profile(*self._settings), encoding="utf-8")
        (folder / "out").mkdir()
        self._folder, self._uses = folder, 0
        self._holder = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_HOLDER), str(folder), program, _kept_document(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=plain_environment(folder),
            start_new_session=True,  # its own process group, which is killed with all in it
        )
        self._wait(self._holder, b"ready\n", until)

    def _wait(self, holder: subprocess.Popen[bytes], word: bytes, until: float) -> None:
        """Wait for a line of the holder, unless the running call ends."""
        pipe = holder.stdout
        while pipe is not None and not select.select([pipe], [], [], _PAUSE_SECONDS)[0]:
            _check(until)
        if pipe is None or pipe.readline() != word:
            raise OfficeFailedError

    def _end(self) -> None:
        """Have the holder kill LibreOffice at once, and remove its files."""
        holder, folder, self._holder, self._folder = self._holder, self._folder, None, None
        if holder is not None:
            holder.terminate()
            try:
                holder.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(holder.pid, signal.SIGKILL)
                holder.wait()
            for pipe in (holder.stdin, holder.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Leave LibreOffice to the parent, in a forked child."""
        holder = self._holder
        self._reset()  # a lock of the parent may be held for ever
        if holder is not None:
            holder.returncode = 0  # not a child of this process
            for pipe in (holder.stdin, holder.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def check_running(until: float) -> None:
    """Check that the time is not up and the call not over.

    Raises:
        OfficeFailedError: If the time is up.
        ToolError: If the call was cancelled, took too long, or the supervisor stops. Nothing is stored then.
    """
    if current_call().given_up:
        msg = "the computation was stopped, since the call has ended"
        raise ToolError(msg)
    if time.monotonic() > until:
        raise OfficeFailedError


_check = check_running


def _forget_all() -> None:
    for office in list(_OFFICES):
        office.forget()


LIBRE_OFFICE = LibreOffice()
os.register_at_fork(after_in_child=_forget_all)


def pdfs_of(
    files: Sequence[bytes], suffix: str, failure: str, *, is_computed: bool = True, seconds: float = PDF_SECONDS
) -> list[bytes]:
    """Convert Office documents of one format to PDFs, without a network.

    Args:
        files: Their bytes.
        suffix: Their suffix, such as ``.docx``.
        failure: The beginning of errors.
        is_computed: Whether formulas are computed, by the warm LibreOffice. One of its own shows the stored results.
        seconds: The longest time.

    Raises:
        ToolError: If LibreOffice is missing, fails, takes too long or can't read a file.
    """
    office = LIBRE_OFFICE if is_computed else LibreOffice(settings=())
    if not is_computed:
        office.open()
    try:
        pdfs = office.convert(files, suffix, "pdf", seconds=seconds)
    except OfficeFailedError as error:
        msg = f"{failure}: {error}"
        raise ToolError(msg) from error
    finally:
        if not is_computed:
            office.close()
    if None in pdfs:
        msg = f"{failure}: LibreOffice can't read it"
        raise ToolError(msg)
    return [pdf for pdf in pdfs if pdf is not None]


def has_libre_office(suffix: str = ".xlsx") -> bool:
    """Return whether files of a format can be converted by LibreOffice here."""
    return not lacking_office(suffix)


@functools.cache
def lacking_office(suffix: str) -> str:
    """Explain why a format can't be converted here; empty if it can."""
    program = shutil.which("soffice")
    if sys.platform != "linux" or not sys.executable or getattr(sys, "frozen", False):
        return "LibreOffice is used on Linux only"
    if program is None:
        return "LibreOffice is not installed: there is no program soffice"
    part = _SOURCES[suffix][0]
    return "" if part in _parts(program) else f"LibreOffice is installed without its part {part.title()}"


def _parts(program: str) -> list[str]:
    """List the parts of LibreOffice that are installed.

    They are separate packages. All are assumed where its libraries can't be seen.
    """
    folder = Path(program).resolve().parent
    installed = [part for part, library in _LIBRARIES.items() if (folder / library).is_file()]
    return installed or list(_LIBRARIES)


def _kept_document(program: str) -> str:
    """Return the address of the new document that keeps LibreOffice open."""
    return f"private:factory/{_FACTORIES[_parts(program)[0]]}"
