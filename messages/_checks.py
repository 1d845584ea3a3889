"""Checks: readings of the surfaces that a FINISH must hold up to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from callboard.messages._base import STORED, AnySequence, Seconds, Value, as_texts
from callboard.messages._check_schemas import check_schema
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._patterns import check_expression
from callboard.messages._texts import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

PROPOSED = {"proposed": True}
"""The context in which the checks that a model proposes are validated."""
MOST_CHECKS = 100
"""The most checks of a task or of a step of its plan."""
_LONGEST = 200
_FORMS = ("cells", "table", "text", "chart", "control", "page", "command", "tool")
"""The fields that say which reading it is; each reading has one."""
_OTHER_FORMS = ("file", "downloaded", "only", "unchanged", "program")
"""The further forms of checks."""
MATCHERS = (
    "same_as",
    "equals",
    "approx",
    "contains",
    "matches",
    "between",
    "one_of",
    "count",
    "exists",
    "is_empty",
    "schema",
)
"""The fields that say what is expected; each reading's check has at most one."""

_DRIVE = re.compile(r"[A-Za-z]:").match

Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


Show = Literal["name", "found", "all"]
"""The facts about a failed check that the agent is told: its name; also the value that was found; also the one that was
expected, which a model may then write without reading the source."""


class ControlQuery(DocumentedFields, Value):
    """A control, found by its name and kind.

    One that fits must be the only one.

    Example:
        >>> Check(control={"target": "gedit", "name": "Save"}, path="/enabled", equals=False).matcher
        'equals'
    """

    target: Text
    """The id, name or address of the target that shows it; for a page of a browser also a pattern of its address, such
    as `*/thanks`."""
    name: str = ""
    """Its whole name, without regard to spaces at the ends; empty for any."""
    kind: str = ""
    """Its kind, such as `button` or `sheet`; empty for any."""

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if not self.name.strip() and not self.kind.strip():
            msg = "names no control: give its `name`, its `kind`, or both"
            raise ValueError(msg)
        return self


class PageQuery(DocumentedFields, Value):
    """A page of a browser, found by its address and text.

    One that fits must be the only one.
    """

    url: Text
    """Its address, as a pattern: `https://shop.example/thanks*`."""
    contains: str = ""
    """A text on it, without regard to spaces; empty for any."""


class Reading(DocumentedFields, Value):
    """A call that only reads, and a part of its answer.

    It has exactly one of `cells`, `table`, `text`, `chart`, `control`, `page`, `command` and `tool`.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    cells: Text | None = None
    """Cells of a workbook: `report.xlsx!Sales!B8`, or `report.xlsx!B8` if it has one sheet. The value of one cell, or
    a list of rows. A formula counts by its stored result; one without a result can't be read."""
    table: Text | None = None
    """A table of a document: `sales.docx!Revenue by region` by the heading above it or the words of its header, or
    `prices.csv`. Its rows without the header. One that fits must be the only one."""
    text: Text | None = None
    """The text of a document: `letter.docx`, or the text below one heading: `letter.docx!Terms`."""
    chart: Text | None = None
    """The charts of a workbook: `report.xlsx`, `report.xlsx!Sales`, or the one of a title: `report.xlsx!Sales!Revenue`.
    An object with its `kind`, `ranges`, `title` and place; one that fits must be the only one."""
    control: ControlQuery | None = None
    """A control of a target: an object with its `id`, `name`, `kind`, `enabled`, `visible`, `states` and `detail`."""
    page: PageQuery | None = None
    """A page of a browser: an object with its `target`, `url`, `title` and `text`."""
    command: Text | None = None
    """A shell command that only reads: its output, without the line end, or with `read_json: true` in `args` its JSON
    value. `target` names the shell; it may be left out if there is one. A command that fails can't be read."""
    tool: Text | None = None
    """A tool that only reads, of the target that `target` names."""
    target: Text | None = None
    """The id, name or address of the target of `tool` or `command`; for a tool of an MCP server that offers no target,
    none."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments of `tool`, or further ones of `table`, `text` and `command`, such as `decimal: ","` or
    `read_json: true`. A `${secret:NAME}` stands for the secret's value."""
    path: str = ""
    """A JSON pointer into the answer, such as `/rows/0/1`; empty for all of it."""

    @field_validator("path")
    @classmethod
    def _is_pointer(cls, value: str) -> str:
        if value and not value.startswith("/"):
            msg = f"{value!r} is not a JSON pointer: it begins with a slash, such as `/{value.replace('.', '/')}`"
            raise ValueError(msg)
        return value

    @field_validator("cells", "table", "text", "chart", "file", "unchanged", check_fields=False)
    @classmethod
    def _stays_inside(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        for name in (value,) if isinstance(value, str) else value or ():
            path = name.partition("!")[0].replace("\\", "/")
            if path.startswith(("/", "~")) or ".." in path.split("/") or _DRIVE(path):
                msg = f"{path!r} leads out of the workspace: name a document by its path in the workspace"
                raise ValueError(msg)
        return value

    @property
    def form(self) -> str:
        """The field that says which reading it is."""
        return next(name for name in self._forms() if getattr(self, name) is not None)

    @classmethod
    def _forms(cls) -> tuple[str, ...]:
        return _FORMS

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        forms = [name for name in self._forms() if getattr(self, name) is not None]
        if len(forms) != 1:
            listed = ", ".join(f"`{name}`" for name in self._forms())
            msg = f"has {' and '.join(map(repr, forms)) or 'nothing to read'}: give exactly one of {listed}"
            raise ValueError(msg)
        form = forms[0]
        if self.target is not None and form not in {"tool", "command"}:
            msg = f"has a `target` beside `{form}`, which names its own: leave `target` out"
            raise ValueError(msg)
        if self.args and form not in {"tool", "table", "text", "command", "program"}:
            msg = f"has `args` beside `{form}`, which takes none"
            raise ValueError(msg)
        return self

    def __str__(self) -> str:
        """Describe the reading in a few words."""
        form = self.form
        value = getattr(self, form)
        words = [form, _describe_field(value)]
        if self.target is not None:
            words.append(f"of {self.target}")
        if self.args and form == "tool":
            words.append(json.dumps(self.args, ensure_ascii=False, default=str))
        if self.path:
            words.append(self.path)
        return one_line(" ".join(words), _LONGEST)


def _describe_field(value: object) -> str:
    if isinstance(value, ControlQuery):
        return " ".join(filter(None, (repr(value.name) if value.name else "", value.kind, "of", value.target)))
    if isinstance(value, PageQuery):
        return f"{value.url} with {value.contains!r}" if value.contains else value.url
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


Number = int | float
Texts = Annotated[
    tuple[Text, ...], AnySequence, BeforeValidator(as_texts, json_schema_input_type=str | tuple[Text, ...])
]


class Check(Reading):
    """An expectation that is read back before a FINISH counts.

    It is a reading and one matcher, or one of the forms `file`, `downloaded`, `only`, `unchanged` and `program`.

    Example:
        >>> str(Check(cells="report.xlsx!Sales!B8", same_as={"table": "sales.docx", "path": "/3/1"}))
        'cells report.xlsx!Sales!B8'
    """

    name: Annotated[str, StringConstraints(max_length=_LONGEST)] = ""
    """Its name in events, results and notes to agents; by default its reading."""
    file: Text | None = None
    """A file of a workspace, by its name there: it exists and can be opened. See `changed`."""
    changed: bool | None = None
    """For `file`: whether its contents differ from those at the task's submission. A new file has changed."""
    downloaded: Text | None = None
    """A file that became a result of the task, such as a download, by its name or a pattern: it is there, and is not
    empty."""
    only: Texts | None = None
    """The files and targets that the task may have changed, as its effects and the contents of all files show. No other
    file may have changed, unless another task changed it."""
    unchanged: Texts | None = None
    """Files whose contents must be those at the task's submission."""
    program: Text | None = None
    """A function of the host program, by the name under which `Supervisor.start` or the settings have it. It gets
    `args`."""

    same_as: Reading | None = None
    """Another reading, which must give the same. It keeps holding when the data change."""
    equals: JsonValue = None
    """The value. Null is no expectation: see `is_empty`."""
    approx: Number | None = None
    """A number, within `tolerance`."""
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """For `approx`, `equals` and `same_as`: the largest difference of two numbers. By default a billionth of the
    larger one; for `approx` a millionth."""
    contains: JsonValue = None
    """A part of a text; an item, or several, of a list; or some members of an object."""
    matches: Text | None = None
    """A regular expression that is found in the text, in Rust's syntax: no look-around and no back-references."""
    between: Annotated[tuple[Number, ...], AnySequence, Field(min_length=2, max_length=2)] | None = None
    """The least and the largest number."""
    one_of: Annotated[tuple[JsonValue, ...], AnySequence] | None = None
    """The possible values."""
    count: Annotated[int, Field(ge=0)] | None = None
    """The number of items, rows, members or characters."""
    exists: bool | None = None
    """Whether there is a value that is not null."""
    is_empty: bool | None = None
    """Whether there is nothing in it: no text, no item, null."""
    json_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    """A JSON Schema that the value fits. Its references may not leave it."""

    within: Annotated[Seconds, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    """The longest wait for an effect that comes late, in seconds."""
    show: Show = "found"
    """The facts that the agent is told if it does not hold: `name`, `found` or `all`."""
    source: Literal["task", "model"] = "task"
    """`model` for a proposal of the HostAgent, which never counts for `TaskResult.verified`."""

    @classmethod
    def _forms(cls) -> tuple[str, ...]:
        return (*_FORMS, *_OTHER_FORMS)

    @property
    def matcher(self) -> str:
        """The field that says what is expected; empty for none."""
        return next(iter(self._used_matchers()), "")

    def _used_matchers(self) -> Iterable[str]:
        """Yield the names of the matchers that are not None."""
        for name in MATCHERS:
            if getattr(self, "json_schema" if name == "schema" else name) is not None:
                yield name

    @property
    def expected(self) -> JsonValue:
        """The expectation, as an object of the matcher.

        A second reading has its description.
        """
        name = self.matcher
        if not name:
            return self._expected_of_form()
        value: Any = getattr(self, "json_schema" if name == "schema" else name)
        return {name: str(value) if isinstance(value, Reading) else _plain(value)}

    def _expected_of_form(self) -> JsonValue:
        if self.form in {"only", "unchanged"}:
            return {"changed": list(self.only) if self.only is not None else []}
        if self.form == "program":
            return {"returns": True}
        return {"exists": True} if self.changed is None else {"changed": self.changed}

    @property
    def title(self) -> str:
        """Its name; by default its reading."""
        return self.name or str(self)

    @model_validator(mode="before")
    @classmethod
    def _expects_something(cls, data: Any, info: ValidationInfo) -> Any:
        """Refuse fields without a value: the check would hold for anything.

        Stored and dumped checks have all fields.
        """
        if isinstance(data, dict) and info.context is not STORED and not data.keys() >= {*MATCHERS[:-1]}:
            for name in (*MATCHERS, "json_schema", *_OTHER_FORMS, "changed"):
                if name in data and data[name] is None:
                    msg = f"`{name}` has no value: give one, or leave it out"
                    raise ValueError(msg)
        return data

    @field_validator("contains")
    @classmethod
    def _is_no_part_of_anything(cls, value: JsonValue) -> JsonValue:
        if isinstance(value, str | list | dict) and not (value.strip() if isinstance(value, str) else value):
            msg = "is empty, which is a part of everything: name the part, or use `is_empty`"
            raise ValueError(msg)
        return value

    @field_validator("unchanged")
    @classmethod
    def _names_files(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and not value:
            msg = "names no file: name those that must stay the same, or use `only: []` for all of them"
            raise ValueError(msg)
        return value

    @field_validator("matches")
    @classmethod
    def _is_expression(cls, value: str | None) -> str | None:
        if value is not None:
            check_expression(value)
            if "${secret:" in value.replace("\\", ""):
                msg = "names a secret, which `equals`, `contains` and `one_of` alone fill in"
                raise ValueError(msg)
        return value

    @field_validator("source")
    @classmethod
    def _is_the_callers(cls, value: str, info: ValidationInfo) -> str:
        if value == "model" and info.context is not STORED and info.context is not PROPOSED:
            msg = "a check of a task is its own: leave `source` out"
            raise ValueError(msg)
        return value

    @field_validator("json_schema")
    @classmethod
    def _is_schema(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if value is not None:
            check_schema(value)
        return value

    @model_validator(mode="after")
    def _has_one_matcher(self) -> Self:
        form, matchers = self.form, list(self._used_matchers())
        if form in _OTHER_FORMS and matchers:
            msg = f"has {matchers[0]!r} beside `{form}`, which says itself what is expected"
            raise ValueError(msg)
        if len(matchers) > 1:
            msg = f"has {' and '.join(map(repr, matchers))}: give one matcher, and a check for each further one"
            raise ValueError(msg)
        if self.changed is not None and form != "file":
            msg = "has `changed` without `file`"
            raise ValueError(msg)
        if self.tolerance is not None and not {"approx", "equals", "same_as"} & set(matchers):
            msg = "has a `tolerance` without `approx`, `equals` or `same_as`"
            raise ValueError(msg)
        if self.between is not None and self.between[0] > self.between[1]:
            msg = f"`between` is empty: {self.between[0]} is larger than {self.between[1]}"
            raise ValueError(msg)
        return self


def _plain(value: Any) -> JsonValue:
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


class CheckResult(DocumentedFields, Value):
    """The result of one check."""

    name: str
    """The check's name."""
    reading: str
    """The reading, in words."""
    expected: JsonValue = None
    """The expectation: an object of the matcher. A second reading has its value beside it."""
    found: JsonValue = None
    """The value that was read; long ones are cut."""
    held: bool
    """Whether it held."""
    problem: str = ""
    """The reason why it could not be read; it does not hold then."""
    show: Show = "found"
    """The facts that the agent is told if it does not hold."""
    source: Literal["task", "model"] = "task"
    """`model` for a proposal of the HostAgent."""
    seconds: Seconds = Field(default=0.0, ge=0)
    """The time that it took, with waits for late effects."""

    def told(self, show: Show | None = None) -> str:
        """Describe a check that does not hold, with some facts."""
        show = show or self.show
        parts = [self.name]
        if show == "all":
            parts.append(f"expected {_json_text(self.expected)}")
        if show != "name":
            parts.append(self.problem or f"found {_json_text(self.found)}")
        return ": ".join((parts[0], ", ".join(parts[1:]))) if len(parts) > 1 else parts[0]


def _json_text(value: JsonValue) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), _LONGEST)
