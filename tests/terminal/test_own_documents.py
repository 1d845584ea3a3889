"""Requests on documents that the command line names.

As in `callboard run "REQUEST" offer.docx prices.xlsx`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
import yaml
from typer.testing import Result

from callboard import answers
from callboard.messages import TaskResult

Call = Callable[..., Result]
REQUEST = "Copy the prices from the offer into the list"

EDIT = [
    answers.assign("Write the prices", "prices.xlsx"),
    answers.finish("The prices are in the list."),
]
WRITE = [
    answers.act("write_range", sheet="Sheet", cell="A1", values=[["Screw", 2], ["Nut", 3]]),
    answers.act("insert_chart", sheet="Sheet", cells="A1:B2", title="Prices", type="bar"),
    answers.finish("Written."),
]


@pytest.fixture
def documents(here: Path) -> Path:
    """An offer and a price list in the working folder."""
    offer = docx.Document()
    offer.add_paragraph("Screws: 2 euros.")
    offer.save(str(here / "offer.docx"))
    book = openpyxl.Workbook()
    book.active["A1"] = "Screw"
    book.active["B9"] = "kept"
    book.save(here / "prices.xlsx")
    return here


@pytest.fixture
def scripted(here: Path) -> Callable[..., str]:
    """Write a script, and give the model's name."""

    def write(host: list[Any] = EDIT, prices: list[Any] = WRITE) -> str:
        text = yaml.safe_dump({"host": host, "app/excel/prices.xlsx": prices})
        (here / "script.yaml").write_text(text, encoding="utf-8")
        return "scripted:script.yaml"

    return write


def test_a_request_runs_on_copies_of_the_documents(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    before = {name: (documents / name).read_bytes() for name in ("offer.docx", "prices.xlsx")}
    result = call("run", REQUEST, "offer.docx", "prices.xlsx", "--model", scripted())
    assert result.exit_code == 0, result.output
    assert {name: (documents / name).read_bytes() for name in before} == before
    book = openpyxl.load_workbook(documents / "runs/offer-1/workspace/prices.xlsx")
    assert book.active["B2"].value == 3
    assert (documents / "runs/offer-1/workspace/offer.docx").read_bytes() == before["offer.docx"]


def test_a_copy_that_is_named_may_be_changed(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    result = call("run", "Clear prices.xlsx", "prices.xlsx", "--model", scripted(prices=CLEAR))
    assert result.exit_code == 0, result.output
    assert "asks for approval" not in result.stdout
    copy = documents / "runs/prices-1/workspace/prices.xlsx"
    assert openpyxl.load_workbook(copy).active["A1"].value == "Nail"


def test_last_lines_count_the_changes_of_the_files(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    lines = call("run", REQUEST, "offer.docx", "prices.xlsx", "--model", scripted()).stdout.splitlines()
    assert "changed runs/offer-1/workspace/prices.xlsx (3 cells, 1 new chart)" in lines
    assert "used    5 steps, 5 model calls, 2 tool calls" in lines
    assert lines[-1] == "history callboard show offer-1 runs/offer-1"


@pytest.mark.parametrize("place", [(), ("--in-place",)], ids=["copies", "in place"])
def test_a_dry_run_changes_nothing_and_lists_the_actions(
    call: Call, documents: Path, scripted: Callable[..., str], place: tuple[str, ...]
) -> None:
    before = (documents / "prices.xlsx").read_bytes()
    result = call("run", REQUEST, "prices.xlsx", "--dry-run", *place, "--model", scripted())
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "a dry run: no action is executed, except tools that only read" in lines
    assert "changed nothing" in lines
    planned = [" ".join(line.split()) for line in lines if line.startswith("planned")]
    assert [line.split()[1] for line in planned] == ["write_range", "insert_chart"]
    assert "dry run: not executed" in result.stdout
    assert (documents / "prices.xlsx").read_bytes() == before
    copies = list(documents.glob("runs/*/workspace/prices.xlsx"))
    assert all(copy.read_bytes() == before for copy in copies)
    assert bool(copies) is not bool(place)


def test_a_models_claim_counts_for_nothing(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    model = scripted([answers.finish("I changed 500 cells in prices.xlsx.")])
    lines = call("run", REQUEST, "prices.xlsx", "--model", model).stdout.splitlines()
    assert "changed nothing" in lines


def test_the_run_can_be_shown_and_run_again(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    call("run", REQUEST, "prices.xlsx", "--model", scripted())
    shown = call("show", "prices-1", "runs/prices-1")
    assert REQUEST in shown.stdout
    assert call("run", "runs/prices-1").exit_code == 0
    assert (documents / "runs/prices-1-1/workspace/prices.xlsx").is_file()


def test_the_copy_of_a_link_is_a_file(
    call: Call, documents: Path, scripted: Callable[..., str], tmp_path: Path
) -> None:
    shutil.move(documents / "prices.xlsx", tmp_path / "elsewhere.xlsx")
    before = (tmp_path / "elsewhere.xlsx").read_bytes()
    (documents / "prices.xlsx").symlink_to(tmp_path / "elsewhere.xlsx")
    assert call("run", REQUEST, "prices.xlsx", "--model", scripted()).exit_code == 0
    assert not (documents / "runs/prices-1/workspace/prices.xlsx").is_symlink()
    assert (tmp_path / "elsewhere.xlsx").read_bytes() == before


def test_a_document_of_another_folder_is_copied_under_its_name(
    call: Call, documents: Path, scripted: Callable[..., str]
) -> None:
    (documents / "deep").mkdir()
    shutil.move(documents / "prices.xlsx", documents / "deep" / "prices.xlsx")
    result = call("run", REQUEST, "deep/../deep/prices.xlsx", "--model", scripted())
    assert result.exit_code == 0, result.output
    assert "changed runs/prices-1/workspace/prices.xlsx (3 cells, 1 new chart)" in result.stdout


def test_json_is_the_result_alone(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    result = call("run", REQUEST, "prices.xlsx", "--model", scripted(), "--json")
    assert TaskResult.model_validate_json(result.stdout).ok


def test_request_beside_a_document_may_be_short(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    result = call("run", "Summarize", "prices.xlsx", "--model", scripted())
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Summarize\n")


def test_a_request_needs_no_documents(call: Call, here: Path, scripted: Callable[..., str]) -> None:
    model = scripted([answers.act("create_document", path="new.xlsx", status="FINISH")])
    lines = call("run", "Make an empty workbook", "--model", model).stdout.splitlines()
    assert any(line.startswith("made    runs/task-1/workspace/new.xlsx") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((REQUEST, "offer.docx"), "no model is named: add --model"),
        ((REQUEST,), "so it is a request, and no model is named: add --model"),
        ((REQUEST, "offer.docx", "--model", "host=openai:x"), "for agents of the kind app: add --model app=NAME"),
        (("offer.docx",), "offer.docx: is a document, not a task, and the request is missing: add in quotes"),
        (("offer.docx", "prices.xlsx"), "offer.docx and prices.xlsx: are documents, and the request is missing"),
        (("Scan 1.pdf",), "as in callboard run 'Add up the prices' 'Scan 1.pdf' --model openai:gpt-5"),
        (("notes.txt",), "notes.txt: is a document, not a task, and the request is missing"),
        (("offr.docx", "prices.xlsx"), "offr.docx: there is no such file or folder; did you mean 'offer.docx'?"),
        (("the offer.docx", "prices.xlsx"), "did you mean 'offer.docx'?"),
        (("offer.docx ", "offer.docx"), "did you mean 'offer.docx'?"),
        ((REQUEST, "lists/prices.xlsx", "offer.docx"), "lists/prices.xlsx: there is no such file or folder"),
        (("Copy", "prices"), "there is no such file or folder"),
        (("Copy it", "and chart it", "offer.docx"), "'Copy it' and 'and chart it' are no files: give one request"),
        (("  ", "offer.docx"), "the request is empty"),
        ((REQUEST, "offer.docx", "copy/offer.docx"), "have the same name"),
        ((REQUEST, "offer.docx", "copy/OFFER.docx"), "have the same name"),
        ((REQUEST, "offer.docx", "offer.docx"), "offer.docx is named twice: name it once"),
        ((REQUEST, "copy"), "copy: is a folder"),
        ((REQUEST, "loose.docx"), "loose.docx: is no file, or a link that leads nowhere"),
        ((REQUEST, "pipe.docx"), "pipe.docx: is no file"),
        ((REQUEST, "offer.docx", "--settings", "s.yaml"), "--settings belongs to a task file"),
        ((REQUEST, "offer.docx", "--model", "nonsense"), "'nonsense' is not a known model"),
        (("x" * 5000 + " y", "offer.docx"), "no model is named"),
        (("../" * 9 + "etc/passwd.docx", "offer.docx"), "there is no such file or folder"),
    ],
)
def test_mistake_is_reported_before_anything_is_made(
    call: Call, documents: Path, arguments: tuple[str, ...], told: str
) -> None:
    (documents / "copy").mkdir()
    for name in ("offer.docx", "OFFER.docx"):
        shutil.copy(documents / "offer.docx", documents / "copy" / name)
    (documents / "Scan 1.pdf").write_bytes(b"%PDF-1.7")
    (documents / "notes.txt").write_text("Screws", encoding="utf-8")
    (documents / "loose.docx").symlink_to("nowhere.docx")
    os.mkfifo(documents / "pipe.docx")
    result = call("run", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert not (documents / "runs").exists()


@pytest.mark.parametrize("name", ["notes.pdf2", ".hidden.docx", "~$lock.docx"])
def test_a_file_that_agents_cant_open_is_refused_and_leaves_nothing(
    call: Call, documents: Path, scripted: Callable[..., str], name: str
) -> None:
    shutil.copy(documents / "offer.docx", documents / name)
    result = call("run", REQUEST, name, "--model", scripted())
    assert result.exit_code == 2
    assert f"{name}: agents can't work on it" in result.stderr
    assert list((documents / "runs").iterdir()) == []


@pytest.mark.parametrize("name", ["old.XLT", "letter.ott", "table.ots", "letter.pages"])
@pytest.mark.parametrize("request_text", [(), (REQUEST,)])
def test_a_file_of_another_format_is_refused_with_a_way_out(
    call: Call, documents: Path, name: str, request_text: tuple[str, ...]
) -> None:
    shutil.copy(documents / "offer.docx", documents / name)
    result = call("run", *request_text, name, "--model", "openai:x")
    assert result.exit_code == 2
    line = rf"{name}: agents can't work on it: .* can't be read; save it as \.(docx|xlsx)"
    assert re.search(line, " ".join(result.stderr.split()))
    assert not (documents / "runs").exists()


@pytest.mark.parametrize("name", ["a\x1b[2Jb.docx", "a\nb.docx", "a\u202excod.docx"])
def test_a_name_with_control_characters_is_refused_and_shown_escaped(call: Call, documents: Path, name: str) -> None:
    shutil.copy(documents / "offer.docx", documents / name)
    result = call("run", REQUEST, name, "--model", "openai:x")
    assert result.exit_code == 2
    assert "its name has control characters" in result.stderr
    assert not set("\x1b\u202e") & set(result.stderr)
    assert not (documents / "runs").exists()


def test_a_long_name_makes_a_short_folder(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    name = f"{'ü' * 100} {'x' * 20}.docx"
    shutil.copy(documents / "offer.docx", documents / name)
    result = call("run", REQUEST, "prices.xlsx", name, "--model", scripted())
    assert result.exit_code == 0, result.output
    shutil.move(documents / name, documents / f"{name[1:]}")
    assert call("run", REQUEST, name[1:], "--model", scripted([answers.finish("x")])).exit_code == 0
    assert [len(each.name) for each in (documents / "runs").iterdir() if "ü" in each.name] == [42]


def test_a_request_in_a_script_without_spaces_is_a_request(
    call: Call, documents: Path, scripted: Callable[..., str]
) -> None:
    assert call("run", "把价格复制到列表", "prices.xlsx", "--model", scripted()).exit_code == 0


# In place


CLEAR = [answers.act("write_range", sheet="Sheet", cell="A1", values=[["Nail"]]), answers.finish("Written.")]


def test_in_place_changes_the_original_and_undo_brings_it_back(
    call: Call, documents: Path, scripted: Callable[..., str]
) -> None:
    before = (documents / "prices.xlsx").read_bytes()
    result = call("run", REQUEST, "offer.docx", "prices.xlsx", "--in-place", "--model", scripted(prices=CLEAR))
    assert result.exit_code == 0, result.output
    assert openpyxl.load_workbook(documents / "prices.xlsx").active["A1"].value == "Nail"
    lines = result.stdout.splitlines()
    assert "changed prices.xlsx (1 cell)" in lines
    assert lines[-2:] == [
        "undo    callboard undo offer-1 runs/offer-1",
        "history callboard show offer-1 runs/offer-1",
    ]
    assert not (documents / "runs/offer-1/workspace").exists()
    assert call(*lines[-2].split()[2:]).exit_code == 0
    assert (documents / "prices.xlsx").read_bytes() == before


def test_in_place_another_file_needs_an_approval(call: Call, documents: Path, scripted: Callable[..., str]) -> None:
    before = (documents / "prices.xlsx").read_bytes()
    result = call("run", REQUEST, "offer.docx", "--in-place", "--model", scripted(prices=CLEAR))
    assert "asks for approval" in result.stdout
    assert (documents / "prices.xlsx").read_bytes() == before


def test_refused_subtask_is_shown_although_its_task_finished(
    call: Call, documents: Path, scripted: Callable[..., str]
) -> None:
    result = call("run", REQUEST, "offer.docx", "--in-place", "--model", scripted(prices=CLEAR), "--no-input")
    assert result.exit_code == 0, result.output
    (told,) = (line for line in result.stdout.splitlines() if line.startswith("subtask "))
    assert told.startswith("subtask 1 rejected: ")


def test_a_copy_of_an_earlier_run_is_no_document_in_place(
    call: Call, documents: Path, scripted: Callable[..., str]
) -> None:
    model = scripted([answers.finish("Nothing to do.")])
    assert call("run", REQUEST, "prices.xlsx", "--model", model).exit_code == 0
    model = scripted([answers.assign("Write", "runs/prices-1/workspace/prices.xlsx")], CLEAR)
    copy = (documents / "runs/prices-1/workspace/prices.xlsx").read_bytes()
    assert call("run", REQUEST, "prices.xlsx", "--in-place", "--model", model).exit_code == 3
    assert (documents / "runs/prices-1/workspace/prices.xlsx").read_bytes() == copy


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((REQUEST, "--model", "openai:x"), "--in-place needs documents"),
        ((REQUEST, "offer.docx", "deep/other.docx", "--model", "openai:x"), "are in two folders"),
        ((REQUEST, "link.docx", "--model", "openai:x"), "link.docx: is a link: with --in-place, name the document"),
        (("deep",), "--in-place belongs to a request"),
        ((REQUEST, "offer.docx", "--may-change", "offer.docx"), "--may-change belongs to a folder or a task file"),
    ],
)
def test_mistake_in_place_is_reported_before_anything_is_made(
    call: Call, documents: Path, arguments: tuple[str, ...], told: str
) -> None:
    (documents / "deep").mkdir()
    shutil.copy(documents / "offer.docx", documents / "deep" / "other.docx")
    (documents / "link.docx").symlink_to("offer.docx")
    result = call("run", *arguments, "--in-place")
    assert result.exit_code == 2
    assert told in result.stderr
    assert not (documents / "runs").exists()
