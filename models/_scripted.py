"""A model that plays a script.

It maps an address to a list of answers, in the response schema. A string in an answer may contain references:
``${subtasks.1.output.rows}`` is replaced by that value, which keeps its type if it is the whole string. ``$${`` escapes
``${``. References can start with:

- ``request``, ``task.id``, ``task.request``, ``target.id`` …
- ``subtasks.N.output``, ``.outcome``, ``.artifacts`` … of the task's N-th subtask
- ``steps.N.results.M.value`` of the agent's N-th step in this task, M counting from 0
- ``observation.controls.M.id``, ``observation.targets.M.name`` …, M counting from 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.config import YamlError, load_yaml
from callboard.messages import ResultStatus, ScriptError, form_of
from callboard.models._model import Model, ModelAnswer, ModelRequest
from callboard.models._references import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_ANY_HOST, _JUDGE = "host", "judge"


class ScriptedModel(Model):
    """A model that plays answers by address.

    The request's call number selects the answer. An answer that is sent back fails the step, because a script can't
    correct it.

    The key ``host`` serves every HostAgent, since their addresses contain the task's id, and ``judge`` every judge. An
    application's address, such as ``app/mousepad/*``, serves the agents of all its processes. All other keys are
    complete addresses.

    Example:
        >>> model = ScriptedModel({"app/memo/one": [{"Status": "FINISH", "Result": 4}]})
        >>> with Supervisor.start(servers=[MemoryServer(MemoryServer.window())], models={"app": model}) as supervisor:
        ...     supervisor.submit(Task(request="Add", target="memo:one")).result().ok
        True
    """

    def __init__(self, answers: Mapping[str, Sequence[Any]], source: str = "the script") -> None:
        """Initialise the model.

        Raises:
            ScriptError: If the answers do not have the form address → list of objects.
        """
        self._source = source
        self._answers = _checked(answers, source)

    def __repr__(self) -> str:
        """Show the script and the addresses that it has answers for."""
        return f"<{type(self).__name__} {self._source}: {', '.join(self._answers) or 'no answers'}>"

    @classmethod
    def load(cls, path: Path) -> ScriptedModel:
        """Read a script from a YAML file.

        Raises:
            ScriptError: If the file can't be read or has the wrong form.
        """
        try:
            content = load_yaml(path)
        except YamlError as error:
            msg = f"the script {error}"
            raise ScriptError(msg) from None
        return cls(content if content is not None else {}, str(path))

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Return the next answer with its references resolved.

        Raises:
            ScriptError: If there is none, or a reference can't be resolved; the message names agent and step.
        """
        who = f"{request.address}, step {request.step}"
        key = self._key(request)
        if key not in self._answers:
            script_key = key if request.evidence is not None else _ANY_HOST if request.is_host else request.address
            available = (
                f"it has answers for {', '.join(self._answers)}" if self._answers else "it has no answers at all"
            )
            msg = (
                f"{who}: {self._source} has no answers for this agent: add a list of them, {script_key!r}; {available}"
            )
            raise ScriptError(msg)
        answers = self._answers[key]
        if request.reasons:
            msg = (
                f"{who}: answer {request.call - 1} of {self._source} can't be used: {request.reasons[-1]}; "
                "a script can't correct an answer"
            )
            raise ScriptError(msg)
        if request.call > len(answers):
            missing = f"{self._source} has no answer {request.call} for {key}; it has {len(answers)}: add the next one"
            msg = f"{who}: {missing}"
            raise ScriptError(msg)
        try:
            return ModelAnswer(content=resolve(answers[request.call - 1], _visible(request)), cost=0.0, program=True)
        except LookupError as error:
            msg = f"{who}: {self._source}, answer {request.call} of {key}: {error.args[0]}{_failure(request)}"
            raise ScriptError(msg) from error

    def _key(self, request: ModelRequest) -> str:
        """Return the key: an address, ``host``, ``judge``, or an application's."""
        application = f"{request.address.rpartition('/')[0]}/*"
        any_such = _ANY_HOST if request.is_host else _JUDGE if request.evidence is not None else application
        return any_such if request.address not in self._answers and any_such in self._answers else request.address


def _checked(answers: object, source: str) -> dict[str, list[dict[str, Any]]]:
    if not isinstance(answers, dict):
        msg = f"{source}: expected address → list of answers, found {form_of(answers)}"
        raise ScriptError(msg)
    for address, entries in answers.items():
        if not isinstance(address, str) or not isinstance(entries, list | tuple):
            msg = f"{source}: {address}: expected a list of answers, found {form_of(entries)}"
            raise ScriptError(msg)
        for number, entry in enumerate(entries, 1):
            if not isinstance(entry, dict):
                msg = f"{source}: {address}: answer {number} is a {type(entry).__name__}, not an object"
                raise ScriptError(msg)
    return {address: list(entries) for address, entries in answers.items()}


def _failure(request: ModelRequest) -> str:
    """Describe the likely cause of a missing value; empty without one.

    It is a failure in the step before, or an action that a dry run did not execute.
    """
    for record in request.memory[-1:]:
        for result in record.results:
            if result.status is ResultStatus.FAILURE:
                return f"; before, {result.tool} failed: {result.error}"
    results = [result for record in reversed(request.memory) for result in record.results]
    dry = (result.tool for result in results if result.status is ResultStatus.DRY_RUN)
    return next((f"; {tool} has no value, because a dry run does not execute it" for tool in dry), "")


def _visible(request: ModelRequest) -> dict[str, Any]:
    return {
        "request": request.request,
        "task": {"id": request.task_id, "request": request.task_request},
        "target": request.target.model_dump(mode="json") if request.target else {},
        "observation": request.observation.model_dump(mode="json"),
        "subtasks": {str(done.number): done.model_dump(mode="json") for done in request.subtasks},
        "steps": {str(number): record.model_dump(mode="json") for number, record in enumerate(request.memory, 1)},
    }
