"""Surfaces by name: those that ship and those of plug-ins are made in one way."""

from __future__ import annotations

import sys

import pytest

from callboard import FunctionModel, Settings, Supervisor
from callboard.messages import SettingsError
from callboard.surfaces import SHIPPED, NamedSurface, make_surfaces, named_surfaces
from callboard.surfaces.documents import DocumentSurface
from support import FINISH, PATIENCE, lone

LAMPS = """
from callboard.testing import MemoryServer

class Lamps(MemoryServer):
    def __init__(self, room: str = "hall", count: int = 1):
        self.room, self.count = room, count
        super().__init__(self.window("one"), name="lamps")

    def targets(self):
        return (self.window("one", server=self.name),)

class Fixed(Lamps):
    name = property(lambda self: "fixed", lambda self, _: None)

def nothing():
    return {}
"""
ENTRIES = {"lamps": "acme_lamps:Lamps", "nothing": "acme_lamps:nothing", "fixed": "acme_lamps:Fixed"}


@pytest.fixture
def _lamps(install):
    install("acme", "surfaces", ENTRIES, acme_lamps=LAMPS)


def refused(**sections):
    with pytest.raises(SettingsError) as info:
        make_surfaces(Settings.load(**sections))
    return str(info.value)


def test_the_documents_are_there_when_they_have_a_workspace(tmp_path):
    assert make_surfaces(Settings.load()) == []
    (surface,) = make_surfaces(Settings.load(documents={"workspace": tmp_path}))
    assert isinstance(surface, DocumentSurface)
    assert (surface.name, surface.workspace) == ("documents", tmp_path)


def test_workspace_that_is_not_a_folder_is_refused(tmp_path):
    assert refused(documents={"workspace": tmp_path / "nowhere"}).startswith("documents: ")


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_surface_is_a_section_of_the_settings(name):
    section = getattr(Settings.load(), name)
    assert isinstance(section, dict) or hasattr(section, "wanted")


def test_paths_of_shells_start_from_the_settings_file(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "callboard.yaml").write_text("shells: {box: {cwd: work}}", encoding="utf-8")
    (surface,) = make_surfaces(Settings.load(tmp_path / "callboard.yaml"))
    assert [target.address for target in surface.targets()] == ["linux/box"]
    assert surface._settings["box"].cwd == tmp_path / "work"


@pytest.mark.usefixtures("_lamps")
def test_a_plugin_named_in_the_settings_is_a_surface_under_that_name():
    plugins = {"lamps": {"options": {"room": "attic"}}, "more": {"plugin": "acme:lamps", "options": {"count": "2"}}}
    surfaces = make_surfaces(Settings.load(surfaces=plugins))
    assert [(surface.name, surface.room, surface.count) for surface in surfaces] == [
        ("lamps", "attic", 1),
        ("more", "hall", 2),
    ]
    assert [target.server for surface in surfaces for target in surface.targets()] == ["lamps", "more"]


@pytest.mark.usefixtures("_lamps")
def test_finding_surfaces_imports_no_plugin():
    (surface,) = named_surfaces(Settings.load(surfaces={"hall": {"plugin": "lamps"}}))
    assert (surface.name, surface.where, surface.entry.value) == ("hall", "surfaces.hall", "acme_lamps:Lamps")
    assert isinstance(surface, NamedSurface)
    assert "acme_lamps" not in sys.modules


@pytest.mark.usefixtures("_lamps")
def test_plugin_that_returns_no_surface_is_refused():
    told = "surfaces.hall: the plug-in 'nothing' of acme 1.2 (acme_lamps:nothing) returned a dict, not a Server"
    assert refused(surfaces={"hall": {"plugin": "nothing"}}) == told


@pytest.mark.usefixtures("_lamps")
def test_a_surface_that_does_not_take_its_name_is_refused():
    assert refused(surfaces={"hall": {"plugin": "fixed"}}) == (
        "surfaces.hall: the plug-in 'fixed' of acme 1.2 (acme_lamps:Fixed) can't be called 'hall'"
    )


def test_the_name_of_a_shipped_surface_is_refused():
    told = refused(surfaces={"documents": {"plugin": "lamps"}})
    assert told.startswith("surfaces.documents: 'documents' is built into callboard")


@pytest.mark.usefixtures("_lamps")
def test_an_agent_works_on_a_plugins_surface():
    settings = Settings.load(surfaces={"hall": {"plugin": "lamps"}})
    with Supervisor.start(settings, models={"app": FunctionModel(lambda _: FINISH)}) as supervisor:
        assert [target.server for target in supervisor.targets()] == ["hall"]
        assert supervisor.submit(lone()).result(PATIENCE).ok


@pytest.mark.usefixtures("_lamps")
def test_a_start_with_a_wrong_option_starts_nothing(tmp_path):
    settings = Settings.load(
        surfaces={"hall": {"plugin": "lamps", "options": {"rom": 1}}}, journal={"path": tmp_path / "journal.db"}
    )
    with pytest.raises(SettingsError, match=r"surfaces.hall.options.rom: unknown option; did you mean 'room'\?"):
        Supervisor.start(settings)
    assert not (tmp_path / "journal.db").exists()
