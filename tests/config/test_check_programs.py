"""Functions for checks: only those of the settings and of the host program are there."""

from __future__ import annotations

import sys

import pytest

from callboard import Settings, Supervisor
from callboard.config import all_check_programs
from callboard.messages import SettingsError

SOURCE = "def balances(): return True\n\nNUMBER = 3\n"


@pytest.fixture
def ledger(install):
    """Install a distribution with a function for checks; gives its folder."""
    return install(
        "acme", "checks", {"balances": "acme_ledger:balances", "number": "acme_ledger:NUMBER"}, acme_ledger=SOURCE
    )


def refused(*names, given=None):
    with pytest.raises(SettingsError) as info:
        all_check_programs(Settings.load(check_programs=names), given or {})
    return str(info.value)


def test_a_named_function_is_imported_beside_those_of_the_host_program(ledger):
    assert "acme_ledger" not in sys.modules
    programs = all_check_programs(Settings.load(check_programs=["acme:balances"]), {"own": len})
    assert list(programs) == ["balances", "own"]
    assert programs["balances"]() is True


def test_unknown_function_error_lists_installed_plugins(ledger):
    assert refused("balance") == (
        "check_programs.0: there is no check plug-in 'balance'; installed are: balances (acme 1.2), number (acme 1.2); "
        "did you mean 'balances'?"
    )


def test_a_plugin_that_can_t_be_called_is_refused(ledger):
    told = "check_programs.1: the plug-in 'number' of acme 1.2 (acme_ledger:NUMBER) is a int, which can't be called"
    assert refused("balances", "number") == told


def test_all_names_are_looked_up_before_one_is_imported(ledger):
    assert "check_programs.1: there is no check plug-in 'none'" in refused("balances", "none")
    assert "acme_ledger" not in sys.modules


def test_two_functions_of_one_name_are_refused(ledger, install):
    install("other", "checks", {"balances": "acme_ledger:balances"})
    assert "2 distributions offer a check 'balances': name one of acme:balances, other:balances" in refused("balances")
    assert "has the name of another check program" in refused("acme:balances", "other:balances")
    told = "check_programs: the host program has functions of the same names: balances; leave one of them out"
    assert refused("acme:balances", given={"balances": len}) == told


def test_the_settings_of_a_supervisor_are_loaded_at_its_start(ledger):
    with pytest.raises(SettingsError, match=r"check_programs\.0: there is no check plug-in 'none'"):
        Supervisor.start(Settings.load(check_programs=["none"]))
    with pytest.raises(TypeError, match="checks: 'own' is a int, which can't be called"):
        Supervisor.start(checks={"own": 3})


def test_a_check_program_in_the_current_folder_is_never_run(tmp_path, monkeypatch):
    information = tmp_path / "evil-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text("[callboard.checks]\nevil = evil:check\n", encoding="utf-8")
    source = "from pathlib import Path\n\nPath(__file__).with_name('imported').touch()\n"
    (tmp_path / "evil.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("evil", "evil:check", "evil:evil"):
        assert f"there is no check plug-in '{name}'" in refused(name)
    assert not (tmp_path / "imported").exists()
