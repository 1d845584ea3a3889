"""The option `--check`: YAML in braces, or a short form."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.config import YamlError, parse_yaml
from callboard.history import cut
from callboard.messages import MATCHERS, MOST_CHECKS, Check, did_you_mean
from callboard.terminal._commands import fail
from callboard.terminal._problems import problem_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.messages import Task

_SHORT = ("cells", "table", "text", "chart", "command", "file", "changed", "downloaded", "only", "unchanged", "program")
"""The readings that have a short form; `changed: FILE` stands for `{file: FILE, changed: true}`."""
_IN_BRACES = {
    "control": "{control: {target: TARGET, name: NAME}}",
    "page": "{page: {url: ADDRESS, contains: TEXT}}",
    "tool": "{tool: NAME, target: TARGET, path: /rows/0, equals: VALUE}",
}
_LISTS = {"only", "unchanged"}
_WITH_VALUE = {"cells", "table", "text", "chart", "command"}
_FORM = re.compile(r"\s*(\w+)\s*:(?:\s+(.*))?", re.DOTALL)
_READING = re.compile(rf"({'|'.join((*sorted(_WITH_VALUE), 'control', 'page', 'tool'))}):\s+(\S.*)", re.DOTALL)
"""A second reading in place of a value."""
_WITHOUT_VALUE = {"exists", "is_empty"}
_OPERATOR = re.compile(
    r"\s(?:(=)|({}))\s+(?=\S)|\s({})\s*$".format(
        "|".join(name for name in MATCHERS if name not in _WITHOUT_VALUE), "|".join(sorted(_WITHOUT_VALUE))
    )
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""A number of JSON. YAML would also take `1:30` for one, and `yes` for true."""
_EXAMPLE = "such as 'cells: report.xlsx!Sales!B8 = 412.5' or '{file: report.xlsx, changed: true}'"
_BRACES = "such as '{command: \"grep -c = notes.txt\", equals: 3}'"
_SHOWN = 300
"""The most characters of a value in a line."""


def checks_of(options: Sequence[str]) -> tuple[Check, ...]:
    """Parse `--check` options: YAML in braces, or the short form.

    The short form is `READING: PLACE`, then `= VALUE`, or a matcher's name and its value.
    """
    return tuple(_check(option) for option in options)


def with_checks(task: Task, checks: Sequence[Check]) -> Task:
    """Add checks to a task."""
    if len(task.checks) + len(checks) > MOST_CHECKS:
        fail(f"--check: {len(task.checks) + len(checks)} checks are too many: a task has at most {MOST_CHECKS}")
    return task.model_copy(update={"checks": (*task.checks, *checks)}) if checks else task


def _check(option: str) -> Check:
    where = f"--check {cut(option.strip(), _SHOWN)!r}"
    if not option.strip():
        fail(f"--check is empty: give a reading and what is expected, {_EXAMPLE}")
    content = _in_braces(option, where) if option.lstrip().startswith("{") else _short(option, where)
    try:
        return Check.model_validate(content)
    except ValidationError as error:
        return fail(problem_lines(where, error, Check))


def _in_braces(option: str, where: str) -> dict[str, Any]:
    try:
        content = parse_yaml(option)
    except YamlError as error:
        fail(f"{where}: {error}")
    if not isinstance(content, dict):
        fail(f"{where}: is no mapping: write keys and values in braces, {_EXAMPLE}")
    return content


def _short(option: str, where: str) -> dict[str, Any]:
    match = _FORM.fullmatch(option.rstrip())
    form = "" if match is None else match[1]
    if form in _IN_BRACES:
        fail(f"{where}: `{form}` has no short form: write it in braces, such as '{_IN_BRACES[form]}'")
    if match is None or form not in _SHORT:
        hint = did_you_mean(form.lower(), _SHORT, f"there are: {', '.join(_SHORT)}") if form else ""
        what = f"there is no reading {form!r}{hint}" if form else "it begins with no reading and a colon"
        fail(f"{where}: {what}; write a check {_EXAMPLE}")
    subject = (match[2] or "").strip()
    if not subject:
        fail(f"{where}: `{form}` names nothing: write it after the colon, {_EXAMPLE}")
    if form in _LISTS:
        return {form: [name.strip() for name in subject.split(",") if name.strip()]}
    return _reading(form, subject, where)


def _reading(form: str, subject: str, where: str) -> dict[str, Any]:
    operators = list(_OPERATOR.finditer(f" {subject}"))
    if len(operators) > 1:
        listed = " and ".join(operator_match[0].strip() for operator_match in operators)
        fail(f"{where}: has {listed}, so it can be read in two ways: write it in braces, {_BRACES}")
    if operators and form not in _WITH_VALUE:
        word = operators[0][0].strip()
        fail(f"{where}: `{form}` says itself what is expected: leave {word!r} out, or write a name with it in braces")
    if not operators:
        return {"file": subject, "changed": True} if form == "changed" else {form: subject}
    operator = operators[0]
    read, text = f" {subject}"[: operator.start()].strip(), f" {subject}"[operator.end() :].strip()
    if not read:
        fail(f"{where}: `{form}` names nothing before {operator[0].strip()!r}")
    if operator[3]:
        return {form: read, operator[3]: True}
    matcher = operator[2] or "equals"
    second = _READING.fullmatch(text)
    if matcher == "same_as" or (second is not None and matcher == "equals"):
        if second is None:
            fail(f"{where}: `same_as` needs a second reading, such as same_as table: sales.docx!Revenue")
        return {form: read, "same_as": {second[1]: second[2]}}
    return {form: read, matcher: text if matcher == "matches" else _value(text, where)}


def _value(text: str, where: str) -> Any:
    """Parse a value of the short form.

    It is a number, `true`, `false`, or YAML in quotes, brackets or braces; all else is a text.
    """
    if text[0] in "[{\"'":
        try:
            return parse_yaml(text)
        except YamlError as error:
            fail(f"{where}: the value {error}")
    if text in {"true", "false"}:
        return text == "true"
    return json.loads(text) if _NUMBER.fullmatch(text) else text
