"""The JSON Schemas of the files that people write, for editors; and the descriptions that they show."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from callboard import Settings
from callboard.messages import Cause, PlanStep, Secret, SubtaskResult, Task, TaskResult, Usage, field_descriptions
from generator import GENERATE
from support import command_line

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "config" / "schemas"
NAMES = ("callboard", "eval", "routine", "task", "script")
FILES = sorted(ROOT.glob("examples/*/*.yaml"))
every_file = pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def checker(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))


def with_unknown_keys(content: Any) -> Iterator[Any]:
    """Give copies of a value, each with an unknown key in one of its objects."""
    if isinstance(content, dict):
        yield {**content, "unknown_key_": 1}
        for key, part in content.items():
            yield from ({**content, key: other} for other in with_unknown_keys(part))
    elif isinstance(content, list):
        for place, part in enumerate(content):
            yield from ([*content[:place], other, *content[place + 1 :]] for other in with_unknown_keys(part))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_that_of_the_code(name):
    text = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    assert GENERATE.schema_of_file(f"{name}.yaml") == text, "run: python docs/generate.py"


def test_schema_folder_holds_only_the_listed_schemas():
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name}.json" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_of_draft_7_that_needs_no_network(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    text = json.dumps(schema)
    assert "prefixItems" not in text
    assert all(reference.startswith("#/") for reference in re.findall(r'"\$ref": "([^"]*)"', text))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_prints_a_schema(name):
    assert command_line("schema", f"{name}.yaml").stdout == (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")


@every_file
def test_every_example_names_a_schema_that_accepts_it(file):
    text = file.read_text(encoding="utf-8")
    found = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert found is not None
    name = file.stem.rpartition(".")[2]
    assert (file.parent / found[1]).resolve() == SCHEMAS / f"{name}.json"
    checker(name).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "file", [path for path in FILES if path.stem == "callboard"], ids=lambda path: path.parent.name
)
def test_unknown_keys_of_settings_are_refused_as_the_code_refuses_them(file, clean_environment):
    validator, refused = checker("callboard"), 0
    for content in with_unknown_keys(yaml.safe_load(file.read_text(encoding="utf-8"))):
        by_schema = not validator.is_valid(content)
        assert by_schema == refuses(content), content
        refused += by_schema
    assert refused >= 3


@pytest.fixture
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("CALLBOARD_"):
            monkeypatch.delenv(name)


def refuses(content: Any) -> bool:
    try:
        Settings.model_validate(copy.deepcopy(content))
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    "text",
    [
        "request: x",
        "plan: [one, {request: two, target: b.xlsx}]",
        "{request: x, may_change: a.xlsx}",
        "{request: x, may_change: [a.xlsx], priority: -3, budget: {steps: 3}, labels: {a: b}}",
        "{request: x, policy: [{verdict: deny, tool: 'delete_*', resource: 'file:a', hazards: [deletes]}]}",
        "{request: x, secrets: {a: b, c: {value: d, tools: [type_text]}}, deadline: '2026-12-24T18:00:00+01:00'}",
        "{kind: task, schema_version: 1, id: a, request: x, target: null}",
    ],
)
def test_a_task_that_the_code_accepts_is_accepted(text):
    Task.model_validate(yaml.safe_load(text))
    checker("task").validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "target: a",
        "{request: x, reqest: y}",
        "{request: x, priority: 101}",
        "{request: x, budget: {step: 1}}",
        "{request: x, plan: [{reques: y}]}",
        "{request: x, policy: [{verdict: maybe}]}",
        "{request: x, secrets: {a: {value: b, tool: c}}}",
    ],
)
def test_a_task_that_the_code_refuses_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        Task.model_validate(yaml.safe_load(text))
    assert not checker("task").is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "limits:",
        "{models: {host: a:b, my_kind: c:d}, providers: {a: {api_key: k}}}",
        "{policy: [{verdict: deny}]}",
        "{policy: {rules: [{verdict: deny}], defaults: false}}",
        "{mcpServers: {a: {command: b, args: [c], surface: both}}}",
        "{secrets: {a: b, c: {value: d}}, android: {devices: all}}",
        "{shells: {a: {cwd: b, ssh: me@host}}, log: {stream: json, max_bytes: null}}",
    ],
)
def test_settings_that_the_code_accepts_are_accepted(text, clean_environment):
    assert not refuses(yaml.safe_load(text))
    checker("callboard").validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text", ["{limit: {}}", "{limits: {step: 1}}", "{limits: {steps: 0}}", "{shells: {a: {cwd: b, nope: 1}}}"]
)
def test_settings_that_the_code_refuses_are_refused(text, clean_environment):
    assert refuses(yaml.safe_load(text))
    assert not checker("callboard").is_valid(yaml.safe_load(text))


# Descriptions


def models() -> Iterator[type[BaseModel]]:
    yield from (Task, TaskResult, SubtaskResult, PlanStep, Secret, Cause, Usage, Settings)
    yield from (model for _, model in GENERATE.setting_sections())


@pytest.mark.parametrize("model", dict.fromkeys(models()), ids=lambda model: model.__name__)
def test_every_field_has_a_description(model):
    assert model.model_fields.keys() - {"kind"} <= field_descriptions(model).keys()
