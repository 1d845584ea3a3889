"""Recording: what models were asked and what they answered, in a file, a JSON object a line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from callboard.actors.models._model import Expected, Model, ModelAnswer, ModelRequest, on_thread
from callboard.actors.models.recording._request_digest import Place, RequestDigest
from callboard.config import make_private, open_private
from callboard.messages import ModelError, ModelTimeoutError, SettingsError, Usage, Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from callboard.config import Settings


_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(allow_inf_nan=False))


class Recorded(Value):
    """One call of a model: a line of a recording."""

    recording: Literal[1]
    """The version of the line's form."""
    address: str
    """Who asked; ``host`` for every HostAgent, since their addresses hold the task's id."""
    call: int = Field(ge=1)
    """The number of the call at this address within its task."""
    model: str = ""
    """Who was asked."""
    fingerprint: str
    """The hash of all that the model was shown."""
    request: tuple[str, ...] = ()
    """What it was shown, for people and for differences."""
    answer: ModelAnswer | None = None
    error: str = ""
    """Why there was no answer."""
    timeout: bool = False
    """Whether that was because it took too long."""
    usage: Usage | None = None
    """What was taken without an answer, if that is known."""


Redact: TypeAlias = Callable[[str, Recorded], Recorded]
"""Takes a task's secrets out of a line."""


def as_it_is(_task_id: str, line: Recorded) -> Recorded:
    """Leave a line as it is: nothing is secret."""
    return line


class Recording:
    """The file of a recording; written by many agents at a time, each call when it is over. Thread-safe."""

    def __init__(self, path: Path, base: Path) -> None:
        """Begin a recording, or go on with one.

        Args:
            path: The file; made if it is not there.
            base: The folder of the run, which the recording does not name.

        Raises:
            SettingsError: If it can't be written.
        """
        self.path = path
        self.base = base
        self.place = Place(base)
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
            ModelError: If it can't be written: a recording with a gap could not be played back.
        """
        text = line.model_dump_json(exclude_defaults=True)
        try:
            with self._lock, open_private(self.path) as file:
                file.write(f"{text}\n")
        except OSError as error:
            msg = f"the recording {self.path} can't be written: {error.strerror}"
            raise ModelError(msg) from error


class RecordingModel(Model):
    """Asks another model, and keeps what was asked and answered before it hands the answer on.

    A call that is broken off, by a cancel or a deadline, leaves nothing.
    """

    def __init__(self, model: Model, recording: Recording, redact: Redact = as_it_is) -> None:
        self.name = model.name or type(model).__name__
        self._model = model
        self._recording = recording
        self._redact = redact

    def estimate(self, request: ModelRequest) -> Expected:
        """Say what the other model says."""
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
            ModelError: If it gave no answer, or the file can't be written.
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
                answer=None if answer is None else _written(answer, recording.place),
                error=recording.place.hide(why),
                timeout=isinstance(error, ModelTimeoutError),
                usage=None if error is None else error.usage,
            )
            recording.add(self._redact(request.task_id, line))

        recording = self._recording
        await on_thread(write, "callboard-recording")


def _written(answer: ModelAnswer, place: Place) -> ModelAnswer:
    try:
        content: JsonValue = _JSON.validate_python(answer.content)
        _JSON.dump_json(content)
    except ValueError:
        content = repr(answer.content)  # it is no JSON, and is sent back for that
    return answer.model_copy(update={"content": place.hide(content)})


def record(models: Mapping[str, Model], settings: Settings, redact: Redact = as_it_is) -> Mapping[str, Model]:
    """Have models recorded, if the settings say so: all of them in one file. `redact` takes a task's secrets out.

    Raises:
        SettingsError: If the file can't be written.
    """
    if settings.models.record is None:
        return models
    recording = Recording(settings.path(settings.models.record), settings.base)
    return {kind: RecordingModel(model, recording, redact) for kind, model in models.items()}
