"""A model that is a function, and the models that settings name."""

from __future__ import annotations

import pytest

from callboard.config import Models, Settings
from callboard.messages import AgentKind, SettingsError
from callboard.models import FunctionModel, ModelAnswer, NamedModels, ScriptedModel, TaskModels, named_models
from support import FINISH


async def test_a_plain_function_answers(asks):
    answer = await FunctionModel(lambda request: {"Result": request.request}).answer(asks())
    assert answer.content == {"Result": "make a chart"}


async def test_a_coroutine_function_answers(asks):
    async def decide(request):
        return {"Result": request.address}

    assert (await FunctionModel(decide).answer(asks())).content == {"Result": "app/excel/book.xlsx"}


async def test_a_text_is_an_answer(asks):
    assert (await FunctionModel(lambda _: '{"Status": "FINISH"}').answer(asks())).content == '{"Status": "FINISH"}'


async def test_a_model_answer_comes_through_as_it_is(asks):
    said = ModelAnswer(content=FINISH, input_tokens=700, output_tokens=30)
    assert await FunctionModel(lambda _: said).answer(asks()) == said.model_copy(update={"program": True})
    models = said.model_copy(update={"program": False})
    assert await FunctionModel(lambda _: models).answer(asks()) is models


@pytest.mark.parametrize("said", [None, 7, ["FINISH"]], ids=repr)
async def test_function_model_leaves_invalid_answers_to_the_answer_check(asks, said):
    answer = await FunctionModel(lambda _: said).answer(asks())
    assert (answer.content, answer.input_tokens, answer.output_tokens) == (said, 0, 0)


async def test_function_model_passes_on_exceptions(asks):
    def decide(_):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await FunctionModel(decide).answer(asks())


async def test_calls_are_counted(asks):
    model = FunctionModel(lambda _: FINISH)
    for _ in range(3):
        await model.answer(asks())
    assert model.calls == 3


@pytest.fixture
def script(tmp_path):
    """A script beside the settings file."""
    (tmp_path / "night.yaml").write_text("host: [{Status: FINISH}]")
    return tmp_path / "night.yaml"


def test_settings_that_name_no_model_make_none():
    assert named_models(Settings()) == {}


def test_a_script_is_named_from_the_folder_of_the_settings(script):
    models = named_models(Settings.load(base=script.parent, models=Models(host="scripted:night.yaml")))
    assert [(kind, type(model)) for kind, model in models.items()] == [(AgentKind.HOST, ScriptedModel)]


def test_a_name_that_is_given_twice_is_one_model(script):
    names = dict.fromkeys(map(str, AgentKind), f"scripted:{script}")
    models = named_models(Settings(models=Models(**names)))
    assert models.keys() == set(AgentKind)
    assert len({id(model) for model in models.values()}) == 1


@pytest.mark.parametrize("name", ["", "gpt", "scripted", "scripted:", "openai:", ":night.yaml"])
def test_a_name_of_no_known_form_is_a_matter_of_the_settings(name):
    with pytest.raises(SettingsError, match=r"models\.app: .* is not a known model; known forms are: scripted:FILE, "):
        named_models(Settings(models=Models(app=name)))


def test_a_script_that_is_missing_is_a_matter_of_the_settings(tmp_path):
    with pytest.raises(SettingsError, match=r"models\.linux: the script .*nowhere\.yaml: can't be read"):
        named_models(Settings.load(base=tmp_path, models=Models(linux="scripted:nowhere.yaml")))


def test_a_script_that_is_malformed_is_a_matter_of_the_settings(script):
    script.write_text("host: FINISH")
    with pytest.raises(SettingsError, match=r"models\.host: .*night\.yaml: host: expected a list of answers"):
        named_models(Settings(models=Models(host=f"scripted:{script}")))


def test_errors_are_kept_only_for_recovered_tasks(script):
    models = TaskModels({}, NamedModels(Settings.load(base=script.parent)))
    assert isinstance(models.build("scripted:nowhere.yaml"), SettingsError)
    assert models.lacking("scripted:nowhere.yaml") == "the model 'scripted:nowhere.yaml' was not built"
    models.build("scripted:nowhere.yaml", recovered=True)
    assert "nowhere.yaml: can't be read" in models.lacking("scripted:nowhere.yaml")
