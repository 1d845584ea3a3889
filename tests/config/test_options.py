"""Options of plug-ins: validated by the signature of the callable that takes them, and hidden where they are secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from callboard.config import Settings, keys_of
from callboard.config._plugin_options import fitting_options
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from nowhere import Unknown

NESTED = {"host": "here", "login": {"password": "xyzzy-4711"}, "tokens": ["plugh-4711"], "port": 4711}


def lamps(
    room: str, *, dimmed: bool = False, level: int = 3, schema: Path = Path("s.json"), key: SecretStr | None = None
):
    return room, dimmed, level, schema, key


def refused(factory, **options):
    with pytest.raises(SettingsError) as info:
        fitting_options(factory, options, "surfaces.lamps", Settings.load().path)
    return str(info.value).splitlines()


def test_options_are_validated_by_the_types_of_the_parameters():
    settings = Settings.load(base=Path("/srv"))
    given = {"room": "hall", "dimmed": "yes", "level": "7", "schema": "lamps.json", "key": "xyzzy"}
    fitting = fitting_options(lamps, given, "surfaces.lamps", settings.path)
    assert lamps(**fitting) == ("hall", True, 7, Path("/srv/lamps.json"), SecretStr("xyzzy"))


def test_error_names_every_wrong_option_and_the_nearest_name():
    assert refused(lamps, levle=3, dimmed="perhaps") == [
        "surfaces.lamps.options.levle: unknown option; did you mean 'level'?",
        "surfaces.lamps.options.room: is missing",
        "surfaces.lamps.options.dimmed: must be true or false",
    ]


def test_option_is_refused_when_the_factory_takes_none():
    assert refused(lambda: None, x=1) == ["surfaces.lamps.options.x: unknown option; known: none"]


def test_factory_with_any_keyword_gets_any_option():
    assert fitting_options(lambda **all_: all_, NESTED, "", Settings.load().path)["login"] == NESTED["login"]


def test_a_class_is_taken_by_its_constructor():
    class Lamps:
        def __init__(self, room: str, count: int = 1) -> None:
            self.room, self.count = room, count

    assert fitting_options(Lamps, {"room": "hall", "count": "2"}, "", Settings.load().path) == {
        "room": "hall",
        "count": 2,
    }
    assert refused(Lamps, rom="hall")[0] == "surfaces.lamps.options.rom: unknown option; did you mean 'room'?"


def typed_for_checkers(x: Unknown):
    return x


def typed_oddly(x: list[Unknown], y: int):
    return x, y


@pytest.mark.parametrize("factory", [typed_for_checkers, typed_oddly])
def test_unusable_annotation_leaves_options_unvalidated(factory):
    options: dict[str, Any] = {"x": "1", "y": "2"} if factory is typed_oddly else {"x": "1"}
    assert fitting_options(factory, options, "", Settings.load().path) == options


def test_texts_with_a_name_like_a_key_s_are_secret_wherever_they_stand():
    settings = Settings.load(surfaces={"lamps": {"options": NESTED}})
    assert "4711-4711" not in repr(settings)
    for shown in (repr(settings), settings.model_dump_json()):
        assert "xyzzy" not in shown
        assert "plugh" not in shown
    assert set(keys_of(settings)) == {"xyzzy-4711", "plugh-4711"}
    given = settings.surfaces["lamps"].options
    assert fitting_options(lambda **all_: all_, given, "", settings.path) == NESTED


def test_options_can_be_set_by_the_environment(monkeypatch):
    monkeypatch.setenv("CALLBOARD_SURFACES__LAMPS__OPTIONS__TOKEN", "xyzzy-4711")
    assert Settings.load().surfaces["lamps"].options == {"token": SecretStr("xyzzy-4711")}
