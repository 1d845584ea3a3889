"""Secret values.

Models, people and records see only their names; tools receive the values.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.config import AS_NUMBER, MASK, REFERENCE, Redactor, number_of
from callboard.messages import Routine, Secret, Task, each_text
from callboard.surfaces import ToolError

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import Decision, Target

SHORTEST_IN_NAME = 6
"""The shortest value that is looked for in ids and arguments; a shorter one would occur there by chance."""

KEY_ROUNDS = 50_000
"""Rounds of PBKDF2 for a task's key that contains a secret: guessing it costs about 20 ms a try."""

_BEGINS = "${secret:"
"""The start of each reference to a secret; `repr` does not escape it."""

_MAY_CHANGE = frozenset({dict, list})

_T = TypeVar("_T")


class UnknownSecretError(Exception):
    """A tool's argument names an unknown secret.

    It does not exist, or was lost with a restart.
    """


class SecretRefusedError(ToolError):
    """A model's answer names a secret where it is not granted.

    The message is for the model.
    """

    def __init__(self, name: str, tool: str, parameter: str) -> None:
        self.name, self.parameter = name, parameter
        super().__init__(
            f"the secret {name!r} is not granted to {tool}, argument {parameter!r}, here: it was not inserted. "
            "Its owner has to grant it for that; leave it out, or report what is missing"
        )


@dataclass(frozen=True)
class SecretPlace:
    """A tool and a target, for which secrets can be granted."""

    tool: str
    declared: frozenset[str] = frozenset()
    """The parameters that the tool declares as secret."""
    target: Target | None = None
    checks_origins: bool = False
    """Whether the tool checks the origin of the page that a secret is put into."""

    def granted(self, secret: Secret, parameter: str) -> bool:
        """Return whether a secret is granted to one of the tool's parameters.

        The secret has to name the parameter, the tool and the target. If it names no parameters, it is granted to
        those that are declared as secret; if it names no tools or no targets, to all of them.
        """
        target = self.target
        # no title: any program can choose its window's
        target_names = ("",) if target is None else (target.id, target.address)
        return (
            (_fits(secret.parameters, parameter) if secret.parameters else parameter in self.declared)
            and (not secret.tools or _fits(secret.tools, self.tool))
            and (not secret.targets or _fits(secret.targets, *target_names))
            and (not secret.origins or self.checks_origins)
        )


def _fits(patterns: tuple[str, ...], *names: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)


class Secrets:
    """The secrets of the operator and of the unfinished tasks.

    Thread-safe. The reference ``${secret:NAME}`` in a tool's argument stands for a value: anywhere if a program wrote
    it, and where it is granted in a model's answer. In tools' answers and observations, references replace the values.
    """

    def __init__(self, operators: Mapping[str, Secret], keys: Iterable[str] = ()) -> None:
        """Create them.

        All tasks may use the operator's, none may use `keys`. A task's own take precedence.
        """
        self._operators = dict(operators)
        self._keys = dict.fromkeys(keys, MASK)
        self._tasks: dict[str, dict[str, Secret]] = {}
        self._redactors: dict[str, Redactor] = {}
        self._covered: dict[str, set[tuple[str, str]]] = {}
        self._shared = self._redactor({})
        self.known = bool(self._operators or self._shared)
        """Whether there are secrets now; otherwise nothing needs redacting."""
        self._lock = threading.Lock()

    def keep(self, task: Task) -> None:
        """Keep a task's secrets while it runs."""
        if task.secrets:
            task_secrets = _secrets_of(task)
            with self._lock:
                self._tasks[task.id], self._redactors[task.id] = task_secrets, self._redactor(task_secrets)
                self.known = True

    def drop(self, task_id: str) -> None:
        """Forget a task's secrets."""
        with self._lock:
            self._tasks.pop(task_id, None)
            self._redactors.pop(task_id, None)
            self._covered.pop(task_id, None)
            self.known = bool(self._operators or self._shared or self._redactors)

    def cover(self, task_id: str, target: str, control: str) -> None:
        """Record a control that a task puts a secret into.

        Pictures hide it while the task runs.
        """
        with self._lock:
            self._covered.setdefault(task_id, set()).add((target, control))

    @property
    def covers(self) -> bool:
        """True if a task has put a secret into a control."""
        return bool(self._covered)

    def covered(self, target: str) -> tuple[str, ...]:
        """List a target's controls that any task has put secrets into."""
        with self._lock:
            controls = {
                control
                for pairs in self._covered.values()
                for covered_target, control in pairs
                if covered_target == target
            }
        return tuple(sorted(controls))

    def names(self, task_id: str) -> tuple[str, ...]:
        """List the names of a task's secrets, its own and the operator's."""
        return tuple(self._of(task_id))

    def own_names(self, task_id: str) -> tuple[str, ...]:
        """List the names of a task's own secrets."""
        with self._lock:
            return tuple(self._tasks.get(task_id, ()))

    def granted(
        self, task_id: str, places: Sequence[tuple[SecretPlace, Iterable[str]]]
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """List the secrets granted to some calls.

        Each comes with its places: ``tool, argument``.
        """
        grants = (
            (
                name,
                tuple(
                    f"{secret_place.tool}, {parameter}"
                    for secret_place, names in places
                    for parameter in names
                    if secret_place.granted(secret, parameter)
                ),
            )
            for name, secret in self._of(task_id).items()
        )
        return tuple((name, where) for name, where in grants if where)

    def fill(
        self, task_id: str, arguments: dict[str, JsonValue], secret_place: SecretPlace | None
    ) -> dict[str, JsonValue]:
        """Replace references with values; without references, the arguments may be returned unchanged.

        Args:
            task_id: The task.
            arguments: A call's arguments.
            secret_place: The call's place if a model decided on it; None if a program did.

        Raises:
            SecretRefusedError: If a secret is not granted to the place.
            UnknownSecretError: If there is no such secret, or it was lost with a restart.
        """
        if _BEGINS not in repr(arguments) and _MAY_CHANGE.isdisjoint(map(type, arguments.values())):
            return arguments  # otherwise the tool gets copies of lists and objects, which it may modify
        secrets = self._of(task_id)
        if secret_place is not None:
            for parameter, argument in arguments.items():
                for name in secrets_named(argument):
                    if name in secrets and not secret_place.granted(secrets[name], parameter):
                        raise SecretRefusedError(name, secret_place.tool, parameter)

        def value(mark: re.Match[str]) -> str:
            if mark[1] not in secrets:
                names = ", ".join(secrets) or "none"
                msg = (
                    f"there is no secret {mark[1]!r}; there are: {names}. A task's own secrets are not stored, "
                    "and are lost with the process; those of the settings are available again"
                )
                raise UnknownSecretError(msg)
            return secrets[mark[1]].value.get_secret_value()

        def filled(text: str) -> Any:
            match = REFERENCE.fullmatch(text) if text.endswith(AS_NUMBER) else None
            number = None if match is None else number_of(value(match))
            return REFERENCE.sub(value, text) if number is None else number

        return {name: each_text(argument, filled) for name, argument in arguments.items()}

    def origins(self, task_id: str, arguments: Mapping[str, JsonValue]) -> dict[str, tuple[str, ...]]:
        """Return the origins of pages for the secrets that arguments name.

        Those that may be put into any page are left out.
        """
        if _BEGINS not in repr(arguments):
            return {}
        secrets = self._of(task_id)
        names = secrets_named(dict(arguments)) & secrets.keys()
        return {name: secrets[name].origins for name in sorted(names) if secrets[name].origins}

    def redact(self, task_id: str, message: _T) -> _T:
        """Replace values with references, in all texts of a message.

        Without secrets, the message itself is returned; callers on hot paths check `known` first.
        A task's key that contains a secret becomes a digest, so that keys which differ only in a secret stay distinct.
        """
        redactor = self._redactors.get(task_id, self._shared)
        return _redacted(redactor, message) if redactor.known else message

    def decided(self, task_id: str, decision: Decision, *, program: bool) -> Decision:
        """Redact a decision.

        `fill` puts the values back where references may stand for them. A model may have read a value from a picture.
        Once replaced by a reference, it is used only where it is granted. Short values in a model's arguments are left,
        since a model may write them by chance.
        """
        redacted = self.redact(task_id, decision)
        if redacted.actions == decision.actions:
            return redacted
        named = Redactor(_marks(self._of(task_id)), SHORTEST_IN_NAME)  # without keys: no reference stands for a key
        actions = (named if program else named.long).redact(decision.actions)
        return redacted.model_copy(update={"actions": actions})

    def redactor(self, task_id: str) -> Redactor:
        """Return the redactor of a task.

        Takes no lock, since `dict.get` is atomic.
        """
        return self._redactors.get(task_id, self._shared)

    def in_target(self, task_id: str, target: Target) -> bool:
        """Return whether a target's names contain a secret; records hold them unredacted."""
        return _holder(self._of(task_id), _names_of(target)) is not None

    def check_names(self, task: Task, target: Target | None = None) -> None:
        """Refuse a task whose names contain a secret; records hold them unredacted.

        Raises:
            ValueError: If its id, session, target, policy, model, `output_schema`, `may_change`, routine or a value of
                a parameter does; the message names the field.
        """
        if not (self._operators or task.secrets):
            return
        secrets = {**self._operators, **_secrets_of(task)}
        names_by_field: dict[str, list[str]] = {
            name: [getattr(task, name) or ""] for name in ("id", "session") if name in task.model_fields_set
        }
        names_by_field["target"] = [task.target or ""] if target is None else _names_of(target)
        names_by_field["model"] = list(task.models)
        names_by_field["may_change"] = list(task.may_change)
        for what, names in names_by_field.items():
            held = _holder(secrets, names)
            if held is not None:
                msg = (
                    f"this task is refused: its {what} contains the secret {held!r}, and names appear in journal, log "
                    "and events: choose another one"
                )
                raise ValueError(msg)
        self._check_routine(task)
        quotes = task.policy or task.output_schema is not None or task.all_checks or task.judge is not None
        redacted_task = self.as_kept(task) if quotes else task
        if redacted_task.policy != task.policy:
            msg = "this task is refused: a rule of its policy quotes a secret, and would not be kept: use a pattern"
            raise ValueError(msg)
        if redacted_task.all_checks != task.all_checks:
            msg = "this task is refused: a check quotes a secret, and would not be kept: write ${secret:NAME} instead"
            raise ValueError(msg)
        if redacted_task.judge != task.judge:
            msg = "this task is refused: a question to its judge quotes a secret, and would not be kept: leave it out"
            raise ValueError(msg)
        if redacted_task.output_schema != task.output_schema:
            msg = "this task is refused: the schema of its output quotes a secret, and would not be kept: leave it out"
            raise ValueError(msg)

    def _check_routine(self, task: Task) -> None:
        """Refuse a routine that quotes a secret.

        All texts count, also names that records keep unredacted.

        Raises:
            ValueError: If it or the value of a parameter does.
        """
        if task.routine is None:
            return
        redactor, routine = self._redactor(_secrets_of(task)), task.routine
        values: Any = dict(task.parameters)
        contents: list[Any] = [values, routine]
        if isinstance(routine, Routine):
            contents += routine.subtasks  # a redactor takes them for those of a result, and leaves them
        quoting = next((content for content in contents if redactor.redact(content) != content), None)
        if quoting is None and isinstance(routine, Routine):
            names = routine.model_dump(mode="json")
            quoting = routine if redactor.long.redact(names) != names else None
        if quoting is not None:
            what = "parameters quote" if quoting is values else "routine quotes"
            msg = (
                f"this task is refused: its {what} a secret, and would not be kept: write ${{secret:NAME}} in an "
                "argument of the routine instead, and grant the secret to the tool"
            )
            raise ValueError(msg)

    def as_kept(self, task: Task, of: Task | None = None) -> Task:
        """Redact a task's own secrets and the operator's.

        They are redacted in the task, or in `of`, a possible duplicate.
        """
        return _redacted(self._redactor(_secrets_of(task)), of if of is not None else task)

    def _redactor(self, task_secrets: Mapping[str, Secret]) -> Redactor:
        return Redactor({**self._keys, **_marks({**self._operators, **task_secrets})}, SHORTEST_IN_NAME)

    def _of(self, task_id: str) -> dict[str, Secret]:
        task_secrets = self._tasks.get(task_id)  # no lock: `dict.get` is atomic
        return {**self._operators, **task_secrets} if task_secrets else self._operators


def _marks(secrets: Mapping[str, Secret]) -> dict[str, str]:
    """Map each value to its reference; of equal values the first counts."""
    marks: dict[str, str] = {}
    for name, secret in secrets.items():
        marks.setdefault(secret.value.get_secret_value(), f"${{secret:{name}}}")
    return marks


def _names_of(target: Target) -> list[str]:
    return [target.id, target.address, *map(str, target.binds.values())]


def _holder(secrets: Mapping[str, Secret], names: Iterable[str]) -> str | None:
    """Find a secret whose value is contained in a name.

    None if no name contains one.
    """
    for name, secret in secrets.items():
        value = secret.value.get_secret_value()
        if len(value) >= SHORTEST_IN_NAME and any(value in text for text in names):
            return name
    return None


def _secrets_of(task: Task) -> dict[str, Secret]:
    return {name: secret for name, secret in task.secrets.items() if secret is not None}


def _redacted(redactor: Redactor, message: _T) -> _T:
    redacted = redactor.redact(message)
    if isinstance(message, Task) and isinstance(redacted, Task) and message.key != redacted.key:
        return redacted.model_copy(update={"key": _digest(message.key or "", redacted.key or "")})
    return redacted


@functools.lru_cache(maxsize=64)
def _digest(key: str, salt: str) -> str:
    """Hash a key slowly.

    Cached, as the submitter computes it before the root needs it.
    """
    return f"secret:{hashlib.pbkdf2_hmac('sha256', key.encode(), salt.encode(), KEY_ROUNDS).hex()}"


def secrets_named(value: JsonValue) -> set[str]:
    """List the names of secrets that a JSON value refers to."""
    if _BEGINS not in repr(value):
        return set()
    names: set[str] = set()

    def look(text: str) -> str:
        names.update(REFERENCE.findall(text))
        return text

    each_text(value, look)
    return names
