"""Proposed changes beside a routine's file, and their promotion."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import RoutineError
from callboard.routines._promotion_rules import concerns, refusals
from callboard.routines._readable_yaml import dump
from callboard.routines._repair import difference, propose
from callboard.routines._routine_file import load_routine
from callboard.surfaces import publish_file, replace_file, spare_file, write_lock

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.journal import JournalReader
    from callboard.messages import Routine
    from callboard.routines._repair import RoutineProposal

_SUFFIX = re.compile(r"\.ya?ml$", re.IGNORECASE)
_MOST_VERSIONS = 10_000
_COMPARED = 50
"""The number of latest runs whose repairs are compared."""


@dataclass(frozen=True)
class StoredProposal:
    """A proposed change beside a routine's file."""

    file: Path
    """The routine's file."""
    path: Path
    """The file of the proposal."""
    routine: Routine
    proposed: Routine

    @property
    def difference(self) -> str:
        """The change as a unified difference of YAML."""
        return difference(self.routine, self.proposed)

    @property
    def refusals(self) -> list[str]:
        """The reasons for which it is never promoted as it is."""
        return refusals(self.routine, self.proposed)

    @property
    def concerns(self) -> list[str]:
        """The parts that a person has to look at first."""
        return concerns(self.routine, self.proposed)


def proposal_path(file: Path) -> Path:
    """Return the file of a routine's proposed change: ``NAME.routine.proposed.yaml``."""
    return _beside(file, "proposed")


def write_proposal(proposal: RoutineProposal, file: Path) -> Path:
    """Write a proposed change beside the routine's file.

    It replaces an earlier one. The path is returned.

    Raises:
        RoutineError: If the file has another routine now than the one that the task repeated.
        OSError: If it can't be written.
    """
    current = load_routine(file)
    if current.digest != proposal.routine.digest:
        msg = (
            f"{file}: was changed since the task {proposal.task} repeated it, so that its repair does not fit: run the "
            "routine again"
        )
        raise RoutineError(msg)
    path = proposal_path(file)
    schema, _, content = dump(proposal.proposed).partition("\n")
    verified = "was verified" if proposal.verified else "was not verified"
    text = (
        f"{schema}\n# Proposed from the task {proposal.task}, which {verified}, for\n"
        f"# {file.name}; it is not used before `callboard routine promote {file.name}`.\n{content}"
    )
    with spare_file(path, text.encode(), _mode(file)) as spare:
        replace_file(spare, path)
    return path


def stored_proposal(file: Path) -> StoredProposal:
    """Read the proposed change of a routine.

    Raises:
        RoutineError: If there is none, it or the routine is invalid, or it is for another version of the routine.
    """
    path = proposal_path(file)
    routine = load_routine(file)
    if not path.exists():
        msg = f"{file}: has no proposed change: {path.name} is not there"
        raise RoutineError(msg)
    proposed = load_routine(path)
    if routine.digest not in {proposed.proposal_for, proposed.digest}:
        msg = f"{path}: is for another version of {file.name}, which was changed since: run the routine again"
        raise RoutineError(msg)
    return StoredProposal(file, path, routine, proposed)


def promote(file: Path, *, without_person: bool = False) -> Path:
    """Replace a routine by its proposed change.

    The former version is durable before the change: ``NAME.routine.1.yaml``, with the next free number; this file is
    returned. The routine is replaced in one step. After a crash, a second call completes it.

    Args:
        file: The routine's file.
        without_person: Whether no person looked at the change: then one with `StoredProposal.concerns` is refused.

    Raises:
        RoutineError: If there is no proposal that fits, or it may not be promoted.
        OSError: If a file can't be written.
    """
    file = file.resolve()
    with write_lock(file):
        stored = stored_proposal(file)
        former = file.read_bytes()
        if stored.proposed.digest == stored.routine.digest:  # a crash came before the end
            stored.path.unlink()
            return _latest_version(file) or file
        reasons = stored.refusals + (stored.concerns if without_person else [])
        if reasons:
            how = "look at it with `callboard routine diff`" if not stored.refusals else "edit the routine by hand"
            listed = "".join(f"\n{file}: {reason}" for reason in reasons)
            msg = f"{stored.path}: is not promoted; {how}, if it is right:{listed}"
            raise RoutineError(msg)
        version = _kept_version(file, former)
        text = dump(stored.proposed.model_copy(update={"proposal_for": ""}))
        with spare_file(file, text.encode(), _mode(file)) as spare:
            replace_file(spare, file)
        stored.path.unlink()
    return version


def verified_runs(reader: JournalReader, proposal: RoutineProposal) -> int:
    """Count the verified runs with the same repair, among the latest ones."""
    count = 0
    for run in reader.routine_runs(proposal.routine.routine, limit=_COMPARED):
        if run.digest != proposal.routine.digest or not run.missed or run.verified is not True or run.dry_run:
            continue
        try:
            other = proposal if run.task == proposal.task else propose(reader.rows(run.task))
        except RoutineError:  # no routine can be made of that run, so it has no such repair
            continue
        count += other is not None and other.fingerprint == proposal.fingerprint
    return count


def _kept_version(file: Path, content: bytes) -> Path:
    """Write the former version; it may be there since a crash."""
    latest = _latest_version(file)
    if latest is not None and latest.read_bytes() == content:
        return latest
    first = 1 if latest is None else _number(file, latest) + 1
    for number in range(first, _MOST_VERSIONS):
        path = _beside(file, str(number))
        with spare_file(path, content, _mode(file)) as spare:
            try:
                publish_file(spare, path)
            except FileExistsError:
                continue
        return path
    msg = f"{file}: has {_MOST_VERSIONS:,} former versions: move them to another folder"
    raise RoutineError(msg)


def _latest_version(file: Path) -> Path | None:
    numbers = {_number(file, path): path for path in file.parent.iterdir()}
    return numbers[max(numbers)] if max(numbers, default=0) else None


def _number(file: Path, path: Path) -> int:
    """Return the number of a former version; 0 for another file."""
    stem = re.escape(_SUFFIX.sub("", file.name))
    match = re.fullmatch(rf"{stem}\.([1-9]\d{{0,4}})\.ya?ml", path.name)
    return 0 if match is None else int(match[1])


def _beside(file: Path, word: str) -> Path:
    return file.with_name(f"{_SUFFIX.sub('', file.name)}.{word}.yaml")


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)
