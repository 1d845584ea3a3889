"""A host program's requests and their results."""

from __future__ import annotations

import contextlib
import re
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from callboard.messages._base import (
    STORED,
    AnySequence,
    Message,
    Seconds,
    Shown,
    TaskId,
    Value,
    as_texts,
)
from callboard.messages._check_schemas import schema_problem
from callboard.messages._checks import MOST_CHECKS, Check, CheckResult
from callboard.messages._command import PlannedAction
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._outcome import Cause, Outcome, Usage
from callboard.messages._plan_order import has_order, numbers_before
from callboard.messages._remote_work import TaskOrigin
from callboard.messages._routine import ParameterName, Routine
from callboard.messages._subtask_result import SubtaskResult
from callboard.messages._target import LabelText
from callboard.messages._task_judge import Judge, JudgeResult
from callboard.messages._terms import Budget, PolicyRule, TaskLimits
from callboard.messages._texts import pointed_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeVar as _TypeVar

    OutputT = _TypeVar("OutputT", default=JsonValue)
else:  # `typing` has no defaults before Python 3.13; with a bound, pydantic validates a plain `TaskResult` as JSON
    OutputT = TypeVar("OutputT", bound=JsonValue)

_IS_SAFE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?").fullmatch


def new_task_id() -> str:
    """Make a task id that no other supervisor makes."""
    return f"task-{uuid.uuid4().hex[:12]}"


SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
"""The name of a secret: letters, digits and ``_ . -``."""


class Secret(DocumentedFields, Value):
    """A secret, and the calls that a model may insert it into.

    A call must match all of the patterns, which are globs. A program, a script or a function, may insert the secret
    anywhere.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    value: SecretStr
    """The value that tools receive."""
    tools: Annotated[tuple[str, ...], AnySequence] = ()
    """Patterns for names of tools; empty for any."""
    parameters: Annotated[tuple[str, ...], AnySequence] = ()
    """Patterns for names of parameters; empty for only those that a tool declares as `SecretStr`. The declarations of
    third parties' tools count only if their server is trusted."""
    targets: Annotated[tuple[str, ...], AnySequence] = ()
    """Patterns for the id or address of the target; empty for any. Calls of HostAgents, and of tools of third
    parties, have none."""
    origins: Annotated[tuple[str, ...], AnySequence] = ()
    """Patterns for the origins of pages that it may be put into, such as `https://shop.example`; empty for any. With
    some, a model may insert it only by a browser's tools, which check the page right before."""


def _as_secret(value: object) -> object:
    if isinstance(value, bool | int | float):
        msg = "must be text, and is read as another type: put it in quotes"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns it into an error of the field
    text = SecretStr(value) if isinstance(value, str) else value
    return Secret(value=text) if isinstance(text, SecretStr) else value


AnySecret = Annotated[Secret, BeforeValidator(_as_secret, json_schema_input_type=SecretStr | Secret)]
"""A secret; the bare value is accepted too."""


def _of_people(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    if any(check.source != "task" for check in checks):
        msg = "has the source 'model', which is for proposals of a HostAgent: leave `source` out"
        raise ValueError(msg)
    return checks


Checks = Annotated[tuple[Check, ...], AnySequence, Field(max_length=MOST_CHECKS), AfterValidator(_of_people)]
"""Checks, at most 100."""


def _as_steps(value: object) -> object:
    """Accept one step in place of a sequence, and a list."""
    if isinstance(value, int | str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _check_needs(needs: dict[str, str], target: str | None) -> None:
    if needs and target is None:
        msg = "`needs` chooses the machine of a target: name the target, such as 'any:NAME', beside it"
        raise ValueError(msg)


class PlanStep(DocumentedFields, Value):
    """One step of a plan.

    It is a round of its own in follower mode, unless a step names those that it comes after.

    Example:
        >>> plan = ["Read the table", PlanStep(request="Write it", target="report.xlsx")]
        >>> Task(request="Report", plan=plan).plan[1].target
        'report.xlsx'
    """

    request: str
    """The work, in words."""
    target: str | None = None
    """A target's id, name or address; without one the HostAgent's model chooses."""
    name: str = Field(default="", max_length=100)
    """A name for `after` of later steps; unique within the plan."""
    after: Annotated[tuple[int | str, ...] | None, BeforeValidator(_as_steps)] = None
    """The earlier steps that must have finished before it, by their numbers, from 1, or names. If any step of a plan
    has it, also as an empty list, the plan is one round: its steps run side by side where their order allows, each
    needs a target, and no HostAgent's model is asked."""
    needs: dict[LabelText, LabelText] = Field(default_factory=dict)
    """The labels that the machine must have (`fleet.labels` of its settings), if the target is one of any machine of
    the fleet."""
    checks: Checks = ()
    """The expectations that are read back before this step finishes."""

    @field_validator("request")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            msg = "is empty: describe the work"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _names_target(self) -> Self:
        _check_needs(self.needs, self.target)
        return self


FileName = Annotated[str, StringConstraints(min_length=1, max_length=400)]
"""The name of a file, as the surface that offers it names its target: for a document, its path in the workspace."""


def _as_plan_step(value: object) -> object:
    return PlanStep(request=value) if isinstance(value, str) else value


AnyPlanStep = Annotated[PlanStep, BeforeValidator(_as_plan_step, json_schema_input_type=str | PlanStep)]
"""A step of a plan; its request alone is accepted too."""


def _as_moment(value: object) -> object:
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    return value


class Task(DocumentedFields, Message):
    """A request from a host program.

    A HostAgent plans and assigns it. With ``target`` that agent works alone, without a HostAgent. With ``plan``
    the steps are followed one by one (follower mode), each a round.

    Example:
        >>> checks = [{"cells": "sales.xlsx!B9", "exists": True}]
        >>> Task(request="Sum the sales", target="sales.xlsx", checks=checks).target
        'sales.xlsx'
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    kind: Literal["task"] = "task"
    """The tag of the message."""
    id: TaskId = Field(default_factory=new_task_id)
    """Its name in the journal, log and events: letters, digits and ``_ . -``, at most 100. It begins with a letter or
    digit and does not end with a dot, so that it is safe in URLs and as the name of a file. It is never redacted:
    `submit` refuses one that holds a secret of six characters or more."""
    request: str = ""
    """The work, in words. It may be omitted when there is a plan."""
    target: str | None = None
    """The id, name or address of one target whose agent does the task alone."""
    needs: dict[LabelText, LabelText] = Field(default_factory=dict)
    """The labels that the machine must have (`fleet.labels` of its settings), if the target is one of any machine of
    the fleet; steps of a plan have their own."""
    plan: Annotated[tuple[AnyPlanStep, ...], AnySequence] = ()
    """Steps to follow; plain strings are accepted as requests."""
    routine: Routine | Annotated[str, StringConstraints(min_length=1, max_length=400)] | None = None
    """The recorded work to repeat: a `Routine`, or the path of its file, which is read at submission. Its request,
    target and checks are this task's, unless it has a request of its own; its checks add to the task's. While a guard
    does not hold, the models of the agents go on. A follow-up has none."""
    parameters: dict[ParameterName, JsonValue] = Field(default_factory=dict)
    """The values of the routine's parameters, by name."""
    routine_file: str = ""
    """The file that the routine was read from, as an absolute path; submission sets it. A repair of the routine is
    proposed beside it."""
    strict_routine: bool = False
    """Whether the task fails at the first step whose guard does not hold, in place of asking a model or a person."""
    session: TaskId | None = None
    """The first task of the conversation that this one continues: the same HostAgent, its memory, the blackboard."""
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """An idempotency key of the host program's: a second task with the same key is the same task. If it quotes a
    secret, only a digest is stored."""
    secrets: dict[SecretName, AnySecret | None] = Field(default_factory=dict)
    """Values that replace ``${secret:NAME}`` in the arguments of tools: a bare value, or a `Secret` that limits where a
    model may name it. Only tools receive them, and they are never stored: None for one that was lost with its process.
    """
    may_change: Annotated[
        tuple[FileName, ...],
        AnySequence,
        BeforeValidator(as_texts, json_schema_input_type=str | tuple[FileName, ...]),
    ] = ()
    """Files whose contents the task may overwrite without an approval: documents, by their paths in the workspace. Each
    must exist at submission. The version before the task's first change is kept beside the journal, for `callboard
    undo`. Only the task itself names them: no plan, no agent and no follow-up adds one."""
    deadline: Annotated[AwareDatetime, BeforeValidator(_as_moment)] | None = None
    """The moment at which the task ends as `timed_out`, with a time zone; text in the form of ISO 8601 is accepted. It
    is wall time: it passes also while a person is asked, while the task waits or is paused, and between processes. A
    task whose deadline has passed is refused. A follow-up has its own, or none."""
    priority: int = Field(default=0, ge=-100, le=100)
    """The place of the task's work in the queues of its targets: work of a higher priority comes first, then the work
    that has waited longer. It interrupts nothing, and does not order the follow-ups of a conversation. A follow-up has
    its own."""
    budget: Budget | None = None
    """The budget of this task, rounds and subtasks included. Of it and `budget.task` in the settings, the smaller limit
    holds. A follow-up has its own."""
    policy: Annotated[tuple[PolicyRule, ...], AnySequence] = ()
    """Rules for the actions of this task, besides the settings'. Both are asked, and the stricter verdict holds: a rule
    of a task can deny an action or ask for an approval, and can't allow what the settings' rules do not. They may not
    quote a secret. A follow-up has its own."""
    dry_run: bool = False
    """Whether no action is executed, except tools that only read. Agents look, decide and ask the policy; no person is
    asked for an approval. The result lists the actions. A follow-up has its own."""
    limits: TaskLimits | None = None
    """Limits of this task, in place of those in the settings: larger or smaller ones. A follow-up has its own."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=400)] | None = None
    """The model of all agents of this task: a kind of agent, whose model in the settings or of the program it is, or a
    name as in the settings, such as `openai:gpt-5`. A model that can't be built is refused. A follow-up has its own."""
    checks: Checks = ()
    """The expectations that are read back before the task finishes. A FINISH does not hold while one of them does not:
    the agent is told, and goes on, at most `limits.check_retries` times. No model sees or changes them before. They may
    not quote a secret, but refer to it as `${secret:NAME}`. A follow-up has its own."""
    judge: Judge | None = None
    """Questions about the end of the task, for a model that sees the evidence alone: how files differ, and pictures. It
    is asked once all checks hold. Its no refuses a FINISH like a check; its yes never counts for `TaskResult.verified`.
    A follow-up has its own."""
    output_schema: dict[str, JsonValue] | None = None
    """The JSON Schema of the output; `submit(task, output_type=...)` sets it. The last answer of the agent that ends
    the task must fit it, else it is sent back. A `$ref` may refer only to a part of it. A follow-up has its own."""
    origin: TaskOrigin | None = None
    """The subtask of another machine's task that this task does; None for a task of this machine's own. Only what
    serves a fleet sets it."""
    labels: dict[str, str] = Field(default_factory=dict)
    """The host program's own keys; carried into the events and the log. Only `budget.daily` reads them."""

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The checks of the plan's steps in order, then the task's own."""
        return (*(check for step in self.plan for check in step.checks), *self.checks)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that it names for itself."""
        named = (self.model, None if self.judge is None else self.judge.model)
        return tuple(name for name in named if name is not None)

    @field_validator("output_schema")
    @classmethod
    def _is_schema(cls, value: dict[str, JsonValue] | None, info: ValidationInfo) -> dict[str, JsonValue] | None:
        if value is not None and info.context is not STORED:
            import jsonschema

            try:
                jsonschema.Draft202012Validator.check_schema(value)
            except jsonschema.SchemaError as error:
                raise ValueError(schema_problem(error)) from None
            _check_references(value, value)
        return value

    @field_serializer("secrets", when_used="json")
    def _names_alone(self, secrets: dict[str, Secret | None]) -> dict[str, None]:
        return dict.fromkeys(secrets)

    @field_validator("id", mode="before")
    @classmethod
    def _safe(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and info.context is not STORED and not _IS_SAFE(value):
            msg = (
                "an id is 1 to 100 letters (A to Z), digits and _ . -, begins with a letter or digit, and does not end "
                "with a dot: it has to be safe in URLs and file names"
            )
            raise ValueError(msg)
        return value

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show the fields that identify the task, without values of secrets."""
        held = {name: secret.value.get_secret_value() for name, secret in self.secrets.items() if secret is not None}
        for name in ("id", "request", "target", "session", "deadline", "priority"):
            value = getattr(self, name)
            if isinstance(value, str):
                for secret, text in held.items():
                    value = value.replace(text, f"${{secret:{secret}}}") if text else value
            if value or name == "id":
                yield name, Shown(value)
        if self.plan:
            yield "plan", [f"{len(self.plan)} steps"]
        if self.secrets:
            yield "secrets", sorted(self.secrets)

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if self.plan and self.target is not None:
            msg = "a task has a plan or a target, not both: give each step of the plan its target"
            raise ValueError(msg)
        _check_needs(self.needs, self.target)
        if self.session is not None and self.target is not None:
            msg = "a follow-up continues with a HostAgent, so it can't have a target"
            raise ValueError(msg)
        if self.routine is None and (self.parameters or self.strict_routine or self.routine_file):
            msg = "`parameters`, `strict_routine` and `routine_file` belong to a routine: name one in `routine`"
            raise ValueError(msg)
        if self.routine is not None and (self.plan or self.session is not None):
            msg = "a routine has its own subtasks: leave out `plan` and `session`"
            raise ValueError(msg)
        if not (self.plan or self.routine is not None or self.request.strip()):
            msg = "request is empty: describe the work"
            raise ValueError(msg)
        if has_order(self.plan):
            numbers_before(self.plan)
        return self


def _check_references(part: JsonValue, schema: dict[str, JsonValue]) -> None:
    """Refuse a reference that leads nowhere, or out of a schema.

    Raises:
        ValueError: If there is one.
    """
    for child in part if isinstance(part, list) else part.values() if isinstance(part, dict) else ():
        _check_references(child, schema)
    reference = part.get("$ref") if isinstance(part, dict) else None
    if isinstance(reference, str) and pointed_at(reference, schema) is None:
        msg = f"has a $ref {reference!r}, which is no part of it: put what it refers to into its $defs"
        raise ValueError(msg)


class TaskResult(DocumentedFields, Message, Generic[OutputT]):
    """The outcome and the results of a task."""

    kind: Literal["task_result"] = "task_result"
    """The tag of the message."""
    task_id: TaskId
    """The task's id."""
    outcome: Outcome
    """The way in which the task ended."""
    causes: tuple[Cause, ...] = ()
    """The chain of causes, the nearest first; empty when the task finished."""
    output: OutputT = cast("OutputT", None)
    """The output of the last round: JSON, or an instance of the handle's `output_type`. With an `output_type` or an
    `output_schema`, it is None unless the task finished."""
    comment: str = ""
    """The last comment of the last round's model."""
    artifacts: tuple[str, ...] = ()
    """Files that were made or changed, as absolute paths, in order."""
    made: tuple[str, ...] = ()
    """Those of `artifacts` that did not exist before the task, as the tools that wrote them recorded."""
    changed: tuple[str, ...] = ()
    """Files, as absolute paths, and targets, by their id, that actions changed or may have changed; a HostAgent's tool
    without a target by its name. They come from the tools' results, not from a model's report. Opening an application
    changes nothing. Empty if nothing was changed."""
    actions: int = Field(default=0, ge=0)
    """The number of actions that changed something, or may have; `usage.commands` counts all tool calls."""
    failed_actions: int = Field(default=0, ge=0)
    """The number of actions that failed, were denied, or are in doubt, those of interrupted steps included; 0 in
    journals of versions that did not count them."""
    dry_run: bool = False
    """Whether the task was a dry run, so that nothing was changed."""
    would_do: tuple[PlannedAction, ...] = ()
    """The actions that a dry run did not execute: those of subtasks in order, then the HostAgent's own."""
    verified: bool | None = None
    """True if the task has checks, and finished with every one of them held; False if it has checks, and did not. None
    without checks, and for a dry run."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks as they were read last: those of the plan's steps in order, then the task's. A check
    that was never reached has none."""
    judged: tuple[JudgeResult, ...] = ()
    """The judge's answers, as they were given last. None of them counts for `verified`."""
    subtasks: tuple[SubtaskResult, ...] = ()
    """All that ended, including completed work of a cancelled task."""
    rounds: int = Field(default=1, ge=0)
    """The number of rounds in which an agent took a step."""
    usage: Usage = Field(default_factory=Usage)
    """The steps, calls, tokens and costs, of all agents together."""
    seconds: Seconds = Field(default=0.0, ge=0)
    """The time from submission to end. If the task was resumed, the time between the processes is left out, and so are
    waits for people and targets in earlier ones."""

    @property
    def ok(self) -> bool:
        """True if the task finished."""
        return self.outcome is Outcome.FINISHED
