"""Plug-ins are found by the metadata of installed packages, and imported by name alone."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from callboard.config import PluginGroup, Settings, find_plugin, import_plugin, make_plugin
from callboard.messages import SettingsError

SURFACES, MODELS = PluginGroup.SURFACES, PluginGroup.MODELS
ENTRY = EntryPoint("made", "somewhere:Made", SURFACES)


def not_found(group, wanted):
    with pytest.raises(SettingsError) as info:
        find_plugin(group, wanted, "surfaces.one")
    return str(info.value)


def not_made(factory, **options):
    with pytest.raises(SettingsError) as info:
        make_plugin(ENTRY, factory, Settings.load(), options, "surfaces.one")
    return str(info.value)


def test_an_entry_point_is_found_without_an_import(install):
    install("acme", "surfaces", {"lamps": "acme_lamps:Lamps"}, acme_lamps="raise RuntimeError")
    assert find_plugin(SURFACES, "lamps", "surfaces.lamps").value == "acme_lamps:Lamps"
    assert "acme_lamps" not in sys.modules


def test_unknown_name_error_lists_installed_plugins(install):
    install("acme", "surfaces", {"lamps": "acme_lamps:Lamps", "doors": "acme_lamps:Doors"})
    assert not_found(SURFACES, "lmps") == (
        "surfaces.one: there is no surface plug-in 'lmps'; "
        "installed are: doors (acme 1.2), lamps (acme 1.2); did you mean 'lamps'?"
    )


def test_unknown_name_error_lists_none_when_none_is_installed():
    assert not_found(MODELS, "house") == "surfaces.one: there is no model plug-in 'house'; installed are: none"


def test_a_name_of_another_group_is_unknown(install):
    install("acme", "surfaces", {"lamps": "acme_lamps:Lamps"})
    assert "there is no model plug-in 'lamps'" in not_found(MODELS, "lamps")


def test_a_name_that_two_distributions_offer_is_refused_with_both(install):
    install("acme", "surfaces", {"lamps": "acme_lamps:Lamps"})
    install("Bright.Co", "surfaces", {"lamps": "bright:Lamps"})
    assert not_found(SURFACES, "lamps") == (
        "surfaces.one: 2 distributions offer a surface 'lamps': name one of Bright.Co:lamps, acme:lamps"
    )
    assert find_plugin(SURFACES, "acme:lamps", "").value == "acme_lamps:Lamps"
    assert find_plugin(SURFACES, "bright-co:lamps", "").value == "bright:Lamps"
    assert "there is no surface plug-in 'other:lamps'" in not_found(SURFACES, "other:lamps")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("raise SystemExit", "SystemExit"),
        ("class Other: ...", "AttributeError: module 'acme_lamps' has no attribute 'Lamps'"),
        ("class Lamps:\n", "IndentationError: "),
    ],
)
def test_a_plugin_that_can_t_be_imported_is_named_with_the_reason(install, source, told):
    install("acme", "surfaces", {"lamps": "acme_lamps:Lamps"}, acme_lamps=source)
    with pytest.raises(SettingsError) as info:
        import_plugin(find_plugin(SURFACES, "lamps", ""), "surfaces.lamps")
    named = "surfaces.lamps: the plug-in 'lamps' of acme 1.2 (acme_lamps:Lamps) can't be imported: "
    assert str(info.value).startswith(named + told)


def test_plugin_that_can_t_be_called_is_refused():
    assert not_made(3) == (
        "surfaces.one: the plug-in 'made' of callboard (somewhere:Made) is a int, which can't be called"
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such lamp"), "surfaces.one: ValueError: no such lamp"),
        (NotADirectoryError("/srv is no folder"), "surfaces.one: /srv is no folder"),
        (SystemExit(3), "surfaces.one: SystemExit: 3"),
    ],
)
def test_error_of_a_plugin_is_reported(error, told):
    def factory():
        raise error

    assert not_made(factory) == told


def test_a_secret_option_in_an_error_is_redacted():
    def factory(token):
        msg = f"the token {token} is refused"
        raise ValueError(msg)

    settings = Settings.load(surfaces={"one": {"options": {"token": "xyzzy-4711"}}})
    with pytest.raises(SettingsError, match=r"the token \*+ is refused"):
        make_plugin(ENTRY, factory, settings, settings.surfaces["one"].options, "surfaces.one")


def test_plugin_groups_include_no_policies():
    assert {group.value for group in PluginGroup} == {
        "callboard.surfaces",
        "callboard.models",
        "callboard.agents",
        "callboard.checks",
    }
