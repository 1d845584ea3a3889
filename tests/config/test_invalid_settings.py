"""Errors of settings: the source of each wrong value, and no words of a library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from callboard.config import Settings
from callboard.config._invalid_settings import one_spelling
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRONG: list[Any] = [5, True, "x", ["x"], {"x": "y"}, -1, None, [[1]], {"x": {"x": 5}}, {1: {}}, {"x": [1]}]
FOREIGN = re.compile(
    r"Input should|Field required|instance of|Value error|pydantic|constrained-|function-|tuple\[|literal\["
    r"|\b(?:str|int|dict|tuple|NoneType)\b|\b[A-Z][a-z]+[A-Z]"
)
"""The words of the library, and the names of classes."""


def models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in models_in(part)]


def paths(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """List the places of settings, also those in sections by name."""
    for name, field in model.model_fields.items():
        yield (*before, name)
        for section in models_in(field.annotation) if len(before) < 3 else ():
            yield from paths(section, (*before, name))
            yield from paths(section, (*before, name, "one"))


def error_of(file: Path | None = None, **changes: Any) -> str:
    try:
        Settings.load(file, **changes)
    except SettingsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("section", Settings.model_fields)
def test_no_error_has_words_of_a_library(section):
    lines = set()
    for path in paths(Settings):
        if path[0] != section:
            continue
        for wrong in WRONG:
            content = wrong
            for key in reversed(path):
                content = {key: content}
            lines.update(error_of(**content).splitlines())
    assert [line for line in lines if FOREIGN.search(line)] == []
    assert any(line.startswith(f"settings: {section.replace('mcp_servers', 'mcpServers')}") for line in lines)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("LIMITS__STEPS", "many", "the environment: {0}: limits.steps: must be a whole number"),
        ("LIMITS", '{"steps": "x"}', "the environment: {0}: limits.steps: must be a whole number"),
        ("LIMITS__STEP", "3", "the environment: {0}: limits.step: unknown key; did you mean 'steps'?"),
        ("MODELS__HOTS", "a:b", "the environment: {0}: models.hots: unknown key; did you mean 'host'?"),
        ("PROVIDERS__MY_BOX__SEED", "x", "the environment: {0}: providers.my-box.seed: must be a whole number"),
        ("PROVIDERS__MY_BOX__INPUT_PRICE", "3", "{file}, with {0}: providers.my-box: needs both prices or neither"),
    ],
)
def test_wrong_variable_is_blamed_and_not_the_file(tmp_path, monkeypatch, name, value, line):
    file = tmp_path / "settings.yaml"
    file.write_text("limits: {steps: 7}\nproviders: {my-box: {url: 'http://127.0.0.1:1/v1'}}\n", encoding="utf-8")
    monkeypatch.setenv(f"CALLBOARD_{name}", value)
    assert error_of(file) == line.format(f"CALLBOARD_{name}", file=file)


def test_wrong_file_is_blamed_beside_a_right_variable(tmp_path, monkeypatch):
    file = tmp_path / "settings.yaml"
    file.write_text("limits: {repairs: x}\n", encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "7")
    assert error_of(file) == f"{file}: limits.repairs: must be a whole number"


def test_wrong_argument_is_not_blamed_on_a_variable(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "7")
    assert error_of(limits={"steps": "x"}) == "settings: limits.steps: must be a whole number"


def test_variable_of_a_provider_reaches_a_name_with_hyphens(tmp_path, monkeypatch):
    file = tmp_path / "settings.yaml"
    file.write_text("providers: {openai-chat: {seed: 1, headers: {A: b}}}\n", encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_PROVIDERS__OPENAI_CHAT__URL", "http://127.0.0.1:1/v1")
    settings = Settings.load(file)
    (provider,) = settings.providers.values()
    assert (provider.url, provider.seed, list(provider.headers)) == ("http://127.0.0.1:1/v1", 1, ["A"])
    for model in ("openai-chat:gpt-5", "openai_chat:gpt-5"):
        assert settings.provider_of(model) == "openai-chat"
    assert settings.provider_of("other:x") == "other"


def test_variable_of_a_section_keeps_the_rules_and_servers_of_the_file(tmp_path, monkeypatch):
    file = tmp_path / "settings.yaml"
    file.write_text("policy: [{tool: pay, verdict: deny}]\nmcpServers: {a: {command: ls}}\n", encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_POLICY__EXPLAIN", "true")
    monkeypatch.setenv("CALLBOARD_MCP_SERVERS__B__COMMAND", "ls")
    settings = Settings.load(file)
    assert ([rule.tool for rule in settings.policy.rules], settings.policy.explain) == (["pay"], True)
    assert sorted(settings.mcp_servers) == ["a", "b"]


@pytest.mark.parametrize("section", ["models: gpt-5", "limits: 5", "mcpServers: [a]", "policy: deny"])
def test_section_that_is_no_mapping_is_refused_beside_other_sources(tmp_path, monkeypatch, section):
    file = tmp_path / "settings.yaml"
    file.write_text(section, encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "7")
    name = section.partition(":")[0]
    assert error_of(file, models={}) == f"{file}: {name}: must be a mapping of keys to values"


def test_file_with_two_spellings_of_a_provider_is_refused(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("providers: {my_box: {seed: 1}, my-box: {seed: 2}}\n", encoding="utf-8")
    assert error_of(file) == f"{file}: providers.my_box and providers.my-box are one provider: merge them"


def test_later_spelling_takes_precedence():
    merged = one_spelling({"a-b": {"seed": 1, "retries": 2}, "A_b": {"seed": 3}})
    assert merged == {"a-b": {"seed": 3, "retries": 2}}
