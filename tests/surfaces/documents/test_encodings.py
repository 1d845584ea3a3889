"""Encodings of CSV files and texts: detected, named as a guess, kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

pytest.importorskip("charset_normalizer")
TEXTS = [
    ("cp1250", "Jméno;Město\r\nŘehoř;Žďár\r\n"),
    ("cp1250", "Imię;Kwota\r\nŁukasz Żak;12,50\r\n"),
    ("cp1250", "Név;Összeg\r\nKovács Győző;100\r\n"),
    ("cp1251", "Имя;Город\r\nИван;Москва\r\n"),
    ("koi8_r", "Имя;Город\r\nИван;Москва\r\n"),
    ("cp866", "Имя;Город\r\nИван;Москва\r\n"),
    ("cp932", "名前,金額\r\n東京,100\r\n"),
    ("iso2022_jp", "名前,金額\r\n東京,100\r\n"),
    ("cp949", "이름,금액\r\n서울,100\r\n"),
    ("gb18030", "姓名,金额\r\n北京,100\r\n"),
    ("cp1252", "Nom;Montant\r\nHélène;1\r\n"),
    ("cp1252", "São Paulo;Não\r\nação;1\r\n"),
    ("cp1252", "Größe;Preis\r\nMüller;5 €\r\n"),
    ("cp1253", "Όνομα;Πόλη\r\nΓιώργος;Αθήνα\r\n"),
    ("cp1256", "الاسم;المدينة\r\nمحمد;القاهرة\r\n"),
    ("mac_roman", "Größe;Preis\rMüller;5\r"),
    ("cp852", "Jméno;Město\r\nŘehoř;Žďár\r\n"),
    ("cp1254", "Ad;Şehir\r\nYağız şoföre güvendi, ışık;1\r\n"),
    ("cp874", "ชื่อ;เมือง\r\nสมชาย;กรุงเทพ\r\n"),
    ("iso8859_2", "Jméno;Město\r\nŠťastný žluťoučký kůň úpěl ďábelské ódy;1\r\n"),
    ("utf-16-le", "Größe;Preis\r\nMüller;5\r\n"),
    ("utf-32-le", "Größe;Preis\r\nMüller;5\r\n"),
    ("utf-16-be", "Größe;Preis\r\nMüller;5\r\n"),
]


@pytest.mark.parametrize(("encoding", "text"), TEXTS)
def test_a_detected_encoding_is_a_guess_and_is_kept(
    workspace: Path, surface: DocumentSurface, call: Call, encoding: str, text: str
) -> None:
    (workspace / "a.csv").write_bytes(text.encode(encoding))
    answer = call("read_table", "a.csv", numbers=False)
    delimiter = ";" if ";" in text else ","
    assert [answer["header"], *answer["rows"]] == [line.split(delimiter) for line in text.splitlines()]
    assert answer["encoding"] == f"{encoding} (a guess: pass encoding if letters are wrong)"
    window = next(target for target in surface.targets() if target.id == "a.csv")
    assert "a guess" in surface.observe(window).window["encoding"]
    assert "a guess" in call("append_rows", "a.csv", rows=[["x", 1]])["encoding"]
    mark = "\r\n" if text.endswith("\r\n") else "\r"
    assert (workspace / "a.csv").read_bytes() == f"{text}x{delimiter}1{mark}".encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_encoding_without_doubt_is_no_guess(workspace: Path, call: Call, encoding: str) -> None:
    (workspace / "a.csv").write_bytes("Größe;Preis\nMüller;5\n".encode(encoding))
    assert "encoding" not in call("read_table", "a.csv")


def test_a_given_encoding_overrides_the_guess(workspace: Path, call: Call) -> None:
    data = "Ţară;Oraş\r\nŢepeş;Iaşi\r\n".encode("iso8859_16", "replace").replace(b"?", b"\xde")
    (workspace / "a.csv").write_bytes(data)
    answer = call("read_table", "a.csv", encoding="ISO-8859-16")
    assert "encoding" not in answer
    assert answer["header"][0] == data.decode("iso8859_16").split(";")[0]
    call("write_cell", "a.csv", row=2, column=2, value="Țară", encoding="ISO-8859-16")
    assert "Țară".encode("iso8859_16") in (workspace / "a.csv").read_bytes()
    (workspace / "a.txt").write_bytes("Þór".encode("cp1252"))
    assert call("read_text", "a.txt", encoding="cp1252")["text"] == "Þór"
    call("write_text", "a.txt", text="þú", encoding="cp1252")
    call("replace_text", "a.txt", find_text="Þór", new_text="Ðór", encoding="cp1252")
    assert (workspace / "a.txt").read_bytes() == "Ðór\nþú".encode("cp1252")


@pytest.mark.parametrize("name", ["hex", "rot13", "idna", "utf-9", "", "unicode_escape", "../x"])
def test_unknown_text_encoding_is_refused(workspace: Path, call: Call, name: str) -> None:
    (workspace / "a.txt").write_bytes(b"\xe9")
    with pytest.raises(ToolError, match="there is no encoding"):
        call("read_text", "a.txt", encoding=name)


def test_bytes_that_the_given_encoding_lacks_are_refused(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_bytes(b"ab\xff")
    with pytest.raises(ToolError, match="not in utf-8: byte 3 fits no character"):
        call("read_text", "a.txt", encoding="utf-8")


def test_without_the_library_windows_1252_is_a_guess(
    workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    (workspace / "a.csv").write_bytes("Řehoř;Größe\n".encode("cp1250"))
    answer = call("read_table", "a.csv")
    assert (answer["header"], answer["encoding"][:8]) == (["Øehoø", "Größe"], "cp1252 (")


@pytest.mark.parametrize(("given", "used"), [("utf-16", "utf-16-be"), ("utf-16", "utf-16-le"), ("utf-8-sig", "utf-8")])
def test_no_byte_order_mark_is_added(workspace: Path, call: Call, given: str, used: str) -> None:
    path = workspace / "a.csv"
    path.write_bytes("a,é\n".encode(used))
    call("write_cell", "a.csv", row=1, column=1, value="b", encoding=given)
    assert path.read_bytes() == "b,é\n".encode(used)


@pytest.mark.parametrize("text", ["1,5;2,5\n3,5;4,5\n", "Name, first;Sum\nAda, B;1\n", "a;x, y\nb;z, w\n"])
def test_commas_within_cells_do_not_part_them(workspace: Path, call: Call, text: str) -> None:
    (workspace / "a.csv").write_text(text)
    answer = call("read_table", "a.csv", header=False, numbers=False)
    assert answer["rows"] == [line.split(";") for line in text.splitlines()]


def test_numbers_that_stay_texts_are_listed(workspace: Path, call: Call) -> None:
    (workspace / "a.csv").write_text("Sum;Note\n100;a1\n7;a2\n\u2013500;b2\n5k;c3\n200*;d4\n\uff11\uff12;e5\n")
    kept = [cell["text"] for cell in call("read_table", "a.csv")["kept_as_text"]]
    assert kept == ["\u2013500", "5k", "200*", "\uff11\uff12"]


def test_a_letter_with_an_accent_is_another_one(workspace: Path, call: Call) -> None:
    path = workspace / "a.txt"
    path.write_text("cafe\u0301 cafe")
    assert call("replace_text", "a.txt", find_text="cafe", new_text="tea") == {"replaced": 1}
    assert path.read_text() == "cafe\u0301 tea"
