"""The results of formulas after an edit.

They are computed if the extra `excel` is installed, else removed.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import json
import os
import posixpath
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lxml import etree
from openpyxl.utils.datetime import MAC_EPOCH

from callboard.actors.servers.documents._excel_outdated import CellPlace, Formulas
from callboard.actors.servers.documents._excel_references import functions
from callboard.actors.servers.documents._excel_structured import name_tables
from callboard.actors.servers.documents._office import MAIN
from callboard.actors.servers.documents._package import (
    CONTENT_TYPES,
    PACKAGE,
    RELATIONSHIPS,
    Package,
    Relationship,
    rels_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.actors.servers.documents._excel_file import ExcelFile

Results: TypeAlias = dict[CellPlace, tuple[float | str | bool, bool]]
"""The computed values by cell, each with whether it is an error."""

SECONDS = 10
"""The longest time of a computation, in seconds."""
_KEPT = frozenset({"sharedStrings", "styles", "theme", "worksheet"})
_NO_CELLS = f'<worksheet xmlns="{MAIN}"><sheetData/></worksheet>'.encode()  # in place of a chart sheet
_MAX_CELLS = 50_000
_PROGRAM = Path(__file__).with_name("_calculator.py")


def settle(file: ExcelFile) -> None:
    """Update the results of formulas after an edit.

    Results that can't be computed are removed.

    The program that opens the workbook next computes all of them again.
    """
    changed: list[CellPlace] = [
        (sheet.title.casefold(), row, column) for sheet in file.worksheets for row, column in sheet.changed
    ]
    if not changed and not file.outdated:
        return
    formulas = Formulas.of(file)
    if not formulas.texts:
        return
    file.compute_on_load()
    cells = {id(cell) for cell in file.outdated}
    own: list[CellPlace] = [
        (sheet.title.casefold(), row, column)
        for sheet in file.worksheets
        for (row, column), cell in sheet.cells.items()
        if id(cell) in cells
    ]
    seeds = [*changed, *own, *formulas.volatile]
    outdated = {place: None for place in seeds if place in formulas.texts}
    outdated |= formulas.depending(seeds)
    spilled = [each for place in outdated for each in formulas.spilled(place)]
    sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
    everything = [*outdated, *spilled]
    for title, row, column in everything:
        if (row, column) in sheets[title].cells:
            sheets[title].set_result(row, column, None)
    results = compute(file, formulas, everything)
    for (title, row, column), (value, error) in results.items():
        sheets[title].set_result(row, column, value, error=error)


def compute(file: ExcelFile, formulas: Formulas, wanted: Iterable[CellPlace]) -> Results:
    """Compute cells of a workbook, except those that can't be computed.

    Formulas that use a function that the calculator does not know, or read other workbooks, are left out with all
    that depend on them: one of those might hide the error. A workbook whose dates count from 1904 is left out, too: the
    calculator would take them for dates four years earlier.
    """
    cells = list(wanted)
    if not cells or len(cells) > _MAX_CELLS or file.epoch == MAC_EPOCH or not is_available():
        return {}
    used = {place: set(functions(text)) for place, text in formulas.texts.items()}
    found = _run(_reduced(file), cells, sorted(set().union(*used.values())))
    if found is None:
        return {}
    strange = set(found["unknown"])
    blocked = [place for place, names in used.items() if names & strange] + formulas.elsewhere()
    left_out = {*blocked, *formulas.depending(blocked)}
    left_out |= {each for place in left_out for each in formulas.spilled(place)}
    results = {(title, row, column): (value, error) for title, row, column, value, error in found["values"]}
    return {place: result for place, result in results.items() if place not in left_out}


def _reduced(file: ExcelFile) -> bytes:
    """Return a workbook with only the parts that its formulas need."""
    package = file.package
    links = [link for link in package.relationships(file.part) if link.type in _KEPT and link.target in package]
    others = {sheet.part for sheet in file.sheets if not sheet.is_grid}
    links += [replace(link, type="worksheet") for link in package.relationships(file.part) if link.target in others]
    parts = {CONTENT_TYPES: package.bytes_of(CONTENT_TYPES), file.part: package.bytes_of(file.part)}
    parts["_rels/.rels"] = _links("", [Relationship("rId1", "officeDocument", file.part, external=False)])
    parts[rels_of(file.part)] = _links(file.part, links)
    for link in links:
        parts[link.target] = _NO_CELLS if link.target in others else package.bytes_of(link.target)
    for sheet in file.worksheets:
        sheet.rows  # noqa: B018 - names the cells of files that leave that out
        root = sheet.root
        tables = [link for link in package.relationships(sheet.part) if link.type == "table" and link.target in package]
        if tables:
            root = copy.deepcopy(root)
            name_tables(sheet, root)  # IronCalc needs the names
            parts[rels_of(sheet.part)] = _links(sheet.part, tables)
        parts[sheet.part] = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
        parts |= {link.target: package.bytes_of(link.target) for link in tables}
    return Package(package.document, parts).to_bytes()


def _links(part: str, links: list[Relationship]) -> bytes:
    folder = posixpath.dirname(part)
    root = etree.Element("Relationships", nsmap={None: PACKAGE})
    for link in links:
        target = posixpath.relpath(link.target, folder) if folder else link.target
        etree.SubElement(root, "Relationship", Id=link.id, Type=f"{RELATIONSHIPS}/{link.type}", Target=target)
    written: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return written


@functools.cache
def is_available() -> bool:
    """Return whether formulas can be computed here."""
    frozen = getattr(sys, "frozen", False)
    return (
        bool(sys.executable) and not frozen and importlib.util.find_spec("ironcalc") is not None and _PROGRAM.is_file()
    )


def _run(book: bytes, cells: list[CellPlace], names: list[str]) -> Any:
    """Run the calculator; None if it fails or takes too long."""
    with tempfile.TemporaryDirectory(prefix="callboard-") as name:
        folder = Path(name)
        folder.joinpath("book.xlsx").write_bytes(book)
        folder.joinpath("wanted.json").write_text(json.dumps({"cells": cells, "functions": names}), "utf-8")
        paths = [str(folder / each) for each in ("book.xlsx", "wanted.json", "results.json")]
        kept = {key: os.environ[key] for key in ("SYSTEMROOT", "LD_LIBRARY_PATH") if key in os.environ}
        try:
            subprocess.run(
                [sys.executable, "-I", str(_PROGRAM), *paths, str(SECONDS)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd=name, env=kept, timeout=SECONDS, check=True,
            )  # fmt: skip
            found = json.loads(folder.joinpath("results.json").read_text("utf-8"))
        except (subprocess.SubprocessError, OSError, ValueError):
            return None
        return found
