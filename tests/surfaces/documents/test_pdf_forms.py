"""Form fields, notes and other parts that a person sees in a PDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

pytest.importorskip("pdfplumber")


def form(*annotations: bytes, catalog: bytes = b"", parts: tuple[bytes, ...] = ()) -> bytes:
    """Make a PDF of one page with the text ``Name:``; its annotations are the objects from 6, then the parts."""
    numbers = b" ".join(b"%d 0 R" % (6 + n) for n in range(len(annotations)))
    content = b"BT /F1 12 Tf 10 145 Td (Name:) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[%s]>>%s>>" % (numbers, catalog),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R/Annots[%s]>>"
        % numbers,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        *(b"<</Type/Annot/Rect[0 0 9 9]/P 3 0 R%s>>" % annotation for annotation in annotations),
        *parts,
    ]
    data, offsets = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table) + end


FIELDS = [
    (b"/Subtype/Widget/FT/Tx/T(Name)/V(Ada Lovelace)", "Name: Ada Lovelace"),
    (b"/Subtype/Widget/FT/Tx/T(Name)/V<FEFF004700F6>", "Name: Gö"),
    (b"/Subtype/Widget/FT/Tx/T(Name)", "Name: (empty)"),
    (b"/Subtype/Widget/FT/Tx/Ff 8192/T(Key)/V(hush)", "Key: (hidden)"),
    (b"/Subtype/Widget/FT/Btn/T(Agree)/V/Yes/AS/Yes", "Agree: ticked"),
    (b"/Subtype/Widget/FT/Btn/T(Agree)/AS/Off", "Agree: not ticked"),
    (b"/Subtype/Widget/AS/Red/Parent 15 0 R", "Color: ticked (Red)"),
    (b"/Subtype/Widget/FT/Ch/T(Sizes)/V[(S)(M)]", "Sizes: S, M"),
    (b"/Subtype/Widget/FT/Sig/T(Signature)", "Signature: not signed"),
    (b"/Subtype/Widget/FT/Ch/T(Paint)/Opt[[(1)(Red)][(2)(Blue)]]/V(2)", "Paint: Blue"),
    (b"/Subtype/Widget/FT/Ch/T(Many)/Opt[[(1)(Red)][(2)(Blue)]]/V[(1)(2)]", "Many: Red, Blue"),
    (b"/Subtype/Widget/FT/Tx/T(Rich)/RV(<p>Hello <b>you</b></p>)", "Rich: Hello you"),
    (b"/Subtype/Widget/FT/Tx/T(U)/V(\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe)", "U: Gr\u00fc\u00dfe"),
    (b"/Subtype/Widget/FT/Btn/Ff 32768/T(Pay)/V/1/Opt[(Cash)(Card)]/AP<</N<</0 5 0 R>>>>", "Pay: not ticked"),
    (b"/Subtype/Widget/FT/Btn/Ff 32768/T(Pay)/V/1/Opt[(Cash)(Card)]/AP<</N<</1 5 0 R>>>>", "Pay: ticked (Card)"),
]
HIDDEN = b"/Subtype/Widget/F 2/FT/Tx/T(Unseen)/V(x)"


def test_the_values_of_form_fields_are_read(workspace: Path, call: Call) -> None:
    group = b"<</FT/Btn/Ff 32768/T(Color)/V/Red/Kids[12 0 R]>>"
    annotations = [annotation.replace(b"15 0 R", b"%d 0 R" % (len(FIELDS) + 7)) for annotation, _ in FIELDS]
    (workspace / "a.pdf").write_bytes(form(*annotations, HIDDEN, parts=(group,)))
    lines = [line for _, line in FIELDS]
    assert call("read_text", "a.pdf")["text"].split("\n") == ["[page 1]", "Name:", "[form fields]", *lines]


def test_notes_are_read_and_buttons_are_not(workspace: Path, call: Call) -> None:
    note = b"/Subtype/FreeText/Contents(Approved\rby Ada)"
    (workspace / "a.pdf").write_bytes(form(note, b"/Subtype/Widget/FT/Btn/Ff 65536/T(Send)", b"/Subtype/Link"))
    assert call("read_text", "a.pdf")["text"] == "[page 1]\nName:\n[notes]\nApproved by Ada"


def test_stamps_drawings_and_attached_files_are_named(workspace: Path, call: Call) -> None:
    catalog = b"/Names<</EmbeddedFiles<</Kids[10 0 R]>>>>"
    files = b"<</Names[(a) 10 0 R (b) 10 0 R]>>"
    notes = (b"/Subtype/Stamp/Name/Approved", b"/Subtype/Stamp", b"/Subtype/Ink", b"/Subtype/FileAttachment")
    (workspace / "a.pdf").write_bytes(form(*notes, catalog=catalog, parts=(files,)))
    answer = call("read_text", "a.pdf")
    assert answer["text"] == "[page 1]\nName:\n[notes]\nstamp: Approved"
    assert answer["not_shown"] == "3 embedded files, 2 drawn notes"


@pytest.mark.parametrize(
    ("matrix", "rotation"),
    [(b"1 0 0 1 50 60", 90), (b"0 1 -1 0 150 20", 0), (b"0 -1 1 0 150 180", 180), (b"-1 0 0 -1 250 100", 0)],
)
def test_turned_text_is_read_in_order(workspace: Path, call: Call, matrix: bytes, rotation: int) -> None:
    words = b"BT /F1 12 Tf %s Tm (First line) Tj 0 -20 Td (Second one) Tj ET" % matrix
    old = b"BT /F1 12 Tf 10 145 Td (Name:) Tj ET"
    old, new = (b"<</Length %d>>stream\n%s" % (len(content), content) for content in (old, words))
    data = form().replace(old, new)
    (workspace / "a.pdf").write_bytes(data.replace(b"/MediaBox", b"/Rotate %d/MediaBox" % rotation))
    assert call("read_text", "a.pdf")["text"] == "[page 1]\nFirst line\nSecond one"


def test_observation_counts_the_parts_it_omits(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    catalog = b"/Names<</EmbeddedFiles<</Names[(a.xml) 7 0 R]>>>>"
    (workspace / "a.pdf").write_bytes(form(b"/Subtype/Link", catalog=catalog, parts=(b"<</Type/Filespec/F(a.xml)>>",)))
    seen = surface.observe(next(target for target in surface.targets() if target.id == "a.pdf"))
    assert seen.window["not_shown"] == call("read_text", "a.pdf")["not_shown"] == "1 embedded files"


def test_a_picture_on_a_page_is_counted(workspace: Path, call: Call) -> None:
    picture = pytest.importorskip("PIL.Image").new("RGB", (20, 20), "red")
    picture.save(workspace / "a.pdf")
    answer = call("read_text", "a.pdf")
    assert (answer["not_shown"], answer["note"][:22]) == ("1 pictures", "these pages have no te")
