"""Models of plug-ins, named in the settings as those of any provider are."""

from __future__ import annotations

import pytest

from callboard import Settings, Supervisor
from callboard.messages import SettingsError
from callboard.models import named_models
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone

HOUSE = f"""
from callboard import FunctionModel, Model, ModelAnswer
from callboard.messages import ModelError

class House(Model):
    def __init__(self, model: str, floor: int = 1):
        self.model, self.floor, self.closed = model, floor, False

    async def answer(self, request):
        if self.model == "silent":
            raise ModelError("nobody is home")
        return ModelAnswer(content={FINISH!r})

    async def close(self):
        self.closed = True

def plain():
    return FunctionModel(lambda request: {FINISH!r})

def wrong():
    return plain
"""
ENTRIES = {"house": "acme_house:House", "plain": "acme_house:plain", "wrong": "acme_house:wrong"}


@pytest.fixture(autouse=True)
def _house(install):
    install("acme", "models", ENTRIES, acme_house=HOUSE)


def settings(app="house:large", **providers):
    return Settings.load(models={"app": app}, providers=providers or {"house": {"plugin": "house"}})


def refused(app="house:large", **providers):
    with pytest.raises(SettingsError) as info:
        named_models(settings(app, **providers))
    return str(info.value)


def test_a_plugin_gets_the_model_s_name_and_its_options():
    model = named_models(settings(house={"plugin": "acme:house", "options": {"floor": "3"}}))["app"]
    assert (model.name, model.model, model.floor) == ("house:large", "large", 3)


def test_a_plugin_that_takes_no_model_is_not_given_one():
    assert named_models(settings("home:any", home={"plugin": "plain"}))["app"].name == "home:any"


def test_an_agent_decides_by_a_plugins_model_which_is_closed_at_the_end():
    with Supervisor.start(settings(), servers=[MemoryServer(MemoryServer.window())]) as supervisor:
        (model,) = supervisor._assembly.named_models.made
        assert supervisor.submit(lone()).result(PATIENCE).ok
        assert not model.closed
    assert model.closed


def test_a_plugin_has_fallbacks_which_may_be_plugins_too():
    providers = {"house": {"plugin": "house", "fallbacks": ["home:any"]}, "home": {"plugin": "plain"}}
    with Supervisor.start(
        settings("house:silent", **providers), servers=[MemoryServer(MemoryServer.window())]
    ) as supervisor:
        assert supervisor.submit(lone()).result(PATIENCE).ok


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ({"plugin": "hose"}, "models.app: providers.house: there is no model plug-in 'hose'"),
        (
            {"plugin": "house", "options": {"flor": 1}},
            "models.app: providers.house.options.flor: unknown option; did you",
        ),
        ({"plugin": "house", "options": {"model": "x"}}, "models.app: providers.house.options.model: is the end of"),
        (
            {"plugin": "wrong"},
            "models.app: providers.house: the plug-in 'wrong' of acme 1.2 (acme_house:wrong) gave a f",
        ),
        (
            {"plugin": "house", "url": "http://x", "retries": 1},
            "settings: providers.house: a plug-in takes no retries, url",
        ),
        ({"kind": "openai", "options": {"floor": 1}}, "settings: providers.house: `options` needs a `plugin`"),
    ],
)
def test_wrong_plugin_gives_a_clear_error(provider, told):
    assert refused(house=provider).startswith(told)
