"""Files of other programs: one sentence with the way out, wherever they are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.answers import finish
from callboard.errors import TaskRefusedError, UnknownTargetError
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface, advice_on

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

NAMES = [
    ("old.XLT", "save it as .xlsx"),
    ("letter.dot", "save it as .docx"),
    ("table.ots", "save it as .xlsx"),
    ("letter.ott", "save it as .docx"),
    ("letter.pages", "save it as .docx"),
    ("mail.msg", "save it as .eml"),
    ("deck.otp", "save it as .pptx"),
    ("letter.wps", "save it as .docx"),
    ("book.fods", "save it as .xlsx"),
    ("show.ppsx", "save it as .pptx"),
    ("mails.mbox", "save it as .eml, each message by itself"),
    ("photo.heic", "save it as .png"),
    ("notes.log", "save it as .txt"),
]


@pytest.mark.parametrize(("name", "way"), NAMES)
def test_another_format_gets_advice(workspace: Path, surface: DocumentSurface, call: Call, name: str, way: str) -> None:
    (workspace / name).write_bytes(b"x")
    assert advice_on(name).endswith(way)
    assert surface.no_target(name) == advice_on(name)
    for tool in ("open_document", "create_document"):
        with pytest.raises(ToolError, match=rf"is refused: .*{way}"):
            call(tool, path=name)


@pytest.mark.parametrize("name", ["a.docx", "missing.xlt", "../a.xlt", ""])
def test_no_reason_is_given_for_other_names(workspace: Path, surface: DocumentSurface, name: str) -> None:
    (workspace.parent / "a.xlt").write_bytes(b"x")
    assert surface.no_target(name) == ""


def test_an_unknown_format_is_named_with_the_known_ones(workspace: Path, surface: DocumentSurface) -> None:
    (workspace / "a.zip").write_bytes(b"x")
    assert surface.no_target("a.zip").startswith("only .docx, .xlsx,")
    assert surface.no_target("a.zip").endswith("save it as one of them")


def test_a_task_that_names_another_format_is_refused_with_the_reason(workspace: Path) -> None:
    (workspace / "old.xlsb").write_bytes(b"x")
    journal = {"path": str(workspace.parent / "journal.db")}
    settings = Settings.model_validate({"documents": {"workspace": str(workspace)}, "journal": journal})
    with Supervisor.start(settings, models={"app": FunctionModel(lambda _: finish("done"))}) as supervisor:
        with pytest.raises(UnknownTargetError, match=r"'old\.xlsb' is no target: binary workbooks can't be read"):
            supervisor.submit(Task(request="x", target="old.xlsb"))
        with pytest.raises(TaskRefusedError, match=r"'old\.xlsb' can't be changed: .*save it as \.xlsx"):
            supervisor.submit(Task(request="x", may_change=["old.xlsb"]))
        with pytest.raises(UnknownTargetError, match=r"there is no target 'new\.xlsb'; there are: word, excel"):
            supervisor.submit(Task(request="x", target="new.xlsb"))
