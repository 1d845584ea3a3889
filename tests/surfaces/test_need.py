"""Missing requirements of a surface: one error with all install commands, before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from callboard import Settings, Supervisor
from callboard.messages import SettingsError
from callboard.surface import Need
from callboard.surfaces import shipped_surface
from support import PATIENCE

DESK = """
from callboard.surface import Need
from callboard.testing import MemoryServer

class Desk(MemoryServer):
    def __init__(self, display: str = ":0"):
        import no_such_package_at_all

    @classmethod
    def needs(cls, options):
        return (
            Need.package("no_such_package_at_all", "pip install acme-desk"),
            Need(what=f"the display {options['display']}", met=False, command="apt install xvfb"),
            Need.program("no-such-program", "apt install it", optional=True),
            Need.package("json", "nothing"),
        )

class Broken(Desk):
    @classmethod
    def needs(cls, options):
        raise LookupError("no screen at all")
"""


def refused(**sections):
    with pytest.raises(SettingsError) as info:
        Supervisor.start(Settings.load(**sections))
    return info.value


@pytest.fixture(autouse=True)
def _desk(install):
    install("acme", "surfaces", {"desk": "acme_desk:Desk", "broken": "acme_desk:Broken"}, acme_desk=DESK)


def test_everything_that_is_missing_is_one_error_with_its_commands(tmp_path):
    error = refused(
        surfaces={"desk": {"options": {"display": ":7"}}},
        documents={"workspace": tmp_path / "no where"},
        journal={"path": tmp_path / "journal.db"},
    )
    assert str(error).splitlines() == [
        f"documents: the folder {tmp_path}/no where is missing: mkdir -p '{tmp_path}/no where'",
        "surfaces.desk: the package 'no_such_package_at_all' is missing: pip install acme-desk",
        "surfaces.desk: the display :7 is missing: apt install xvfb",
    ]
    assert error.commands == (f"mkdir -p '{tmp_path}/no where'", "pip install acme-desk", "apt install xvfb")
    assert list(tmp_path.glob("journal.db*")) == []


def test_error_while_listing_needs_of_a_surface_is_reported():
    assert str(refused(surfaces={"broken": {}})) == "surfaces.broken: LookupError: no screen at all"


def test_wrong_options_are_reported_before_missing_needs():
    told = str(refused(surfaces={"desk": {"options": {"dispaly": ":7"}}}))
    assert told == "surfaces.desk.options.dispaly: unknown option; did you mean 'display'?"


def test_a_package_is_looked_for_without_an_import():
    sys.modules.pop("this", None)
    assert Need.package("this", "").met
    assert "this" not in sys.modules
    assert not Need.package("no_such_package_at_all.part", "").met


@pytest.mark.parametrize(("name", "met"), [("sh", True), ("no-such-program", False)])
def test_a_program_is_looked_for_by_its_name(name, met):
    need = Need.program(name, "apt install it")
    assert (need.met, need.told) == (met, f"the program '{name}' is missing: apt install it")


def test_the_documents_need_a_folder_and_no_office(tmp_path):
    assert shipped_surface("documents").needs(Settings.load()) == ()
    (tmp_path / "file").touch()
    (need,) = shipped_surface("documents", {"workspace": tmp_path / "file"}).needs(Settings.load())
    assert (need.met, need.command) == (False, "")


EXTRAS = "PIL Xlib asyncssh icalendar ironcalc jeepney pdfminer pdfplumber pypdfium2 pytesseract re2"
EXTRAS += " tree_sitter tree_sitter_bash"


def test_every_surface_is_imported_without_extras():
    code = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS.split()}))
from callboard import Settings
from callboard.surfaces import SHIPPED, shipped_surface
for name in SHIPPED:
    shipped_surface(name).needs(Settings())
"""
    command = [sys.executable, "-c", code]  # not in a fork, where the extras are imported
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
