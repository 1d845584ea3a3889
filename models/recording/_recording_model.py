"""Record requests and answers of models in a file.

It has one JSON object per line.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from callboard.config import make_private, open_private
from callboard.messages import ModelError, ModelTimeoutError, SettingsError, Usage, Value
from callboard.models._model import Expected, Model, ModelAnswer, ModelRequest, on_thread
from callboard.models.recording._request_digest import RequestDigest, RunFolder

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from callboard.config import Settings


_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(allow_inf_nan=False))


class Recorded(Value):
    """A recorded call of a model: one line of a recording."""

    recording: Literal[1]
    """The version of the format."""
    address: str
    """The agent's address; ``host`` for every HostAgent, since their addresses contain the task's id."""
    call: int = Field(ge=1)
    """The number of the call at this address within its task."""
    model: str = ""
    """The name of the model."""
    fingerprint: str
    """The hash of the request as shown to the model."""
    request: tuple[str, ...] = ()
    """The request as readable lines, which are also compared for differences."""
    finds_omissions: bool = False
    """Whether a FINISH that omitted a part of the request went back; false in recordings of versions that believed it,
    which are played back as they ran."""
    answer: ModelAnswer | None = None
    error: str = ""
    """The reason why there was no answer."""
    timeout: bool = False
    """Whether the call timed out."""
    usage: Usage | None = None
    """The usage of a call without an answer, if known."""


Redact: TypeAlias = Callable[[str, Recorded], Recorded]
"""A function that redacts a task's secrets in a line."""


def as_it_is(_task_id: str, line: Recorded) -> Recorded:
    """Return a line unchanged, because nothing in it is secret."""
    return line


class Recording:
    """The file of a recording.

    Each call is written when it ends. Thread-safe.
    """

    def __init__(self, path: Path, base: Path) -> None:
        """Create or open a recording.

        Args:
            path: The file; created if it does not exist.
            base: The folder of the run; the recording does not contain its path.

        Raises:
            SettingsError: If the file can't be written.
        """
        self.path = path
        self.base = base
        self.run_folder = RunFolder(base)
        self._lock = threading.Lock()
        try:
            make_private(path.parent, exist_ok=True)
            open_private(path).close()
        except OSError as error:
            msg = f"the recording {path} can't be written: {error.strerror}"
            raise SettingsError(msg) from error

    def add(self, line: Recorded) -> None:
        """Write one call. May block.

        Raises:
            ModelError: If the file can't be written: a recording with a gap can't be played back.
        """
        text = line.model_dump_json(exclude_defaults=True)
        try:
            with self._lock, open_private(self.path) as file:
                file.write(f"{text}\n")
        except OSError as error:
            msg = f"the recording {self.path} can't be written: {error.strerror}"
            raise ModelError(msg) from error


class RecordingModel(Model):
    """A model that delegates to another one and records each call.

    A call that is interrupted by a cancellation or a deadline is not recorded.
    """

    def __init__(self, model: Model, recording: Recording, redact: Redact = as_it_is) -> None:
        self.name = model.name or type(model).__name__
        self._model = model
        self._recording = recording
        self._redact = redact

    def routine_answer(self, request: ModelRequest) -> ModelAnswer | None:
        """Return the answer of the other model's routine, which is not recorded."""
        return self._model.routine_answer(request)

    def routine_waits(self, request: Callable[[], ModelRequest]) -> bool:
        """Return whether the other model's routine needs another screen."""
        return self._model.routine_waits(request)

    def estimate(self, request: ModelRequest) -> Expected:
        """Return the other model's estimate."""
        return self._model.estimate(request)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for the other model's turn."""
        return self._model.turn()

    async def close(self) -> None:
        """Close the other model."""
        await self._model.close()

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask the other model.

        Raises:
            ModelError: If the call fails, or the file can't be written.
        """
        try:
            answer = await self._model.answer(request)
        except ModelError as error:
            await self._keep(request, None, error)
            raise
        await self._keep(request, answer)
        return answer

    async def _keep(self, request: ModelRequest, answer: ModelAnswer | None, error: ModelError | None = None) -> None:
        why = "" if error is None else str(error) or type(error).__name__

        def write() -> None:
            sight = RequestDigest(request, recording.base)
            line = Recorded(
                recording=1,
                address=sight.address,
                call=sight.call,
                model=self.name,
                fingerprint=sight.fingerprint,
                request=tuple(sight.digest()),
                finds_omissions=True,
                answer=None if answer is None else _written(answer, recording.run_folder),
                error=recording.run_folder.hide(why),
                timeout=isinstance(error, ModelTimeoutError),
                usage=None if error is None else error.usage,
            )
            recording.add(self._redact(request.task_id, line))

        recording = self._recording
        await on_thread(write, "callboard-recording")


def _written(answer: ModelAnswer, folder: RunFolder) -> ModelAnswer:
    try:
        content: JsonValue = _JSON.validate_python(answer.content)
        _JSON.dump_json(content)
    except ValueError:
        content = repr(answer.content)  # not JSON: the answer is sent back as invalid
    return answer.model_copy(update={"content": folder.hide(content)})


def recorder(settings: Settings, redact: Redact = as_it_is) -> Callable[[Model], Model]:
    """Return a function that makes models record their calls, if so configured.

    Secrets are redacted.

    Raises:
        SettingsError: If the file can't be written.
    """
    if settings.models.record is None:
        return lambda model: model
    recording = Recording(settings.path(settings.models.record), settings.base)
    return lambda model: RecordingModel(model, recording, redact)
