"""A model that plays back a recording offline."""

from __future__ import annotations

import collections
import difflib
import itertools
import threading
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.messages import ModelError, ModelTimeoutError, ScriptError, SettingsError, plain_problems
from callboard.models._model import Model, ModelAnswer, ModelRequest
from callboard.models.recording._recording_model import Recorded
from callboard.models.recording._request_digest import RequestDigest, RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from callboard.config import Settings


_MOST_LINES = 60
"""Maximum number of lines of a difference in an error."""


class MatchBy(StrEnum):
    """The criterion for matching a request to a recorded call."""

    REQUEST = "request"
    """The entire request: a request that differs from the recorded one is an error."""
    ORDER = "order"
    """Only the agent's address and the number of the call."""


class RecordedModel(Model):
    """A model that returns recorded answers to agents at the recorded addresses.

    Answers are found by address and number of the call within the task, so agents may take turns in a different order
    than in the recording. If several tasks used the same address, each answer is returned once.
    """

    def __init__(
        self, lines: Iterable[Recorded], base: Path, by: MatchBy = MatchBy.REQUEST, source: str = "the recording"
    ) -> None:
        """Initialise the model.

        Args:
            lines: The recorded calls.
            base: The folder of this run.
            by: The criterion for a match.
            source: The name of the recording in errors.
        """
        self._lines: dict[tuple[str, int], list[Recorded]] = collections.defaultdict(list)
        for line in lines:
            self._lines[line.address, line.call].append(line)
        self._base = base
        self._run_folder = RunFolder(base)
        self._by = by
        self._source = source
        self._played: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path, base: Path, by: MatchBy = MatchBy.REQUEST) -> RecordedModel:
        """Read a recording.

        Raises:
            ScriptError: If the file can't be read, or a line is not a recorded call.
        """
        try:
            texts = path.read_text(encoding="utf-8").split("\n")  # `splitlines` would split inside JSON strings, too
        except (OSError, UnicodeDecodeError) as error:
            why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
            msg = f"the recording {path} can't be read: {why}"
            raise ScriptError(msg) from error
        lines = [_read(text, f"{path}, line {number}") for number, text in enumerate(texts, 1) if text.strip()]
        return cls(lines, base, by, str(path))

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Return the recorded answer, or fail as the recorded call did.

        Raises:
            ScriptError: If there is none, or the request differs from the recorded one: the message shows the
                difference.
            ModelError: If the recorded call failed.
        """
        sight = RequestDigest(request, self._base)
        line = self._next(sight, f"{request.address}, step {request.step}, call {request.call}")
        if line.answer is None:
            failure = ModelTimeoutError if line.timeout else ModelError
            raise failure(self._run_folder.show(line.error), line.usage)
        answer = line.answer
        # no secrets even if a program gave it: the file may have been edited
        changed: dict[str, object] = {"program": False, "must_succeed": answer.must_succeed and not answer.program}
        if not line.finds_omissions:
            changed["omission"] = ""
        return answer.model_copy(update={"content": self._run_folder.show(answer.content), **changed})

    def _next(self, sight: RequestDigest, who: str) -> Recorded:
        lines = self._lines.get((sight.address, sight.call), [])
        if not lines:
            msg = f"{who}: {self._source} has no such call; {self._has(sight.address)}"
            raise ScriptError(msg)
        with self._lock:
            new = [line for line in lines if id(line) not in self._played]
            if self._by is MatchBy.REQUEST:
                fits = [line for line in (*new, *lines) if line.fingerprint == sight.fingerprint]
            else:
                fits = new or lines[-1:]
            if fits:
                self._played.add(id(fits[0]))
                return fits[0]
        recorded_text, request_text = (new or lines)[0].request, sight.digest()
        difference_lines = difflib.unified_diff(recorded_text, request_text, "recorded", "asked now", n=1, lineterm="")
        changed = list(itertools.islice(difference_lines, _MOST_LINES + 1))
        shown_lines = [*changed[:_MOST_LINES], "…"] if len(changed) > _MOST_LINES else changed
        difference = "\n".join(shown_lines) or "what differs is not shown: it is the same at its beginning"
        msg = f"{who}: the request is another one than {self._source} has:\n{difference}"
        raise ScriptError(msg)

    def _has(self, address: str) -> str:
        calls = [call for line_address, call in self._lines if line_address == address]
        if calls:
            return f"its last one at {address} has the number {max(calls)}"
        addresses = ", ".join(sorted({line_address for line_address, _ in self._lines})) or "no agent"
        return f"it has some of {addresses}"


def _read(text: str, where: str) -> Recorded:
    try:
        return Recorded.model_validate_json(text)
    except ValidationError as error:
        msg = f"{where}: is no recorded call: {plain_problems(error.errors())[0]}"
        raise ScriptError(msg) from error


def recorded_model(settings: Settings, source: str) -> RecordedModel:
    """Build the model ``recorded:FILE`` or ``recorded:FILE?by=order``; `source` follows the colon.

    Raises:
        SettingsError: If a parameter is not ``by``, or its value is neither ``request`` nor ``order``.
        ScriptError: If the file can't be read.
    """
    file, _, query = source.partition("?")
    key, _, value = query.partition("=")
    if query and (key != "by" or value not in set(MatchBy)):
        msg = f"recorded:{source}: {query!r} is not known; known: by=request (as without it), by=order"
        raise SettingsError(msg)
    return RecordedModel.load(settings.path(file), settings.base, MatchBy(value) if value else MatchBy.REQUEST)
