"""The documents: generated parts are those of the code, links lead somewhere, and every example runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from callboard import Settings
from callboard.actors.processing import MACHINES
from callboard.messages import AgentKind
from callboard.messages.events import EVENT_CLASSES, Event, EventName
from callboard.terminal import EvalSet
from generator import GENERATE

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
MOST_PICTURE_BYTES = 150_000
every_document = pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def emitted():
    """The keys of each event's data, as the source emits them."""
    return GENERATE.emitted()


@every_document
def test_generated_parts_are_those_of_the_code(document):
    text = document.read_text(encoding="utf-8")
    assert GENERATE.regenerated(text) == text, "run: python docs/generate.py"


def test_everything_that_can_be_generated_stands_in_one_document():
    markers = [name for path in DOCS for name in re.findall(r"<!-- generated: ([\w.]+) -->", path.read_text("utf-8"))]
    assert sorted(markers) == sorted(GENERATE.PARTS)


def test_a_document_that_fell_behind_is_noticed():
    machines = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    behind = machines.replace("CONTINUE --> ASSIGN: model", "CONTINUE --> ASSIGN: user")
    assert behind != machines
    assert GENERATE.regenerated(behind) == machines


@pytest.mark.parametrize("kind", AgentKind)
def test_every_move_of_a_machine_is_drawn_and_listed(kind):
    drawn = GENERATE.machine(kind)
    for source, row in MACHINES[kind].transitions.items():
        for target, by in row.items():
            assert f"    {source} --> {target}: {by}\n" in drawn
            assert f"| `{source}` | `{target}` |" in drawn


@pytest.mark.parametrize("name", EventName)
def test_every_event_of_the_catalogue_is_emitted_somewhere(name, emitted):
    assert name in emitted


@pytest.mark.parametrize("name", EventName)
def test_every_event_is_in_the_catalogue_with_its_level_and_class(name):
    words = "".join(word.capitalize() for word in name.name.split("_"))
    row = f"| `{name.value}` | {GENERATE.LEVELS.get(name, 'info')} | `{words}` | "
    assert row in (ROOT / "docs" / "events.md").read_text("utf-8")


@pytest.mark.parametrize("name", EventName)
def test_an_events_class_has_the_data_that_the_source_emits(name, emitted):
    fields = set(EVENT_CLASSES[name].model_fields) - set(Event.model_fields)
    assert fields == emitted[name]


@pytest.mark.parametrize("event", EVENT_CLASSES.values(), ids=EVENT_CLASSES)
def test_every_field_of_an_event_is_described(event):
    assert set(GENERATE.field_docstrings(event)) >= set(event.model_fields) - set(Event.model_fields)


def test_the_keys_of_an_events_data_are_read_from_the_source(emitted):
    assert emitted[EventName.STATE_CHANGED] == {"source", "target", "by"}
    assert emitted[EventName.EVENTS_MISSED] == {"count"}
    assert emitted[EventName.PHASE_ENDED] == {"error"}


def test_every_setting_is_listed():
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    missing = [
        f"{key}.{name}"
        for key, model in GENERATE.setting_sections()
        for name in model.model_fields
        if f"| `{key}.{name}` |" not in text
    ]
    assert missing == []


def test_sections_within_sections_are_listed_too():
    keys = [key for key, _ in GENERATE.setting_sections()]
    assert {"policy", "policy.rules[]", "budget", "budget.task", "budget.subtask", "budget.step"} <= set(keys)


def test_pictures_are_small_and_shown():
    text = "".join(path.read_text("utf-8") for path in (*DOCS, ROOT / "README.md"))
    for picture in (ROOT / "docs").glob("*.png"):
        assert f"{picture.name})" in text
        assert picture.stat().st_size <= MOST_PICTURE_BYTES


@pytest.fixture(scope="module")
def tests_by_name():
    """The names of all tests and of their modules."""
    paths = list((ROOT / "tests").rglob("test_*.py"))
    sources = (path.read_text(encoding="utf-8") for path in paths)
    tests = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    return tests | {path.stem for path in paths}


@every_document
def test_files_and_tests_that_are_named_exist(document, tests_by_name):
    text = document.read_text(encoding="utf-8")
    files = re.findall(r"`((?:actors|benchmarks|config|docs|examples|messages|terminal|testing|tests)/[\w./-]+)`", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert set(re.findall(r"`(test_\w+)`", text)) <= tests_by_name


def examples(language):
    return [
        pytest.param(block, id=f"{path.name}-{number}")
        for path in DOCS
        if path.name not in {"recipes.md", "tutorial.md"}  # test_recipes.py and test_tutorial.py run these
        if (path.name, language) != ("checks.md", "yaml")  # test_checks_page.py reads these
        if (path.name, language) != ("eval.md", "yaml")  # the next test reads this one
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", path.read_text("utf-8"), re.DOTALL), 1)
    ]


def test_the_example_of_an_eval_set_is_read():
    (source,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/eval.md").read_text("utf-8"), re.DOTALL)
    assert len(EvalSet.model_validate(yaml.safe_load(source)).tasks) == 3


@pytest.mark.parametrize("source", examples("python"))
def test_every_python_example_runs(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "example", "exec", dont_inherit=True), {"__name__": "example"})  # noqa: S102 - our own text


@pytest.mark.parametrize("source", examples("yaml"))
def test_every_settings_example_is_read(source, tmp_path, load_settings):
    (tmp_path / "callboard.yaml").write_text(source, encoding="utf-8")
    assert load_settings(tmp_path / "callboard.yaml").base == tmp_path


@pytest.fixture
def load_settings(monkeypatch):
    """Load settings as `Supervisor.start` does, without the variables of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith("CALLBOARD_"):
            monkeypatch.delenv(name)
    return Settings.load
