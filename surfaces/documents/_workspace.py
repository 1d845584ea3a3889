"""The workspace folder; only this module replaces documents."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.messages import FOLDER_MARK, JournalError, Target, TargetKind
from callboard.surfaces import (
    committing,
    delete_stale_spares,
    foresee,
    is_link,
    keep_version,
    lock_file,
    open_file,
    publish_file,
    read_file,
    replace_file,
    spare_file,
    sync_folder,
    write_lock,
)
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._large_file import LargeFile, check_size
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE, OfficeFailedError, lacking_office
from callboard.surfaces.documents._other_formats import advice_on
from callboard.surfaces.documents._real_format import (
    ENCRYPTED,
    OLD_SHEETS,
    OLE,
    is_whole_container,
    is_whole_old_sheet,
    real_format,
)
from callboard.surfaces.documents._version_cache import DEFAULT_CACHE_MB, VersionCache

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pydantic import JsonValue

_T = TypeVar("_T")

ROOTS = {
    ".docx": "word",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".pptx": "powerpoint",
    ".pdf": "pdf",
    ".eml": "mail",
    ".ics": "calendar",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "text",
    ".md": "text",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"), "picture"),
}
"""The application of a document, by the suffix of its name."""

OLD_FORMATS = {
    ".doc": ".docx",
    ".odt": ".docx",
    ".rtf": ".docx",
    ".xls": ".xlsx",
    ".ods": ".xlsx",
    ".ppt": ".pptx",
    ".odp": ".pptx",
}
"""The present format of files that are read through a converted copy, by their suffixes."""
ROOTS |= {old: ROOTS[present] for old, present in OLD_FORMATS.items()}

NAMES = {
    "word": "Word",
    "excel": "Excel",
    "powerpoint": "PowerPoint",
    "pdf": "PDF",
    "mail": "Mail",
    "calendar": "Calendar",
    "csv": "CSV",
    "text": "Text",
    "picture": "Picture",
}
"""The names of the applications."""

DEFAULT_CSV_BYTES = 2_000_000_000
DEFAULT_CSV_CELLS = 2_000_000
DOCUMENTS = "documents"
"""The name of the documents surface."""

_MOST_FILES = 20_000
"""The most files of a workspace that are listed for checks."""
_NOT_PORTABLE = frozenset('<>:"|?*')
_SETTINGS_FILE = "callboard.yaml"
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
_MAX_PATH = 400
_MAX_NAME_BYTES = 255
"""The longest name of a file or folder on the usual file systems, in UTF-8."""
IN_PARTS = frozenset({"csv"})
"""The applications that read large files in parts."""
IN_PARTS_BYTES = 8_000_000
"""The least size of a file that is read in parts."""
FOLDER = FOLDER_MARK
"""The mark of a folder; a file's is its fingerprint."""


@dataclass(frozen=True)
class Snapshot:
    """A document at one moment."""

    document: str
    """The path within the workspace, separated by ``/``; the last part of its agent's address."""
    path: Path
    source: bytes | LargeFile
    """The bytes, or the file that is read in parts."""
    fingerprint: str
    modified: float
    """Seconds since the epoch."""
    mode: int
    """The file's permissions."""
    cache: VersionCache = field(default_factory=VersionCache, repr=False, compare=False)
    """Results of parsing large files, by version."""
    converted: bytes | None = field(default=None, repr=False)
    """The bytes of the copy in the present format, for an old format."""
    _parsed: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def root(self) -> str:
        """The application, such as ``word`` or ``pdf``."""
        return ROOTS[self.path.suffix.lower()]

    @property
    def suffix(self) -> str:
        """The suffix of its bytes, in lower case.

        For an old format it is that of the converted copy.
        """
        suffix = self.path.suffix.lower()
        return OLD_FORMATS.get(suffix, suffix)

    @property
    def data(self) -> bytes:
        """The bytes of the document, or of its converted copy.

        Raises:
            ToolError: If it is read in parts, and too large to be held in memory.
        """
        if self.converted is not None:
            return self.converted
        return self.source if isinstance(self.source, bytes) else self.source.read_whole()

    @property
    def size_bytes(self) -> int:
        """The size of the document."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.size_bytes

    def once(self, parse: Callable[[Snapshot], _T]) -> _T:
        """Parse the document once; the result must not be changed."""
        if parse not in self._parsed:
            self._parsed[parse] = parse(self)
        parsed: _T = self._parsed[parse]
        return parsed


def _is_read(suffix: str) -> bool:
    """Return whether files with a suffix are documents here."""
    return suffix in ROOTS and not (suffix in OLD_FORMATS and lacking_office(suffix))


def window_of(document: str) -> Target:
    """Return the window of a document, by its path within the workspace."""
    path = PurePosixPath(document)
    return Target(
        id=document,
        name=path.name,
        kind=TargetKind.WINDOW,
        address=f"app/{ROOTS[path.suffix.lower()]}/{document}",
        server=DOCUMENTS,
        binds={"document": document},
    )


def fingerprint(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class Workspace:
    """A folder of documents, with their fingerprints at the last observation.

    Threads may share it.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        *,
        compute_cells: int = 200_000,
        cache_mb: int = DEFAULT_CACHE_MB,
        max_csv_bytes: int = DEFAULT_CSV_BYTES,
        max_csv_cells: int = DEFAULT_CSV_CELLS,
    ) -> None:
        if not folder.is_dir():
            msg = f"the workspace {folder} is not a folder"
            raise NotADirectoryError(msg)
        self.folder = folder.resolve()
        self.max_bytes = max_bytes
        self.max_csv_bytes = max(max_bytes, max_csv_bytes)
        self.max_csv_cells = max_csv_cells
        self.compute_cells = compute_cells
        self._cache = VersionCache(cache_mb * 1_000_000)
        self._observed_marks: dict[str, str] = {}
        self._swept: set[Path] = set()
        self._lock = threading.Lock()

    def documents(self) -> Iterator[str]:
        """List the documents, sorted, without hidden files, lock files and links.

        Folders with settings of their own, such as those of runs, are left out.

        Raises:
            OSError: If the workspace can't be read. A subfolder that this user may not read is left out.
        """
        yield from sorted(self._files(set(filter(_is_read, ROOTS))))

    def files(self) -> dict[str, Path]:
        """List the files of any kind, sorted, as `documents` does.

        Raises:
            ToolError: If there are too many, or the workspace can't be read.
        """
        names: list[str] = []
        try:
            for name in self._files():
                names.append(name)
                if len(names) > _MOST_FILES:
                    msg = f"the workspace has more than {_MOST_FILES} files; name the ones that must not change"
                    raise ToolError(msg)
        except OSError as error:
            msg = f"the workspace can't be read: {error.strerror}"
            raise ToolError(msg) from error
        return {name: self.folder / name for name in sorted(names)}

    def _files(self, suffixes: Collection[str] = ()) -> Iterator[str]:
        """Find the files with one of some suffixes; empty for any."""
        for folder, folders, files in os.walk(self.folder, followlinks=False, onerror=self._unreadable):
            self._sweep(Path(folder))
            below = [Path(folder, name) for name in folders if not name.startswith(".")]
            folders[:] = [
                subfolder.name
                for subfolder in below
                if not (is_link(subfolder) or (subfolder / _SETTINGS_FILE).is_file())
            ]
            for name in files:
                path = Path(folder, name)
                document = path.relative_to(self.folder).as_posix()
                has_suffix = not suffixes or path.suffix.lower() in suffixes
                if has_suffix and not path_fault(document) and _is_file(path):
                    yield document

    def _sweep(self, folder: Path) -> None:
        """Delete what killed processes left in a folder, once."""
        if folder not in self._swept:
            self._swept.add(folder)
            delete_stale_spares(folder)

    def _unreadable(self, error: OSError) -> None:
        if not isinstance(error, PermissionError) or Path(error.filename) == self.folder:
            raise error

    def path(self, document: str) -> Path:
        """Resolve the path of a document, which need not exist.

        Raises:
            ToolError: If the path leads out of the workspace, passes through a link, or is not that of a document.
        """
        suffix = PurePosixPath(document).suffix.lower()
        if not path_fault(document) and not _is_read(suffix):
            msg = f"{document!r} is refused: {self.advice_on(document)}"
            raise ToolError(msg)
        return self.resolve(document)

    @staticmethod
    def advice_on(name: str) -> str:
        """Explain why a file is no document, and what to do."""
        suffix = PurePosixPath(name).suffix.lower()
        names = ", ".join(ending for ending in ROOTS if ending not in OLD_FORMATS)
        advice = f"only {names} files are documents; save it as one of them"
        if suffix in OLD_FORMATS and (reason := lacking_office(suffix)):
            return f"it is read through a copy, and {reason}; save it as {OLD_FORMATS[suffix]}"
        return "" if suffix in ROOTS else advice_on(name) or advice

    def resolve(self, document: str) -> Path:
        """Resolve the path of a file of any kind or a folder.

        It need not exist.

        Raises:
            ToolError: If the path leads out of the workspace, passes through a link, or is hidden.
        """
        if reason := path_fault(document):
            msg = f"{document!r} is refused: {reason}"
            raise ToolError(msg)
        path = self.folder
        for part in PurePosixPath(document).parts:
            path = path / part
            if is_link(path):
                msg = f"{document!r} is refused: {part!r} is a link, and links may lead out of the workspace"
                raise ToolError(msg)
        return path

    def read(self, document: str, *, remember: bool = False, whole: bool = False) -> Snapshot:
        """Read a document's bytes; a large file's are read later.

        Args:
            document: The path within the workspace.
            remember: Whether a write may follow this observation. The first read of a document is always
                remembered.
            whole: Whether all bytes are needed.

        Raises:
            ToolError: If the document is missing, not a file, or larger than allowed.
        """
        path = self.path(document)
        try:
            file_status = path.stat()
            if not stat.S_ISREG(file_status.st_mode):
                msg = f"{document!r} is not a file"
                raise ToolError(msg)
            source = self._source(document, path, file_status, whole=whole)
        except FileNotFoundError:
            msg = f"there is no document {document!r} in the workspace; list the windows to see which there are"
            raise ToolError(msg) from None
        except OSError as error:
            msg = f"{document!r} can't be read: {error.strerror}"
            raise ToolError(msg) from error
        mark = fingerprint(source) if isinstance(source, bytes) else source.fingerprint(self._cache)
        with self._lock:
            if remember or document not in self._observed_marks:
                self._observed_marks[document] = mark
        converted = None
        if isinstance(source, bytes) and path.suffix.lower() in OLD_FORMATS:
            converted = self._converted(document, source, mark)
        mode = stat.S_IMODE(file_status.st_mode)
        return Snapshot(document, path, source, mark, file_status.st_mtime, mode, self._cache, converted)

    def _converted(self, document: str, data: bytes, mark: str) -> bytes:
        """Convert a file of an old format, or return its kept copy.

        Raises:
            ToolError: If LibreOffice is missing, can't read it, or takes too long.
        """
        suffix = PurePosixPath(document).suffix.lower()
        present = OLD_FORMATS[suffix]
        if not data:
            msg = f"{document!r} is damaged and can't be opened (it is empty); it is unchanged"
            raise ToolError(msg)
        real = real_format(data, suffix)
        if real is not None and real.suffix == present:
            return data
        if real is not None and OLD_FORMATS.get(real.suffix) != present:
            raise ToolError(real.refusal(document))
        is_cut = data.startswith(OLD_SHEETS) and not is_whole_old_sheet(data)
        if is_cut or (data.startswith(OLE) and not is_whole_container(data)):
            msg = f"{document!r} is damaged and can't be opened (its end is missing); it is unchanged"
            raise ToolError(msg)
        suffix = suffix if real is None else real.suffix
        if (cached_copy := self._cache.get(mark, present)) is not None:
            return bytes(cached_copy)
        try:
            (converted,) = LIBRE_OFFICE.convert([data], suffix, present.removeprefix("."))
        except OfficeFailedError as error:
            msg = f"{document!r} is read through a copy that LibreOffice makes ({error}); save it as {present}"
            raise ToolError(msg) from error
        if converted is None:
            if ENCRYPTED in data:
                msg = f"{document!r} is protected with a password; it was not opened, and is unchanged"
                raise ToolError(msg)
            msg = f"{document!r} can't be read: it is damaged, protected, or not what its name says; it is unchanged"
            raise ToolError(msg)
        check_size(document, len(converted), self.max_bytes)
        self._cache.keep(mark, present, converted, len(converted))
        return converted

    def _source(self, document: str, path: Path, status: os.stat_result, *, whole: bool) -> bytes | LargeFile:
        size = status.st_size
        in_parts = not whole and ROOTS[path.suffix.lower()] in IN_PARTS
        if in_parts and size > min(self.max_bytes, IN_PARTS_BYTES):
            check_size(document, size, self.max_csv_bytes, "documents.max_csv_bytes")
            return LargeFile.of(document, path, status, self.max_bytes)
        check_size(document, size, self.max_bytes)
        return read_file(path)

    def read_unchanged(self, document: str) -> Snapshot:
        """Read all bytes of a document unchanged since its observation.

        Raises:
            ToolError: If it can't be read, or another program changed it since.
        """
        snapshot = self.read(document, whole=True)
        with self._lock:
            if self._observed_marks[document] == snapshot.fingerprint:
                return snapshot
        raise _changed_error(document)

    def read_to_write(self, document: str) -> Snapshot:
        """Read a document in order to replace it.

        Raises:
            ToolError: If it can't be read, is locked or read-only, or another program changed it since it was
                last observed.
        """
        snapshot = self.read_unchanged(document)
        if reason := self.not_writable(snapshot):
            msg = f"{document!r} is not written: {reason}"
            raise ToolError(msg)
        return snapshot

    def mark_of(self, path: str) -> str | None:
        """Return the fingerprint of the file at an absolute path.

        Returns:
            Empty if there is no file; `FOLDER` for a folder; None if it can't be read or is not in this workspace.
        """
        try:
            absolute_path = self.resolve(Path(path).relative_to(self.folder).as_posix())
            return FOLDER if absolute_path.is_dir() else file_mark(absolute_path)
        except FileNotFoundError:
            return ""
        except (ValueError, OSError, ToolError):
            return None

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a document can't be written now; empty if it can.

        Only the file system is checked, not the content.
        """
        if snapshot.suffix != snapshot.path.suffix.lower():
            name = PurePosixPath(snapshot.document).with_suffix(snapshot.suffix)
            return f"it is in an older format, and stays as it is; save_as makes {str(name)!r}, which can be edited"
        return open_elsewhere(snapshot.path) or ("" if snapshot.mode & 0o222 else "the file is read-only")

    def replace(self, snapshot: Snapshot, data: bytes, answer: JsonValue = None) -> None:
        """Replace an unchanged document's bytes, atomically and synced.

        Args:
            snapshot: The document as it was read; it must not have changed since.
            data: The new bytes.
            answer: The answer of the running call if the write succeeds (see `foresee`).

        Raises:
            ToolError: If the document was changed or locked meanwhile, or the file system refuses. The file is
                unchanged.
            LeaseVoidError: If the lease of the running call is void. The file is unchanged.
        """
        self._put(snapshot.document, snapshot.path, data, snapshot, answer)

    def create(self, document: str, data: bytes) -> Target:
        """Write a new document, atomically and synced; it must not exist yet.

        Args:
            document: The path within the workspace.
            data: The document's bytes.

        Returns:
            Its window, which is the answer of the running call (see `foresee`).

        Raises:
            ToolError: If the name is taken or not portable, or its folder is missing.
            LeaseVoidError: If the lease of the running call is void. Nothing was written.
        """
        self.path(document)
        path, window = self.resolve_new(document), window_of(document)
        self._put(document, path, data, None, window.model_dump(mode="json"))
        return window

    def resolve_new(self, document: str) -> Path:
        """Resolve the path of a new file or folder.

        Raises:
            ToolError: If the name is taken or not portable, or its folder is missing.
        """
        path = self.resolve(document)
        self.check_name(document)
        if not path.parent.is_dir():
            msg = f"{document!r} is refused: there is no folder {path.parent.name!r} in the workspace; make it first"
            raise ToolError(msg)
        if os.path.lexists(path):
            raise _exists_error(document)
        return path

    def check_name(self, document: str) -> None:
        """Refuse a new path that some operating system can't hold.

        Raises:
            ToolError: If a part that does not exist yet is a name that can't be given (see `name_fault`).
        """
        path = self.folder
        for part in document.split("/"):
            path = path / part
            if not os.path.lexists(path) and (reason := name_fault(part)):
                msg = f"{document!r} is refused: {reason}"
                raise ToolError(msg)

    def move(self, source: Path, goal: Path, *, folder: bool) -> None:
        """Rename a file or folder without overwriting; synced.

        A file has both names for a moment, so that no crash and no other program loses it.

        Raises:
            OSError: If the file system refuses; `FileExistsError` if the new name is taken.
        """
        with self._lock:
            if folder:
                if os.path.lexists(goal):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(goal))
                source.rename(goal)
            else:
                if not has_both_names(source, goal):
                    publish_file(source, goal)
                source.unlink(missing_ok=True)
            for parent in {source.parent, goal.parent}:
                sync_folder(parent)

    def write_new(self, document: str, path: Path, data: bytes, answer: JsonValue = None) -> None:
        """Write a new file of any kind at a path of `resolve_new`."""
        self._put(document, path, data, None, answer)

    def write_all_new(self, readings: Mapping[str, Callable[[], bytes]], answer: JsonValue) -> None:
        """Write new files of any kind, with the folders above them.

        A file that is there with the same bytes stays. A crash between two files is no loss: a repeated call writes the
        other ones. All files are foreseen before the first is written, so that the last one tells that all are there.

        Args:
            readings: Functions that return the bytes of a file, by its path within the workspace. Each is called twice.
            answer: The answer of the running call if all writes succeed (see `foresee`).

        Raises:
            ToolError: If a name is taken by other content, or can't be used. Nothing was written. Or if the file system
                refuses a file; those before it are there.
        """
        marks = {name: self._mark_of_new(name, read()) for name, read in readings.items()}
        missing = {name: mark for name, mark in marks.items() if mark}
        for name, mark in missing.items():
            foresee(self.resolve(name), "", mark, answer)
        for name in missing:
            path = self.resolve(name)
            try:
                with committing():
                    path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                msg = f"the folder of {name!r} can't be made: {error.strerror}"
                raise ToolError(msg) from error
            self._put(name, path, readings[name](), None, answer, is_foreseen=True)

    def _mark_of_new(self, name: str, data: bytes) -> str:
        """Return the fingerprint of a new file; empty if it is there.

        Raises:
            ToolError: If its name is taken by other content, or can't be used, or it is too large.
        """
        path, mark = self.resolve(name), fingerprint(data)
        self.check_name(name)
        self._check_size(name, data)
        for folder in path.relative_to(self.folder).parents:
            if os.path.lexists(self.folder / folder) and not (self.folder / folder).is_dir():
                raise _exists_error(folder.as_posix())
        if not os.path.lexists(path):
            return mark
        if not _is_file(path) or file_mark(path) != mark:
            raise _exists_error(name)
        return ""

    def _check_size(self, document: str, data: bytes) -> None:
        if len(data) > self.max_bytes:
            msg = (
                f"{document!r} is not written: it would have {len(data)} bytes; {self.max_bytes} are allowed "
                "(documents.max_bytes); write less, or into another file"
            )
            raise ToolError(msg)

    def _put(
        self,
        document: str,
        path: Path,
        data: bytes,
        old: Snapshot | None,
        answer: JsonValue,
        *,
        is_foreseen: bool = False,
    ) -> None:
        """Write a document to disk; all writes pass through here."""
        self._check_size(document, data)
        self._sweep(path.parent)
        try:
            if old is not None:
                _keep(old)
            with spare_file(path, data, old.mode if old else None) as spare:
                if not is_foreseen:
                    foresee(path, old.fingerprint if old else "", fingerprint(data), answer)
                with write_lock(path), committing(path), self._lock:
                    self.resolve(document)
                    if old is None:
                        publish_file(spare, path)
                    else:
                        _check_unchanged(old)
                        replace_file(spare, path)
                    self._observed_marks[document] = fingerprint(data)
        except FileExistsError:
            raise _exists_error(document) from None
        except OSError as error:
            msg = f"{document!r} can't be written: {error.strerror}"
            raise ToolError(msg) from error


def open_elsewhere(path: Path) -> str:
    """Explain that another program has a file open; empty if none has."""
    lock = lock_file(path)
    return f"it is open in another program ({lock} exists); close it there first" if lock else ""


def file_mark(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hexadecimal.

    Raises:
        OSError: If it can't be read, or is a link.
    """
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def has_both_names(source: Path, goal: Path) -> bool:
    """Return whether a crash interrupted a move: the file has both names.

    A file system may also ignore case or the normalization of names; then the two are one name.
    """
    source_name, goal_name = (unicodedata.normalize("NFKC", str(path)).casefold() for path in (source, goal))
    return source_name != goal_name and goal.is_file() and source.samefile(goal) and source.stat().st_nlink > 1


def _changed_error(document: str) -> ToolError:
    return ToolError(f"{document!r} was changed by another program since it was last observed; observe it again")


def _exists_error(document: str) -> ToolError:
    return ToolError(f"there is already a file {document!r}; choose another name")


def path_fault(document: str) -> str:
    """Explain why a path can't name a document; empty if it can."""
    parts = document.split("/")
    reasons = (
        (not 0 < len(document) <= _MAX_PATH, f"a path has 1 to {_MAX_PATH} characters"),
        (not is_visible_text(document), "it has control characters"),
        ("\\" in document, "folders are separated by /"),
        (not parts[0] or ":" in parts[0] or ".." in parts, "it leads out of the workspace; paths are relative to it"),
        (any(part in {"", "."} for part in parts), "it has an empty part"),
        (any(part.startswith((".", "~$")) for part in parts), "hidden files and lock files are not documents"),
    )
    return next((reason for refused, reason in reasons if refused), "")


def is_visible_text(name: str) -> bool:
    """Return whether a name has no signs that can't be seen.

    Each kind of space counts as seen.
    """
    return all(letter.isprintable() or unicodedata.category(letter) == "Zs" for letter in name)


def name_fault(part: str) -> str:
    """Explain why a new file can't have a name, if so.

    The names of Windows' devices are refused everywhere, also with a suffix.
    """
    reserved = part.partition(".")[0].rstrip().lower() in _RESERVED
    if (
        reserved
        or _NOT_PORTABLE & set(part)
        or part != part.strip().strip(" .")
        or len(part.encode()) > _MAX_NAME_BYTES
    ):
        return "not every operating system can hold a file of that name"
    return "a file of settings is written by a person" if part.casefold() == _SETTINGS_FILE else ""


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _keep(old: Snapshot) -> None:
    """Keep a document's bytes, if the task names it in `may_change`."""
    try:
        keep_version(old.document, old.path, old.data)
    except JournalError as error:
        msg = f"{old.document!r} is not written, because its version before can't be kept: {error}"
        raise ToolError(msg) from error


def _check_unchanged(old: Snapshot) -> None:
    if reason := open_elsewhere(old.path):
        msg = f"{old.document!r} is not written: {reason}"
        raise ToolError(msg)
    try:
        same = fingerprint(read_file(old.path)) == old.fingerprint
    except FileNotFoundError:
        same = False
    if not same:
        raise _changed_error(old.document)
